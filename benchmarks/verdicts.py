"""Measures beside what they must be, as a Markdown table."""

import math
import sys


def show(rows: list[dict]) -> bool:
    """Print rows of `what`, `found` and a bound (`least` or `most`); False where one falls short."""
    print("\n| measure | found | must be | |\n|---|---|---|---|")
    fine = True
    for row in rows:
        good = row["found"] >= row.get("least", -math.inf) and row["found"] <= row.get("most", math.inf)
        fine &= good
        bound = f"at least {row['least']}" if "least" in row else f"at most {row['most']}" if "most" in row else ""
        verdict = "" if not bound else "reached" if good else "MISSED"
        spread = f" ({row['spread'][0]:.3g} to {row['spread'][1]:.3g})" if "spread" in row else ""
        print(f"| {row['what']} | {row['found']:.3g}{spread} | {bound} | {verdict} |")
    sys.stdout.flush()
    return fine
