"""`crust theory`: does the paper's theory hold for a run?"""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any

import typer

from crust.cli.formatting import percent, show_log, text_table
from crust.errors import InputError, require

# The plots of the page, with what to see in them.
PICTURES = {
    "spectrum": (
        "The spectrum of the Jacobian",
        "The information space is what lies left of the cut: what it holds is learned fast.",
    ),
    "alignment": (
        "Labels in the information space",
        "Each set in the spaces of its own Jacobian. Small sets have few dimensions: see the line of chance.",
    ),
    "epsilon": (
        "Errors over the size of the coreset",
        "At the last epoch, chosen as the run chooses; dashed: the means of random subsets of that size.",
    ),
}


def theory_command(
    run: Annotated[Path, typer.Argument(help="Folder of a run, finished or going on.", metavar="RUN")],
    epochs: Annotated[
        str | None,
        typer.Option(
            help="Checkpoints to measure, such as 0,10,40 (0: before training), all or last; default: up to six.",
            metavar="LIST",
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="Training examples to measure on, drawn at random.", min=2)] = 200,
    cut: Annotated[
        str, typer.Option(help="Information space: a share of the energy (0.9), a rank (10), or gap.", metavar="CUT")
    ] = "0.9",
    repeats: Annotated[int, typer.Option(help="Random subsets to compare with.", min=0)] = 10,
    steps: Annotated[int, typer.Option(help="At most so many steps to test the theorem; 0: no test.", min=0)] = 500,
    data_dir: Annotated[
        str | None, typer.Option(help="Where named datasets are; default: $CRUST_DATA, else data.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder to write to; default: RUN.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Spectrum, alignment of labels, quality of coresets and the theorem's premises, as tables and plots."""
    show_log(logging.ERROR if quiet else logging.WARNING)
    where = run if output is None else output
    if where.exists() and not where.is_dir():
        raise InputError(f"-o {where} is a file: name a folder", code="output-is-file")
    require("matplotlib", extra="plot")  # asked for before the minutes that it takes

    from crust.runs.checkpoints import reopen
    from crust.theory.diagnose import diagnose

    opened = reopen(run, data_dir=data_dir)
    found = diagnose(
        opened,
        parse_epochs(epochs, opened.epochs),
        points=points,
        cut=parse_cut(cut),
        repeats=repeats,
        max_steps=steps,
        say=(lambda text: None) if quiet else _say,
    )

    from crust._util.atomic_write import make_folder, write_atomic
    from crust.theory.plots import diagnosis_plots, write_picture

    summary = found.summary()
    make_folder(where)
    write_atomic(where / "theory.json", json.dumps(summary, ensure_ascii=False).encode())
    write_picture(where / "theory.png", summary)
    write_atomic(where / "theory.html", theory_page(summary, diagnosis_plots(summary)).encode())
    if not quiet:
        _print_theory(summary, where)


def parse_epochs(text: str | None, there: list[int]) -> list[int] | None:
    """`--epochs`: numbers, all, or last."""
    if text is None or text.strip() == "":
        return None
    if text.strip() in ("all", "last"):
        return list(there) if text.strip() == "all" else [there[-1]]
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,9}", part) for part in parts):
        raise InputError(f"--epochs {text} is no list of epochs: write 0,10,40, or all, or last", code="bad-epochs")
    wanted = [int(part) for part in parts]
    for epoch in wanted:
        if epoch not in there:
            raise InputError(
                f"there is no checkpoint of epoch {epoch}, only of {', '.join(map(str, there))}: "
                "train with --keep-every N to keep every Nth",
                code="no-checkpoint",
            )
    return wanted


def parse_cut(text: str) -> int | float | str:
    """`--cut`: a whole number is a rank, a decimal point makes it a share of the energy."""
    word = text.strip()
    if re.fullmatch(r"\d+", word):
        return int(word)
    if re.fullmatch(r"\d*\.\d+", word):
        return float(word)
    if word != "gap":
        raise InputError(
            f"--cut {text}: give a share of the energy such as 0.9, a rank such as 10, or gap", code="bad-cut"
        )
    return word


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _print_theory(summary: dict, where: Path) -> None:
    """The tables in short."""
    from rich.console import Console

    console = Console(highlight=False)
    parts = [("Labels in the information space", *epoch_rows(summary))]
    heads, rows = quality_rows(summary)
    if rows:
        parts.append(("Coresets beside random subsets", heads, rows))
    if summary["guarantee"] is not None:
        heads, rows = premise_rows(summary["guarantee"])
        parts.append(("Theorem 1", heads[:-1], [row[:-1] for row in rows]))
    for title, heads, rows in parts:
        console.print(text_table(heads, rows, title=title, left=heads))
    if summary["guarantee"] is not None:
        typer.echo(outcome_words(summary["guarantee"]))
    noise = "" if summary["noise"] is None else f", {percent(summary['noise'])} of their labels wrong"
    typer.echo(f"{summary['points']:,} examples{noise}; written to: {where / 'theory.html'}, theory.png, theory.json")


def theory_page(summary: dict[str, Any], pictures: Mapping[str, bytes]) -> str:
    """The whole page from a diagnosis in plain numbers."""
    from crust.report.document import page

    found = summary["guarantee"]
    noise = "" if summary["noise"] is None else f", of whose labels {percent(summary['noise'])} are wrong"
    chosen = [moment["quality"] for moment in summary["moments"] if moment["quality"] is not None]
    return page(
        "cli/theory.html.j2",
        f"The theory, asked of {summary['name']}",
        about=f"{summary['method']} trained {summary['model']}, {summary['parameters']:,} parameters. "
        f"Measured on {summary['points']:,} of its training examples{noise}.",
        pictures=[
            (*PICTURES[name], f"data:image/png;base64,{base64.b64encode(content).decode()}")
            for name, content in pictures.items()
        ],
        method=summary["method"],
        epochs=epoch_rows(summary),
        quality=quality_rows(summary),
        bounds=[
            [one["name"], number(one["low"]), number(one["value"]), number(one["high"]), yes(one["holds"])]
            for one in (chosen[-1]["bounds"] if chosen else [])
        ],
        holds=found is not None and found["holds"],
        outcome="" if found is None else outcome_words(found),
        premises=([], []) if found is None else premise_rows(found),
    )


def epoch_rows(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The epochs as a table: heads and rows."""
    heads = ["epoch", "σ₁", "rank", "all", "right", "wrong", "coreset", "random", "claim", "at random"]
    rows = []
    for moment in summary["moments"]:
        sets = moment["sets"]
        cells = [f"{moment['epoch']}", f"{moment['singular_values'][0]:.4g}", f"{moment['rank']:,}"]
        cells += [percent(sets[name]["labels"]["information"] if name in sets else None)
                  for name in ("all", "right", "wrong", "coreset")]  # fmt: skip
        cells.append(_spread([one["labels"]["information"] for one in moment["random_sets"]], percent))
        cells += [yes(moment["claim"]), percent(moment["claim_at_random"])]
        rows.append(cells)
    return heads, rows


def quality_rows(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The coreset of each epoch as a table."""
    heads = ["epoch", "k", "wrong", "of all", "α", "β", "r", "ε/‖J‖", "JᵀJ", "gradient"]
    rows = []
    for moment in summary["moments"]:
        found = moment["quality"]
        if found is None:
            continue
        cells = [f"{moment['epoch']}", f"{found['members']:,}", percent(found["noise"]), percent(found["noise_of_all"])]
        cells += [f"{found['alpha']:.3g}", f"{found['beta']:.3g}", _range(found["r_min"], found["r_max"])]
        for name in ("norm_share", "gram", "gradient"):
            drawn = [one[name] for one in found["random"]]
            cells.append(f"{found['errors'][name]:.2f} ({_spread(drawn, '{:.2f}'.format)})")
        rows.append(cells)
    return heads, rows


def premise_rows(found: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The check list as a table."""
    rows = [
        [
            one["name"],
            number(one["value"]),
            number(one["bound"]),
            yes(one["holds"]),
            "–" if one["factor"] is None else f"{one['factor']:.3g} ×",
            ("the corollary: " if one["needed"] else "the theorem: ") + one["why"],
        ]
        for one in found["premises"]
    ]
    return ["premise", "value", "at most", "holds", "value over bound", "for"], rows


def outcome_words(found: dict[str, Any]) -> str:
    """What the descent did, in a sentence or two."""
    outcome = found["outcome"]
    steps = "without end" if found["steps"] is None else f"{found['steps']:,.0f} steps"
    words = f"The theorem asks for η = {found['learning_rate']:.3g} and {steps}. "
    if outcome is None:
        return words + "The descent was left out."
    words += f"After {outcome['steps']:,} of them {percent(outcome['right'])} of the coreset have their true label"
    if outcome["right_of_wrong"] is not None:
        words += f" ({percent(outcome['right_of_wrong'])} of those whose given label is wrong)"
    for value, bound, what in (
        ("largest_error", "promised_error", "the largest error is"),
        ("moved", "promised_move", "the weights moved by"),
    ):
        words += f"; {what} {number(outcome[value])} (promised: at most {number(outcome[bound])})"
    return ". ".join([words, *found["notes"], ""]).strip()


def yes(value: bool | None) -> str:
    """A yes or no."""
    return "–" if value is None else "yes" if value else "no"


def number(value: float | None) -> str:
    """A number; None is one without bound."""
    return "∞" if value is None else f"{value:.3g}"


def _range(low: float, high: float) -> str:
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _spread(values: list[float], show: Any) -> str:
    if not values:
        return "–"
    return show(mean(values)) + (f" ± {show(stdev(values))}" if len(values) > 1 else "")
