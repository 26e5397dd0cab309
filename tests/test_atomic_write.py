"""A file is the old one or the new one, never half of it."""

import errno

import pytest

from crust._util.atomic_write import write_atomic
from crust.errors import InputError


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "note"
    write_atomic(path, b"old")

    def full(file):
        file.write(b"half of")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match=r"note could not be written .No space left"):
        write_atomic(path, full)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, lambda file: (_ for _ in ()).throw(KeyboardInterrupt))
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["note"]
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_places_that_cannot_be(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*nowhere"):
        write_atomic(tmp_path / "nowhere" / "note", b"new")
    with pytest.raises(InputError, match="is a folder"):
        write_atomic(tmp_path, b"new")
