"""What training costs beside the training itself, from ten thousand to a million examples, and a thousand classes.

python -m benchmarks.scale              10,000, 100,000 and 1,000,000 examples of 32 features in 10 classes
python -m benchmarks.scale --large      1,000,000 in 1,000 classes as well: 12 GiB of memory, some minutes

An MLP 32-256-256-classes is trained in batches of 512 by `erm` and by `crust`, which is made to look and to select
before every epoch but the first two, in one process after each other. A fifth of the labels is wrong. Parts are those
of the run's own history; the checkpoint is measured around its function. Found are medians over the epochs that
selected. By itself `crust` looks and selects about once in twenty epochs, so that a run pays a small part of this.
Selection is also set against an epoch of a ResNet-8 on as many images of 32 x 32, from the images a second of one step.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import verdicts

RESULTS = Path(__file__).parent / "results"
GIB = 2**30
CPU_TIME = "CRUST_BENCH_CPU_TIME"  # tells the jobs which clock
DIMENSIONS, HIDDEN, BATCH, WRONG = 32, 256, 512, 0.2


def examples(n: int, classes: int) -> tuple[Any, Any]:
    """Gaussian classes that overlap, and labels of which a fifth is drawn anew."""
    import numpy as np

    rng = np.random.default_rng(0)
    true = rng.integers(0, classes, n)
    x = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    x += rng.standard_normal((classes, DIMENSIONS), dtype=np.float32)[true]
    wrong = rng.random(n) < WRONG
    true[wrong] = rng.integers(0, classes, int(wrong.sum()))
    return x, true


def network(classes: int) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(DIMENSIONS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes)
    )


class Peak:
    """The most memory that the process has had since it was begun."""

    def __init__(self) -> None:
        import psutil

        self.process, self.most, self.going = psutil.Process(), 0, True
        self.before = self.process.memory_info().rss
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while self.going:
            self.most = max(self.most, self.process.memory_info().rss)
            time.sleep(0.005)

    def beyond(self) -> int:
        self.going = False
        self.thread.join()
        return self.most - self.before


def fitted(n: int, classes: int, method: str, epochs: int, run_dir: str, **settings: Any) -> dict[str, Any]:
    """Train, and say what each epoch spent where."""
    import crust
    from crust.training import checkpoint

    saves: list[float] = []
    true_save = checkpoint.save

    def save(*args: Any, **options: Any) -> None:
        start = time.perf_counter()
        true_save(*args, **options)
        saves.append(time.perf_counter() - start)

    checkpoint.save = save
    data, lines, ends = examples(n, classes), [], [time.perf_counter()]
    peak = Peak()

    def after(line: dict[str, Any]) -> None:
        ends.append(time.perf_counter())
        lines.append({**line["seconds"], "wall": ends[-1] - ends[-2], "chosen": line.get("n_members")})

    try:
        crust.fit(
            network(classes), data, method=method, epochs=epochs, batch_size=BATCH, learning_rate=0.05,
            run_dir=run_dir, on_epoch_end=after, progress=False, **settings,
        )  # fmt: skip
    finally:
        checkpoint.save = true_save
    for line, taken in zip(lines, saves, strict=True):
        line["checkpoint"] = taken
    kept = sorted(Path(run_dir, "checkpoint").iterdir())[-1]
    size = sum(file.stat().st_size for file in kept.iterdir())
    done = time.perf_counter() - ends[-1]
    return {"epochs": lines, "memory": peak.beyond(), "end": done, "checkpoint_bytes": size}


def opened(run_dir: str) -> dict[str, float]:
    """Seconds until the report is made, and until the review has its page."""
    import urllib.request

    from crust.report.page import audit_page
    from crust.review import Store
    from crust.review.server import ReviewServer
    from crust.runs.folder import RunFolder

    start = time.perf_counter()
    table, classes = RunFolder(run_dir).audit()
    read = time.perf_counter() - start
    text = audit_page(table, classes)
    report = time.perf_counter() - start
    start = time.perf_counter()
    place = Path(run_dir, "review.sqlite")
    store = Store(place, "scale", table["index"].tolist(), len(classes))
    server = ReviewServer(store, table, classes, who="bench")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sizes = [len(urllib.request.urlopen(server.link + name).read()) for name in ("", "data")]
    review = time.perf_counter() - start
    server.shutdown()
    server.server_close()
    store.close()
    return {
        "read": read, "report": report, "report_bytes": len(text), "review": read + review, "review_bytes": sum(sizes),
    }  # fmt: skip


def run_fit(n: int, classes: int, epochs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found = {"erm": fitted(n, classes, "erm", 3, f"{folder}/erm")}
        crust = {"select_every": 1, "select_after": 1}
        found["crust"] = fitted(n, classes, "crust", epochs, f"{folder}/crust", **crust)
        return {**found, "opened": opened(f"{folder}/crust")}


def run_resnet(images: int) -> dict[str, float]:
    """Images a second of a ResNet-8."""
    import numpy as np

    import crust
    from crust.data import from_arrays

    rng = np.random.default_rng(0)
    pixels = from_arrays(rng.integers(0, 256, (images, 3, 32, 32), dtype=np.uint8), rng.integers(0, 10, images))
    how: dict[str, Any] = {"method": "erm", "epochs": 3, "batch_size": 128, "validation": 0, "progress": False}
    result = crust.fit("resnet8", pixels, augment=False, **how)
    return {"rate": images / min(line["seconds"]["epoch"] for line in result.history)}


JOBS = {"fit": run_fit, "resnet": run_resnet}


def measure(job: str, **options: Any) -> dict[str, Any]:
    """A job in a process of its own."""
    words = json.dumps({"job": job, **options})
    print(f"{job} {options}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", "benchmarks.scale", "--job", words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def parts(found: dict[str, Any]) -> dict[str, float]:
    """Medians over the epochs: those of `erm` but the first, of `crust` those that selected, but the first of them."""

    def median(name: str, lines: list[dict[str, float]]) -> float:
        return statistics.median(line[name] for line in lines)

    erm, crust = found["erm"]["epochs"][1:], found["crust"]["epochs"][2:]
    look, selection = median("gradients", crust), median("selection", crust)
    books = statistics.median(max(0.0, line["wall"] - line["epoch"] - line["evaluation"] - line["gradients"])
                              for line in crust)  # fmt: skip
    return {
        "erm": median("epoch", erm), "look": look, "selection": selection, "books": books,
        "checkpoint": median("checkpoint", crust), "overhead": look + selection + books, "end": found["crust"]["end"],
    }  # fmt: skip


def table(sizes: dict[str, dict[str, float]], runs: dict[str, dict[str, Any]]) -> None:
    heads = "an `erm` epoch | look | selection | bookkeeping | of it checkpoint | end of the run | GiB beyond the data"
    print(f"\n| examples x classes | {heads} |\n|---|---|---|---|---|---|---|---|")
    for name, found in sizes.items():
        cells = [found[key] for key in ("erm", "look", "selection", "books", "checkpoint", "end")]
        print(
            f"| {name} | {' | '.join(f'{cell:.3g} s' for cell in cells)} | {runs[name]['crust']['memory'] / GIB:.2f} |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="1,000,000 examples in 1,000 classes as well")
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e4, 1e5, 1e6], help="examples")
    parser.add_argument("--classes", type=int, default=1000, help="of the large case")
    parser.add_argument("--cpu-time", action="store_true", help="of one core, where the machine has other work as well")
    parser.add_argument("--output", type=Path, default=RESULTS / "scale.json")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cpu_time:
        os.environ[CPU_TIME] = "1"
    if options.job:
        words = json.loads(options.job)
        if CPU_TIME in os.environ:
            time.perf_counter = time.process_time
        print(json.dumps(JOBS[words.pop("job")](**words)))
        return 0
    cases = [(int(n), 10, 6) for n in options.sizes]
    if options.large:
        cases.append((cases[-1][0], options.classes, 3))
    runs = {f"{n:,} x {c:,}": measure("fit", n=n, classes=c, epochs=epochs) for n, c, epochs in cases}
    sizes = {name: parts(found) for name, found in runs.items()}
    table(sizes, runs)
    few, most = f"{cases[0][0]:,} x 10", f"{int(options.sizes[-1]):,} x 10"
    ratio = math.log(options.sizes[-1] / options.sizes[0])

    def growth(name: str) -> float:
        return math.log(sizes[most][name] / sizes[few][name]) / ratio

    large, erm, page = sizes[most], sizes[most]["erm"], runs[most]["opened"]
    on_resnet = large["selection"] * measure("resnet", images=2560)["rate"] / options.sizes[-1]
    rows = [
        {"what": f"{most}: selection over an erm epoch", "found": large["selection"] / erm, "most": 0.3},
        {"what": "the same over an epoch of a ResNet-8, estimated", "found": on_resnet, "most": 0.01},
        {"what": "the look over an erm epoch", "found": large["look"] / erm},
        {"what": "checkpoint over an erm epoch", "found": large["checkpoint"] / erm, "most": 0.05},
        {"what": "overhead (look, selection, bookkeeping): n to the", "found": growth("overhead"), "most": 1.1},
        {"what": "selection alone: n to the", "found": growth("selection"), "most": 1.1},
        {"what": "GiB beyond the data", "found": runs[most]["crust"]["memory"] / GIB},
        {"what": "seconds until the report is made", "found": page["report"], "most": 2},
        {"what": "seconds until the review has its page", "found": page["review"], "most": 2},
    ]  # fmt: skip
    if options.large:
        last = list(runs)[-1]
        of = sizes[last]
        rows += [
            {"what": f"{last}: GiB beyond the data", "found": runs[last]["crust"]["memory"] / GIB, "most": 8},
            {"what": "checkpoint over an erm epoch", "found": of["checkpoint"] / of["erm"], "most": 0.05},
            {"what": "selection over an erm epoch", "found": of["selection"] / of["erm"]},
        ]
    fine = verdicts.show(rows)
    about = {"clock": "CPU time of one core" if options.cpu_time else "wall"}
    about |= {"date": date.today().isoformat(), "python": platform.python_version(), "cores": os.cpu_count()}
    options.output.write_text(json.dumps({**about, "rows": rows, "sizes": sizes, "runs": runs}, indent=1) + "\n")
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
