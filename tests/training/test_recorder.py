"""The history of a run, and files that are whole or not there."""

import pytest

from crust.errors import InputError
from crust.training.recorder import History


def line(epoch, accuracy, **more):
    return {"epoch": epoch, "test_accuracy": accuracy, **more}


def test_what_is_saved_is_loaded(tmp_path):
    history = History([line(0, 0.1 + 0.2), line(1, None, seconds={"epoch": 1.5})])
    history.save(tmp_path / "history.jsonl")
    assert History.load(tmp_path / "history.jsonl").lines == history.lines
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 2


def test_accuracy_is_last_mean_of_ten_and_best():
    history = History([line(i, i / 100) for i in range(20)] + [line(20, 0.05)])
    found = history.accuracy()
    assert found["last"] == 0.05
    assert found["best"] == 0.19
    assert found["last10"] == pytest.approx((sum(range(11, 20)) / 100 + 0.05) / 10)


def test_stages_that_do_not_count_are_left_out_and_nothing_is_none():
    assert History([line(0, 0.9, counts=False), line(1, 0.5)]).accuracy()["best"] == 0.5
    assert History([{"epoch": 0}]).accuracy() == {"last": None, "last10": None, "best": None}
    assert History([{"epoch": 0}])["test_accuracy"] == [None]
    assert [entry["epoch"] for entry in History([line(0, 1.0)])] == [0]


@pytest.mark.parametrize("content", ["{", "\x00", '{"epoch": 0}\nnot json'])
def test_a_foreign_file_gets_a_sentence(tmp_path, content):
    (tmp_path / "history.jsonl").write_text(content)
    with pytest.raises(InputError, match="is no history of a run"):
        History.load(tmp_path / "history.jsonl")
