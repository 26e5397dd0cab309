"""What tests of the loop get handed."""

import pytest

from crust.methods import METHODS


@pytest.fixture
def register(monkeypatch):
    """Make a method known for one test: a subclass of `erm`."""

    def add(kind):
        kind.name = kind.__name__.lower()
        monkeypatch.setitem(METHODS, kind.name, kind)
        return kind.name

    return add
