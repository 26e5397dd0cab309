"""What to say of an option that does not exist: the one that was meant, where other tools have taught its name."""

from __future__ import annotations

import difflib
from typing import Any

# Names of options in other tools, and ours; those of settings are with the settings.
SYNONYMS = {
    "arch": "model", "net": "model", "algorithm": "method", "algo": "method", "val": "validation",
    "val_split": "validation", "target": "label_column", "label": "label_column", "label_col": "label_column",
    "text": "text_column", "noise_rate": "noise", "out": "output", "output_dir": "output", "out_dir": "output",
    "verbose": "quiet", "silent": "quiet", "size": "image_size",
}  # fmt: skip


def wrong_option(error: Any) -> str:
    """One sentence for what click refuses, with the option that was meant."""
    command = getattr(error.ctx, "command", None) if getattr(error, "ctx", None) else None
    path = error.ctx.command_path if command is not None else "crust"
    missed = getattr(error, "option_name", None)
    if missed is None or command is None:
        line, _, nearest = " ".join(error.format_message().split()).rstrip(".").partition(". Did you mean ")
        see = f"did you mean {nearest.rstrip('?')}, or see" if nearest else "see"
        return f"{line[:1].lower() + line[1:]}; {see} {path} --help"
    meant = _meant(missed, [name for each in command.params for name in each.opts if name.startswith("--")], path)
    return f"no such option: {missed}; {f'did you mean {meant}, or see' if meant else 'see'} {path} --help"


def _meant(missed: str, options: list[str], path: str) -> str | None:
    """The option of the command, or the setting of a run, that is nearest in name or meaning."""
    name = missed.lstrip("-").replace("-", "_")
    from crust.training.settings import SYNONYMS as OF_SETTINGS

    name = {**OF_SETTINGS, **SYNONYMS}.get(name, name)
    option = "--" + name.replace("_", "-")
    if option in options:
        return option
    if path.endswith("train"):
        from crust.methods import METHODS
        from crust.training.settings import TrainSettings

        if name in {*TrainSettings.model_fields, *METHODS["crust"].Settings.model_fields}:
            return f"--set {name}=VALUE"
    swapped = (other for other in options if sorted(other) == sorted(option))  # letters in another order
    return next(swapped, None) or next(iter(difflib.get_close_matches(option, options, n=1)), None)
