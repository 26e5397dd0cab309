"""Every method stops at the same count of passes, and stays stopped."""

import pytest
from tests.training.common import fit, told, weights


@pytest.mark.parametrize("method", ["erm", "co-teaching", "crust", "f-correction"])
def test_every_method_stops_at_the_same_count(method):
    result = fit(method, epochs=50, max_passes=2000)
    line = result.history.lines[-1]
    passes = sum(line["passes"].values())
    # one batch of at most two networks, forward and backward, and the last look for the audit
    assert 2000 <= passes <= 2000 + 4 * 17 + 2 * (81 + 9)
    assert line["stopped"] == "passes"
    assert "stopped" not in result.history.lines[-2]
    assert len(result.audit()) == 90
    assert result.audit()["label_quality"].notna().all()


def test_a_run_that_was_stopped_by_its_bill_is_not_gone_on_with(tmp_path):
    first = fit("erm", epochs=50, max_passes=700, run_dir=tmp_path)
    again = fit("erm", epochs=50, max_passes=700, run_dir=tmp_path, resume=True)
    assert told(first.history) == told(again.history)
    assert weights(first) == weights(again)
