"""What `fit` gives back: shown in six lines, saved, taken into use, and how far it is while it trains."""

import io

import numpy as np
import pytest
import torch
from tests.refusals import refused
from tests.training.common import FAST, clouds, examples, fit, network

import crust
from crust._util import progress
from crust.audit.label_quality import label_quality
from crust.errors import InputError


def test_a_result_is_six_lines_and_the_page_of_a_notebook_has_the_same_escaped():
    x, given, _ = clouds()
    names = np.array(["<b>cat</b>", "dog", "cow"])[given]
    result = crust.fit(network(), (x, names), method="erm", test_set=(x, names), **FAST)
    lines = repr(result).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["method", "data", "accuracy", "label issues", "time", "next"]
    issues = int(result.audit()["is_label_issue"].sum())
    assert f"{issues} of 90 labels" in lines[3]
    kept = result.history.lines[result.best_epoch - 1]
    assert f"{100 * kept['test_accuracy']:.1f} % on the test set" in lines[2]
    assert "90 examples, 5 features, 3 classes" in lines[1]
    result.config["model"] = "<script>"
    page = result._repr_html_()
    assert page.count("<tr>") == 6
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_folder_opened_again_shows_the_same_and_has_the_same_probabilities(tmp_path):
    result = fit("crust", run_dir=tmp_path / "run")
    again = crust.load(tmp_path / "run", network())
    assert repr(again).splitlines()[3] == repr(result).splitlines()[3]
    assert f"crust report {tmp_path / 'run'}" in repr(again)
    found = result.probabilities()
    assert np.array_equal(again.probabilities(), found)
    table = result.audit()
    assert np.array_equal(found.argmax(1), table["predicted_label"])  # held out or not, in the order of the data
    assert np.allclose(found.max(1), table["predicted_prob"], atol=1e-6)
    quality, seen = label_quality(found, table["given_label"].to_numpy()), ~table["is_held_out"]
    assert np.allclose(quality[seen], table["label_quality"][seen], atol=1e-6)  # of the others: `on_one_scale`
    found[:] = 0
    assert result.probabilities().any()  # a copy was given


@pytest.mark.parametrize("pixels", [False, True])
def test_what_is_deployed_takes_raw_inputs_and_predicts_the_same(pixels):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    if pixels:
        x = (rng.integers(0, 80, (60, 8, 8, 3)) + 70 * y[:, None, None, None]).astype(np.uint8)
        result = crust.fit("small_cnn", (x, y), method="erm", epochs=3)
        raw = torch.from_numpy(x).permute(0, 3, 1, 2)
    else:
        x = (rng.normal(100, 1, (60, 4)) + 3 * y[:, None] * np.array([1, 0, 0, 0])).astype(np.float32)
        result = crust.fit("mlp", (x, y), method="erm", epochs=5)
        raw = torch.from_numpy(x)
    module = result.deployable()
    assert not module.training
    with torch.no_grad():
        found = module(raw).softmax(1).numpy()
        alone = result.model(raw.float()).softmax(1).numpy()
        exported = torch.export.export(module, (raw,)).module()(raw).softmax(1).numpy()
    assert np.allclose(found, result.predict_proba(x), atol=1e-5)
    assert np.allclose(exported, found, atol=1e-5)
    assert not np.allclose(alone, found, atol=0.01)  # why it is there
    assert "standardised" in repr(module)


def test_saved_it_opens_again_and_no_run_is_overwritten(tmp_path):
    result = fit("erm")
    folder = result.save(tmp_path / "kept")
    again = crust.load(folder, network())
    assert np.array_equal(again.predict_proba(examples()), result.predict_proba(examples()))
    assert again.audit().equals(result.audit())
    with pytest.raises(InputError, match="holds a run already"):
        result.save(folder)


def test_a_pretrained_network_is_saved_in_its_own_layout(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=20, num_labels=3, max_position_embeddings=8, **small)
    model = transformers.BertForSequenceClassification(config)
    rng = np.random.default_rng(0)
    y = np.arange(36) % 3
    ids = rng.integers(4, 20, (36, 6))
    ids[:, 0] = y + 1
    names = np.array(["art", "war", "sea"])[y]
    result = crust.fit(model, (ids, names), method="erm", epochs=1)
    result.save(tmp_path / "bert")
    assert model.config.id2label[0] == "LABEL_0"  # the user's own is as it was
    opened = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "bert")
    assert opened.config.id2label == {0: "art", 1: "sea", 2: "war"}
    again = crust.load(tmp_path / "bert", transformers.BertForSequenceClassification(config))
    for one in (opened, again.model):
        for name, value in result.model.state_dict().items():
            assert one.state_dict()[name].equal(value), name


def test_inputs_and_labels_in_the_wrong_places():
    x, y, _ = clouds()
    with refused("data-pair"):
        crust.fit(network(), x, y)


# ------------------------------------------------------------ progress


def test_a_long_run_says_how_far_it_is_and_a_short_one_nothing(capfd, monkeypatch):
    data = examples(600)  # of which enough are held out to rely on the audit, so that nothing is said of that
    monkeypatch.setattr(progress, "SHOW_AFTER", 1e6)  # seconds, on the slowest machine
    monkeypatch.setattr("crust.fitting.LINE_EVERY", 1e6)
    fit("erm", data)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(progress, "SHOW_AFTER", -1.0)
    fit("erm", data, epochs=40)  # one line, and the next one is far off
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == 1
    assert shown[0].startswith("epoch 1/40 · val ")
    fit("erm", data, progress=False)
    assert capfd.readouterr().err == ""


def test_on_a_terminal_the_line_lives(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen)
    fit("erm")
    assert "epoch 3/3" in screen.getvalue()
    assert "\x1b[" in screen.getvalue()  # drawn over and over
