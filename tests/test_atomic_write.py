"""A file is the old one or the new one, never half of it."""

import errno

import pytest
from tests.refusals import refused

from crust._util.atomic_write import write_atomic


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "note"
    write_atomic(path, b"old")

    def full(file):
        file.write(b"half of")
        raise OSError(errno.ENOSPC, "No space left on device")

    with refused("cannot-write"):
        write_atomic(path, full)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, lambda file: (_ for _ in ()).throw(KeyboardInterrupt))
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["note"]
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_places_that_cannot_be(tmp_path):
    with refused("missing-folder"):
        write_atomic(tmp_path / "nowhere" / "note", b"new")
    with refused("not-a-file"):
        write_atomic(tmp_path, b"new")
