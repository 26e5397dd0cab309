"""The options of a selection in one form, and what is refused."""

import numpy as np
import pytest
import torch
from tests.selection.common import refusal

from crust.selection.input_checks import ALGORITHMS, METRICS, Options, check_device, check_options, parse_bytes


def test_options_in_one_form():
    options = check_options(
        algorithm="lazy",
        metric="cosine",
        device=torch.device("cpu"),
        threads=np.int64(2),
        memory_limit="1 GB",
        epsilon=np.float32(0.5),
        seed=np.uint8(7),
    )
    assert options == Options("lazy", "cosine", "cpu", 2, 10**9, 0.5, 7)
    assert type(options.threads) is int
    assert type(options.seed) is int


def test_options_left_open():
    options = check_options()
    assert (options.device, options.threads, options.memory_limit) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "gredy"}, "unknown algorithm 'gredy'"),
        ({"algorithm": "gredy"}, "did you mean 'greedy'"),
        ({"algorithm": "gredy"}, ", ".join(ALGORITHMS)),
        ({"metric": "manhattan"}, ", ".join(METRICS)),
        ({"metric": None}, "unknown metric None"),
        ({"threads": 0}, "threads is 0: give a whole number of at least 1"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": True}, "threads is True"),
        ({"threads": "two"}, "threads is 'two'"),
        ({"memory_limit": 0}, "memory_limit is 0"),
        ({"memory_limit": -5}, "memory_limit is -5"),
        ({"memory_limit": "much"}, "memory_limit is 'much': give a number of bytes above 0"),
        ({"epsilon": 0}, "epsilon is 0: give a number above 0 and below 1"),
        ({"epsilon": 1}, "epsilon is 1"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": "small"}, "epsilon is 'small'"),
        ({"seed": -1}, "seed is -1, but it must be a whole number of at least 0"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": None}, "seed is None"),
        ({"device": "gpu"}, "device 'gpu' is not there: use 'cpu'"),
        ({"device": "meta"}, "device 'meta' is not there"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not there"),
        ({"device": torch.device("cuda", 99)}, "device 'cuda:99' is not there"),
        ({"device": 3.5}, "device 3.5 is not there"),
    ],
)
def test_options_refused(options, words):
    assert words in refusal(check_options, **options)


def test_devices():
    assert check_device(None) is None
    assert check_device("cpu") == "cpu"
    assert check_device("cpu:0") == "cpu:0"


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, 1),
        (np.int64(5), 5),
        (2e9, 2 * 10**9),
        ("123", 123),
        ("123 B", 123),
        ("2k", 2000),
        ("2 kB", 2000),
        ("2KiB", 2048),
        ("1.1 GB", 1_100_000_000),
        ("1.5 GiB", 3 * 2**29),
        ("512MiB", 2**29),
        (".5 tib", 2**39),
        (" 3 M ", 3 * 10**6),
    ],
)
def test_parse_bytes(size, expected):
    count = parse_bytes(size)
    assert count == expected
    assert type(count) is int


@pytest.mark.parametrize(
    "size", ["", "GB", "-1 GB", "1 PB", "1e9", "0.1", "1 G B", "٣", 0, -1, float("nan"), float("inf"), True, None]
)
def test_parse_bytes_refuses(size):
    assert "such as '2 GiB'" in refusal(parse_bytes, size)
