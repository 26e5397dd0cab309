"""Random numbers depend on the seed and the place, and on nothing that was drawn before."""

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crust._util.seeding import numpy_rng, seeded, torch_rng

places = st.lists(st.one_of(st.integers(0, 2**31), st.text(max_size=8)), max_size=4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), places)
def test_the_same_place_draws_the_same_numbers(seed, place):
    assert numpy_rng(seed, *place).random() == numpy_rng(seed, *place).random()
    one, two = torch_rng(seed, *place), torch_rng(seed, *place)
    assert torch.rand(3, generator=one).equal(torch.rand(3, generator=two))


def test_other_places_draw_other_numbers():
    found = {
        numpy_rng(seed, purpose, stage, epoch).random()
        for seed, purpose, stage, epoch in itertools.product((0, 1), ("mix", "order"), (0, 1), (0, 1, 2))
    }
    assert len(found) == 24


def test_the_global_generator_is_seeded_inside_and_untouched_outside():
    before = torch.get_rng_state()
    with seeded(3, "network", 0):
        one = torch.rand(2)
    assert torch.get_rng_state().equal(before)
    torch.rand(7)
    with seeded(3, "network", 0):
        two = torch.rand(2)
    assert one.equal(two)


def test_nothing_of_numpys_global_state_is_used():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - looked at, not used
    numpy_rng(0, "mix").random(10)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
