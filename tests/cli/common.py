"""For all tests of the command line."""

import pytest

from crust.cli import main


def call(words):
    """The exit code of `crust WORDS`; words with spaces in them are given as a list."""
    with pytest.raises(SystemExit) as caught:
        main(words.split() if isinstance(words, str) else words)
    return caught.value.code
