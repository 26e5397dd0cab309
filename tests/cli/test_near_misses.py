"""Options that do not exist lead to those that were meant."""

import pytest
from tests.cli.common import call

from crust.cli import near_misses
from crust.training import settings


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("train x --lr 0.1", "did you mean --learning-rate, or see crust train --help"),
        ("train x --num-workers 2", "did you mean --workers"),
        ("train x --max-grad-norm 1", "did you mean --set clip_norm=VALUE"),
        ("train x --scheduler cosine", "did you mean --set schedule=VALUE"),
        ("train x --partners 2", "did you mean --set partners=VALUE"),
        ("train x --epoch 3", "did you mean --epochs"),
        ("audit --tpo 3", "did you mean --top, or see crust audit --help"),
        ("train x --foo", "no such option: --foo; see crust train --help"),
        ("foo", "see crust --help"),
        ("train x --epochs abc", "see crust train --help"),
    ],
)
def test_the_option_that_was_meant(line, meant, capsys):
    assert call(line) == 2
    (shown,) = capsys.readouterr().err.splitlines()
    assert meant in shown


def test_every_synonym_leads_somewhere(capsys):
    for word in {**settings.SYNONYMS, **near_misses.SYNONYMS}:
        assert call(f"train x --{word.replace('_', '-')} 1") == 2
        assert "did you mean" in capsys.readouterr().err, word


def test_completion_is_offered(capsys):
    assert call("--help") == 0
    assert "--install-completion" in capsys.readouterr().out
