"""What makes the code easy to find one's way in stays so (`tools/meters.py` prints the whole table)."""

import runpy
from pathlib import Path

METERS = runpy.run_path(str(Path(__file__).parents[1] / "tools" / "meters.py"))


def test_few_names_are_defined_in_more_than_one_module():
    assert len(METERS["repeated_names"]()) <= 30, METERS["repeated_names"]()


def test_few_files_have_the_same_name():
    assert len(METERS["repeated_basenames"]()) <= 3, METERS["repeated_basenames"]()


def test_one_module_knows_the_files_of_a_run():
    assert METERS["knowers_of_run_files"]() == ["runs/folder.py"]


def test_audit_and_selection_do_not_load_torch():
    assert not METERS["loads_torch"]("crust.audit")
    assert not METERS["loads_torch"]("crust.selection.select")
