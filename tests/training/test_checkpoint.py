"""Checkpoints: what goes in comes out, and nothing damaged or foreign is taken for one."""

import json
import logging

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from crust.errors import InputError
from crust.selection import select
from crust.training import checkpoint


def same(a, b) -> bool:
    """Equal, tuples being lists, arrays and tensors in type, shape and every bit."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and a.equal(b)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def trained(kind: str) -> dict:
    """The state of an optimizer that has made a step: tensors under int keys, tuples, floats."""
    model = nn.Linear(3, 2)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.AdamW}[kind](
        model.parameters(), lr=0.1, **({"momentum": 0.9} if kind == "sgd" else {})
    )
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.builds(lambda n, kind: np.arange(n).astype(kind), st.integers(0, 4), st.sampled_from(["f4", "f8", "i8", "?"])),
    st.builds(lambda n: torch.arange(n).float(), st.integers(0, 4)),
)
keys = st.one_of(st.integers(-3, 9), st.sampled_from(["a", "b", "a.b", "0", "b.0"]))
states = st.recursive(values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


@settings(max_examples=60, deadline=None)
@given(states)
def test_any_nested_state_comes_back(state):
    from safetensors.torch import load, save

    tensors: dict[str, torch.Tensor] = {}
    described = json.loads(json.dumps(checkpoint.flatten(state, "s", tensors)))
    assert same(state, checkpoint.unflatten(described, load(save(tensors))))


@pytest.mark.parametrize("kind", ["sgd", "adam"])
def test_the_state_of_an_optimizer_comes_back_and_fits(tmp_path, kind):
    state = {"optimizer": trained(kind), "scalar": np.array(2.5), "tuple": (1, 2.0)}
    checkpoint.save(tmp_path, 1, state)
    found = checkpoint.newest(tmp_path)
    assert same(state, found)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) if kind == "sgd" else None
    if optimizer is not None:
        optimizer.load_state_dict(found["optimizer"])
        assert same(state["optimizer"]["state"], optimizer.state_dict()["state"])


def test_a_coreset_and_what_is_read_only_or_shared_comes_back(tmp_path):
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    tied = torch.ones(2, 2)
    coreset = select(np.arange(12.0).reshape(6, 2), 2, groups=np.array([0, 0, 0, 1, 1, 1])).arrays()
    state = {"fixed": fixed, "one": tied, "two": tied, "turned": tied.T, "coreset": coreset}
    checkpoint.save(tmp_path, 1, state)
    found = checkpoint.read(tmp_path / "000001")
    assert same(fixed, found["fixed"])
    assert same(coreset["indices"], found["coreset"]["indices"])
    found["fixed"] += 1  # what comes back may be written to


def test_only_the_newest_two_are_kept(tmp_path):
    (tmp_path / "000001.part").mkdir(parents=True)
    (tmp_path / "9-notes").mkdir()
    for number in range(1, 5):
        checkpoint.save(tmp_path, number, {"number": number})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["000003", "000004", "9-notes"]
    assert checkpoint.newest(tmp_path)["number"] == 4


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoint.newest(tmp_path) is None
    (tmp_path / "000007.part").mkdir()
    assert checkpoint.newest(tmp_path) is None


def two(folder) -> None:
    for number in (1, 2):
        checkpoint.save(folder, number, {"number": number, "array": np.arange(8.0) + number})


def spoil(path, how: str) -> None:
    state, tensors = path / "state.json", path / "tensors.safetensors"
    if how.startswith("flip"):
        file = state if "state" in how else tensors
        content = bytearray(file.read_bytes())
        content[int(float(how.split()[-1]) * (len(content) - 1))] ^= 1
        file.write_bytes(content)
    elif how == "short state":
        state.write_bytes(state.read_bytes()[:-3])
    elif how == "short tensors":
        tensors.write_bytes(tensors.read_bytes()[:40])
    elif how == "empty":
        state.write_bytes(b"")
    elif how == "no tensors":
        tensors.unlink()
    elif how == "foreign":
        state.write_text('{"epoch": 3}')
    elif how == "a list":
        state.write_text("[1, 2]")
    elif how == "another version":
        state.write_bytes(state.read_bytes().replace(b'"format":3', b'"format":99'))
    elif how == "a file":
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        path.write_text("not a folder")


FLIPS = [f"flip {file} {place}" for file in ("state", "tensors") for place in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1)]
WAYS = [*FLIPS, "short state", "short tensors", "empty", "no tensors", "foreign", "a list", "another version", "a file"]


@pytest.mark.parametrize("how", WAYS)
def test_a_damaged_one_is_refused_and_the_one_before_it_used(tmp_path, how, caplog):
    two(tmp_path)
    spoil(tmp_path / "000002", how)
    with pytest.raises(InputError, match=r"000002 is (no|damaged)") as caught:
        checkpoint.read(tmp_path / "000002")
    assert "\n" not in str(caught.value)
    with caplog.at_level(logging.WARNING, "crust"):
        assert checkpoint.newest(tmp_path)["number"] == 1
    assert "000002" in caplog.text


def test_every_single_flipped_byte_is_noticed(tmp_path):
    two(tmp_path)
    for name in ("state.json", "tensors.safetensors"):
        file = tmp_path / "000002" / name
        whole = file.read_bytes()
        for place in range(len(whole)):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :])
            with pytest.raises(InputError):
                checkpoint.read(tmp_path / "000002")
        file.write_bytes(whole)
    assert checkpoint.read(tmp_path / "000002")["number"] == 2


def test_a_large_array_has_a_file_of_its_own_that_two_checkpoints_share(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGE", 64)
    fixed = np.arange(40.0)
    fixed.flags.writeable = False
    half = torch.arange(60).to(torch.bfloat16).reshape(3, 20)
    state = {"same": np.arange(16.0), "other": np.zeros((4, 50), np.float16), "fixed": fixed, "turned": half.T}
    state |= {"again": state["same"], "small": np.arange(3), "flags": np.arange(99) % 3 == 0}
    checkpoint.save(tmp_path, 1, state)
    state["other"] += 1
    checkpoint.save(tmp_path, 2, state)
    assert same(state, checkpoint.read(tmp_path / "000002"))
    checkpoint.read(tmp_path / "000002")["same"][:] = 0  # what comes back may be written to
    first, second = ({p.name: p.stat() for p in (tmp_path / name).iterdir()} for name in ("000001", "000002"))
    shared = [name for name in first if name in second and first[name].st_ino == second[name].st_ino]
    assert len(shared) == 4
    assert len(first) == len(second) == 7  # of the same content twice there is one file
    checkpoint.save(tmp_path, 3, state)
    assert same(state, checkpoint.read(tmp_path / "000003"))  # the first one is gone, what it shared is not

    (changed,) = second.keys() - first.keys()
    file = tmp_path / "000003" / changed
    whole = file.read_bytes()
    for content in (whole[:-1], whole[:5] + b"!" + whole[6:]):
        file.write_bytes(content)
        with pytest.raises(InputError, match="000003 is damaged"):
            checkpoint.read(tmp_path / "000003")
    file.unlink()
    with pytest.raises(InputError, match="000003 is no complete checkpoint"):
        checkpoint.read(tmp_path / "000003")


def test_without_links_arrays_are_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGE", 64)

    def refused(*names):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(checkpoint.os, "link", refused)
    for number in (1, 2):
        checkpoint.save(tmp_path, number, {"array": np.arange(16.0)})
    assert checkpoint.read(tmp_path / "000002")["array"][15] == 15


def test_where_all_are_damaged_nothing_is_begun_anew(tmp_path, caplog):
    two(tmp_path)
    for number in (1, 2):
        spoil(tmp_path / f"00000{number}", "empty")
    with pytest.raises(InputError, match=r"none of the 2 checkpoints in .* can be read"):
        checkpoint.newest(tmp_path)


def test_a_crash_while_writing_leaves_the_ones_before(tmp_path, monkeypatch):
    two(tmp_path)

    def no_space(path, content):
        if path.name == "state.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr(checkpoint, "write_atomic", no_space)
    with pytest.raises(InputError, match=r"cannot write the checkpoint .*000003: No space left on device"):
        checkpoint.save(tmp_path, 3, {"number": 3})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["000001", "000002"]
    assert checkpoint.newest(tmp_path)["number"] == 2


def test_nothing_is_unpickled(tmp_path):
    checkpoint.save(tmp_path, 1, {"array": np.arange(3)})
    assert sorted(p.name for p in (tmp_path / "000001").iterdir()) == ["state.json", "tensors.safetensors"]
    with pytest.raises(TypeError):
        checkpoint.save(tmp_path, 2, {"function": print})


def test_every_nth_checkpoint_stays(tmp_path):
    for number in range(1, 8):
        checkpoint.save(tmp_path, number, {"number": number}, every=3)
    assert [path.name for path in checkpoint.numbered(tmp_path)] == ["000003", "000006", "000007"]
    assert checkpoint.read(tmp_path / "000003") == {"number": 3}
    assert checkpoint.newest(tmp_path) == {"number": 7}
