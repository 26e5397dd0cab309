"""What a run was made with is written down, and never stands in its way."""

import logging
import platform

import numpy as np
import torch
import yaml
from tests.training.common import fit, weights

import crust
from crust.runs import folder


def config(folder):
    return yaml.safe_load((folder / "config.yaml").read_text())


def test_a_run_says_what_it_was_made_with(tmp_path):
    result = fit(run_dir=tmp_path, stop_after=1)
    found = config(tmp_path)["versions"]
    assert found == result.config["versions"]
    assert (found["crust"], found["torch"], found["numpy"]) == (crust.__version__, torch.__version__, np.__version__)
    assert (found["python"], found["threads"]) == (platform.python_version(), torch.get_num_threads())
    assert "resumed_with" not in config(tmp_path)
    assert fit().config["versions"] == found


def test_other_versions_are_a_warning_and_no_refusal(tmp_path, caplog, monkeypatch):
    now = folder.versions()
    with monkeypatch.context() as earlier:
        earlier.setattr(torch, "__version__", "1.0")
        fit(run_dir=tmp_path, stop_after=1)
    with caplog.at_level(logging.WARNING, logger="crust"):
        fit(run_dir=tmp_path, stop_after=2, resume=True)
    said = f"was made with torch 1.0 and goes on with torch {now['torch']}: it may not end with the same bytes"
    assert [said in record.getMessage() for record in caplog.records] == [True]
    caplog.clear()
    result = fit(run_dir=tmp_path, resume=True)
    assert not caplog.records  # said once
    assert config(tmp_path)["versions"]["torch"] == "1.0"
    assert config(tmp_path)["resumed_with"] == [now]
    assert weights(result) == weights(fit())


def test_a_lost_config_does_not_matter(tmp_path):
    fit(run_dir=tmp_path, stop_after=1)
    (tmp_path / "config.yaml").unlink()
    fit(run_dir=tmp_path, resume=True)
    assert config(tmp_path)["versions"] == folder.versions()
