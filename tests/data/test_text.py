"""Texts become token ids: the same everywhere, for whatever people write; and tables that hold texts."""

import json
import logging

import datasets
import numpy as np
import pandas as pd
import pytest
from tests.refusals import refused

from crust.data import batches, can_mix, from_arrays, from_texts, from_tokens, load, load_new
from crust.data.text import hash_texts, is_text, words_of

HOSTILE = [
    "",
    "   \n\t",
    "?!... --- ,,,",
    "👍🏽 🎉🎉",
    "a\x00b \x00",
    "x" * 3_000_000,
    "\ud800 alone",
    "数学の本",
    "हिन्दी में",
]


def write(path, texts, labels, **more):
    pd.DataFrame({"text": texts, "label": labels, **more}).to_csv(path, index=False)
    return path


def reviews(n, seed=0):
    """Short reviews of two kinds, each different from all others."""
    rng = np.random.default_rng(seed)
    words = {"good": ["lovely", "great", "fun", "bright"], "bad": ["dull", "awful", "slow", "grey"]}
    filler = ["the", "film", "was", "with", "some", "actors", "in", "a", "big", "town", "at", "night", "by"]
    labels = np.where(rng.random(n) < 0.5, "good", "bad")
    texts = [
        " ".join([*rng.choice(filler, 8), *rng.choice(words[label], 3), f"scene {i}"]) for i, label in enumerate(labels)
    ]
    return texts, labels


def test_ids_are_the_same_on_every_machine():
    tokens = hash_texts(["Don't PANIC", "Ärger, ärger"], {"words": 400, "pairs": True, "buckets": 1000})
    assert [ids.tolist() for ids in tokens] == [[582, 680, 724, 94, 253, 261, 234], [757, 330, 757, 142, 57]]
    assert tokens.vocabulary == 1001


def test_case_and_forms_of_letters_do_not_matter():
    one, other, third = hash_texts(["STRASSE ﬁn Ａ é", "straße fin a e\u0301", "strasse fin a e"])
    assert one.tolist() == other.tolist()
    assert one.tolist() != third.tolist()


def test_letters_of_scripts_without_spaces_are_words():
    assert words_of("数学の本 and 本x", 10) == ["数", "学", "の", "本", "and", "本", "x"]
    assert words_of("हिन्दी में", 10) == ["हिन्दी", "में"]


def test_pairs_are_of_neighbours_in_one_text_alone():
    apart = hash_texts(["red green", "blue"])
    assert [len(ids) for ids in apart] == [3, 1]
    assert hash_texts(["red green"])[0][:2].tolist() == [hash_texts([word])[0][0] for word in ("red", "green")]
    assert hash_texts(["red green"])[0][2] != hash_texts(["green red"])[0][2]


def test_whatever_people_write_has_ids(caplog):
    caplog.set_level(logging.INFO, "crust.data")  # a test of the command line may have quietened it
    tokens = hash_texts(HOSTILE)
    lengths = [len(ids) for ids in tokens]
    assert lengths[:2] == [0, 0]
    assert min(lengths[2:]) >= 1
    assert lengths[5] == 1
    assert tokens.ids.min() >= 1
    assert tokens.ids.max() < tokens.vocabulary
    assert "2 of 9 texts hold no word, the first being text 0" in caplog.text


def test_long_texts_are_cut_and_it_is_said(caplog):
    caplog.set_level(logging.INFO, "crust.data")
    tokens = hash_texts(["one two three four", "one two"], {"words": 2, "pairs": False, "buckets": 100})
    assert tokens[0].tolist() == tokens[1].tolist()
    assert "of 1 of 2 texts only the first 2 words are read" in caplog.text


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_a_missing_text_is_refused(missing):
    with refused("missing-text"):
        from_texts(["so good", missing], [0, 1])
    with refused("not-a-text"):
        from_texts(["so good", 3], [0, 1])


def test_what_counts_as_texts():
    assert all(is_text(kind(["a", "b"])) for kind in (list, tuple, np.array, pd.Series, pd.array))
    assert is_text(pd.Series([None, "a"]))
    assert is_text(datasets.Dataset.from_dict({"text": ["a", "b"]})["text"])
    assert not any(
        is_text(each) for each in ("a", [1, 2], [["a"]], np.array([["a"]]), {"a": 1}, b"a", [], None, ["a"][1:])
    )


def test_batches_are_padded_to_their_longest():
    examples = from_texts(["one two three", "one", "", "three"], [0, 1, 0, 1])
    found = [x for x, _ in batches(examples, [1, 0, 2, 3], 2)]
    assert [tuple(x.shape) for x in found] == [(2, 5), (2, 1)]
    assert found[0][0, 1:].tolist() == [0, 0, 0, 0]
    assert found[1].tolist() == [[0], [found[0][1, 2]]]
    assert str(found[0].dtype) == "torch.int64"


def test_rows_of_examples_keep_their_texts():
    examples = from_texts(["one two", "three", "four five six"], ["a", "b", "a"])
    part = examples.subset([2, 0])
    assert part.inputs.texts == ["four five six", "one two"]
    assert [ids.tolist() for ids in part.inputs] == [examples.inputs[2].tolist(), examples.inputs[0].tolist()]
    assert part.fingerprint() != examples.fingerprint() == examples.subset([0, 1, 2]).fingerprint()


def test_token_ids_stay_whole_numbers():
    matrix = np.array([[4, 0, 300], [7, 8, 9]], np.int16)
    x = next(batches(from_tokens(matrix, [0, 1]), None, 2))[0]
    assert x.tolist() == matrix.tolist()
    assert not x.is_floating_point()
    assert next(batches(from_arrays(matrix, [0, 1]), None, 2))[0].is_floating_point()
    with refused("token-id-range"):
        from_tokens([[1, 2], [3, -1]], [0, 1])
    with refused("no-token-ids"):
        from_tokens([[1, 2], [3.5]], [0, 1])
    with refused("label-count"):
        from_tokens([[1, 2], [3]], [0])


def test_what_can_be_mixed():
    assert can_mix(load("digits", limit=20).train)
    assert not can_mix(from_tokens([[1], [2]], [0, 1]))


# ---------------------------------------------------------------------------------------------- tables


def test_a_table_of_texts_is_taken_as_texts(tmp_path, caplog):
    caplog.set_level(logging.INFO, "crust.data")
    texts, labels = reviews(40)
    bundle = load(write(tmp_path / "a.csv", texts, labels), limit=30)
    assert (bundle.train.kind, len(bundle.train), bundle.total) == ("tokens", 30, 40)
    assert bundle.train.inputs.texts == texts[:30]
    assert "column 'text' of a.csv holds texts: they are learned from as texts" in caplog.text
    again = load_new(tmp_path / "a.csv", json.loads(json.dumps(bundle.encoding)))
    assert [ids.tolist() for ids in again.inputs][:30] == [ids.tolist() for ids in bundle.train.inputs]
    assert again.decode(again.labels) == labels.tolist()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_texts_from_every_kind_of_table(tmp_path, suffix):
    frame = pd.DataFrame(
        {"id": range(6), "body": ["NA", "01", "a,b\tc\n d", "", "true", '"x"'], "kind": list("aabbab")}
    )
    path = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    bundle = load(path, text_column="body", label_column="kind")
    assert bundle.train.inputs.texts == frame["body"].tolist()
    assert bundle.train.classes == ["a", "b"]


def test_a_text_beside_other_columns_is_named_or_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO, "crust.data")
    texts, labels = reviews(30)
    path = write(tmp_path / "a.csv", texts, labels, age=range(30))
    assert load(path).train.shape == (1,)
    assert "name it with --text-column" in caplog.text
    assert load(path, text_column="text").train.kind == "tokens"
    write(path, texts, labels, subject=texts[::-1])
    with refused("several-text-columns"):
        load(path)


def test_names_and_categories_are_no_texts(tmp_path):
    towns = ["New York", "Bonn", "Ulm", "Los Angeles"] * 5
    assert load(write(tmp_path / "a.csv", towns, ["a", "b"] * 10)).train.kind == "features"


def test_text_columns_that_cannot_be(tmp_path):
    texts, labels = reviews(10)
    path = write(tmp_path / "a.csv", texts, labels)
    with refused("unknown-column"):
        load(path, text_column="txt")
    with refused("text-is-label"):
        load(path, text_column="label")
    with refused("text-and-columns"):
        load(path, text_column="text", columns=["text"])
    pd.DataFrame({"text": [*texts[:9], None], "label": labels, "age": 3}).to_parquet(tmp_path / "a.parquet")
    with refused("missing-text"):
        load(tmp_path / "a.parquet", text_column="text")
    with refused("not-a-text"):
        load(tmp_path / "a.parquet", text_column="age")
    bundle = load(path)
    pd.DataFrame({"body": texts}).to_csv(tmp_path / "b.csv")
    with refused("unknown-column"):
        load_new(tmp_path / "b.csv", bundle.encoding)


def test_a_text_longer_than_what_is_read_at_a_time(tmp_path):
    long = "so long " * 300_000
    bundle = load(write(tmp_path / "a.csv", [long, "short one it is"], ["a", "b"]), text_column="text")
    assert bundle.train.inputs.texts[0] == long
