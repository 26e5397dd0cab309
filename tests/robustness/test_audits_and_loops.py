"""Tables and files of other tools, what is shown, samplers and loops, as odd_audits.py and odd_loops.py list them."""

import logging
import os
from pathlib import Path

import pytest
from tests.robustness import odd_audits, odd_loops
from tests.robustness.outcomes import outcome

TABLES = {"audits": odd_audits.cases, "loops": odd_loops.cases, "trainers": odd_loops.trainers}


@pytest.mark.parametrize("name", ["audits", "loops", pytest.param("trainers", marks=pytest.mark.slow)])
def test_done_or_one_sentence(name, tmp_path, capsys):
    before = Path.cwd()
    os.chdir(tmp_path)
    logging.disable(logging.CRITICAL)
    wrong, held = {}, 0
    try:
        (tmp_path / "made").mkdir()
        for case, (call, right) in TABLES[name](tmp_path / "made").items():
            try:
                got = outcome(call)
            except (Exception, AssertionError) as error:  # each is named below
                wrong[case] = repr(error)
                continue
            if (got == "done") == right:
                held += 1
            else:
                wrong[case] = got
    finally:
        logging.disable(logging.NOTSET)
        os.chdir(before)
    assert not wrong, "\n".join(f"{case}: {what:.300}" for case, what in wrong.items())
    assert held >= 30
    assert not [*tmp_path.rglob("unpickled")], "code has run"
