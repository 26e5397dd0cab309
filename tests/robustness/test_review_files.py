"""The database of a review is its owner's alone, and one that could not be begun leaves nothing."""

import os
import resource
import stat

import pytest
from tests.refusals import refused

from crust.review import Change, Store


def test_only_the_owner_reads_it(tmp_path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "review.sqlite", "k", range(4), 2)
        store.decide([Change(0, 0, "keep")], who="first")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert "review.sqlite" in modes
    assert set(modes.values()) == {0o600}, modes


def test_a_full_disk_leaves_nothing(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with refused("cannot-write"):
            Store(tmp_path / "review.sqlite", "k", range(4), 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [*tmp_path.iterdir()]
    Store(tmp_path / "review.sqlite", "k", range(4), 2).close()


@pytest.mark.parametrize("content", [b"", b"no database" * 99])
def test_a_file_that_was_there_stays(tmp_path, content):
    path = tmp_path / "review.sqlite"
    path.write_bytes(content)
    try:
        Store(path, "k", range(4), 2).close()
    except ValueError:  # InputError
        assert path.read_bytes() == content
    assert path.exists()


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "review.sqlite")
    with refused("not-a-file"):
        Store(tmp_path / "review.sqlite", "k", range(4), 2)
