"""How long `import crust` and `crust --help` take: the best of a few fresh processes, beside Python itself."""

import json
import platform
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

RUNS = 7
CASES = {
    "python": ["-c", "pass"],
    "import crust": ["-c", "import crust"],
    "crust --help": ["-m", "crust", "--help"],
    "crust select --help": ["-m", "crust", "select", "--help"],
}
LIMITS = {"import crust": 0.3, "crust --help": 1.0, "crust select --help": 1.0}


def seconds(words: list[str]) -> list[float]:
    """Wall time of each run, after one that fills the caches."""
    found = []
    for _ in range(RUNS + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - start)
    return sorted(found[1:])


def main() -> int:
    results = {name: seconds(words) for name, words in CASES.items()}
    late = False
    print(f"{'case':24}{'best':>8}{'median':>8}{'limit':>8}   seconds, {RUNS} runs")
    for name, times in results.items():
        limit = LIMITS.get(name)
        late |= limit is not None and times[0] > limit
        print(f"{name:24}{times[0]:8.3f}{times[RUNS // 2]:8.3f}{limit or '':>8}")
    path = Path(__file__).parent / "results" / "startup.json"
    path.parent.mkdir(exist_ok=True)
    about = {"date": date.today().isoformat(), "python": platform.python_version(), "machine": platform.machine()}
    rounded = {name: [round(t, 4) for t in times] for name, times in results.items()}
    path.write_text(json.dumps({**about, "seconds": rounded, "limits": LIMITS}, indent=1) + "\n")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
