"""Make the runs of the scoreboard that are missing.

python -m benchmarks.regret --data DIR --jobs 2                     everything, most urgent first
python -m benchmarks.regret --data DIR --only '^(vowel|segment)/'   runs whose names match, as --list shows them
python -m benchmarks.regret --data DIR --dry-run                    how many are missing, and how long they will take

DIR has tables/NAME.csv, mails/spam.csv and mails/lists.csv, cifar10.npz, cifar10n_labels.npz, and the word vectors of
`python -m benchmarks.regret.get_vectors DIR`; conditions whose files are not there are named and left out. A line a
run is added to results/regret.jsonl; lines of results/cpu.jsonl count where they say what is needed. It may be stopped
or killed at any moment, and a second start makes what is missing; `python -m results.generate_pages` shows what is
there.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from benchmarks.regret import conditions, job_queue, splits
from crust.errors import CrustError

RESULTS = Path("results/regret.jsonl")
RECORDED = (Path("results/cpu.jsonl"),)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CRUST_DATA", "data")))
    parser.add_argument("--only", default="", metavar="REGEX", help="searched for in the names of the runs")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, each with one thread")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file of result lines")
    parser.add_argument("--runs", type=Path, default=Path("runs/regret"), help="where long runs keep their place")
    parser.add_argument("--dry-run", action="store_true", help="only say what is missing, and how long it will take")
    parser.add_argument("--list", action="store_true", help="only name the runs that are missing, in their order")
    options = parser.parse_args(arguments)
    try:
        splits.check_data(options.data)
        lines = job_queue.there(options.results, RECORDED)
        todo, gone = [], Counter[str]()
        for job in conditions.jobs(options.only):
            if lines.of(job) is not None:
                continue
            reason = splits.missing(job.condition, options.data)
            if reason is None:
                todo.append(job)
            else:
                gone[reason] += 1
        for reason, count in gone.items():
            job_queue.say(f"not ready: {count} runs, since {reason}")
        for contender in conditions.CONTENDERS:
            if not contender.is_there:
                job_queue.say(f"not ready: {contender.name}, since crust has no method {contender.method}")
        if options.list or options.dry_run:
            print(
                "\n".join(job.name for job in todo) if options.list else job_queue.forecast(todo, lines, options.jobs)
            )
            return 0
        failed = job_queue.work_off(todo, options.results, options.data, options.runs, options.jobs, job_queue.say)
    except CrustError as error:
        job_queue.say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        job_queue.say("stopped; start again to go on")
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
