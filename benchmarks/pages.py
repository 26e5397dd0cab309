"""The pages at scale, in a real browser: opening those of a million examples, and moving a map of a hundred thousand.

python -m benchmarks.pages        needs Chromium and playwright (the extra dev)
"""

import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crust.report.page import audit_page

MANY, POINTS, CLASSES = 1_000_000, 100_000, 100
TRIES = 3
SECONDS, FRAMES = 2.0, 20.0  # to open at most; a second at least
WINDOW = {"width": 1400, "height": 900}
# Moves or zooms the map without a pause for two seconds, and counts the frames that it has drawn meanwhile.
MOVE = """async (zooms) => {
  const canvas = document.querySelector(".map canvas");
  const root = document.querySelector(".map");
  const box = canvas.getBoundingClientRect();
  const at = (type, x, y, more) => canvas.dispatchEvent(new (type === "wheel" ? WheelEvent : PointerEvent)(type,
    { bubbles: true, cancelable: true, clientX: box.left + x, clientY: box.top + y, pointerId: 1, ...more }));
  canvas.setPointerCapture = () => {};
  document.querySelector("[name=drag][value=move]").click();
  canvas.focus();
  const first = Number(root.dataset.frames);
  const start = performance.now();
  if (!zooms) at("pointerdown", 300, 200);
  for (let i = 0; performance.now() - start < 2000; i += 1) {
    if (zooms) at("wheel", box.width / 2, box.height / 2, { deltaY: i % 60 < 30 ? -60 : 60 });
    else at("pointermove", 300 + 100 * Math.sin(i / 20), 200 + 80 * Math.cos(i / 20));
    await new Promise((next) => window.requestAnimationFrame(next));
  }
  if (!zooms) at("pointerup", 300, 200);
  return (Number(root.dataset.frames) - first) / ((performance.now() - start) / 1000);
}"""


def table(n: int, seed: int = 0) -> pd.DataFrame:
    """An audit: every eighth label differs from the predicted one, half of these are label issues."""
    rng = np.random.default_rng(seed)
    names = np.array([f"class {i}" for i in range(CLASSES)])
    given = rng.integers(0, CLASSES, n)
    better = np.where(rng.random(n) < 0.125, rng.integers(0, CLASSES, n), given)
    quality = np.where(given != better, 0.3 * rng.random(n), 0.3 + 0.7 * rng.random(n))
    return pd.DataFrame(
        {
            "index": np.arange(n), "id": [f"class_{c}/image_{i:07d}.jpg" for i, c in enumerate(given.tolist())],
            "given_label": names[given], "predicted_label": names[better],
            "predicted_prob": rng.random(n), "label_quality": quality, "is_label_issue": quality < 0.15,
        }
    )  # fmt: skip


def opened(browser: Any, address: str) -> float:
    """Seconds until the page is there and answers; the best of some."""
    found = []
    for _ in range(TRIES):
        page = browser.new_page(viewport=WINDOW)
        start = time.perf_counter()
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        found.append(time.perf_counter() - start)
        page.close()
    return min(found)


def reviewed(path: Path, measure: Callable[[str], float]) -> tuple[float, float]:
    """Seconds until `crust review` has its link, and until the page is open."""
    start = time.perf_counter()
    command = [sys.executable, "-u", "-m", "crust", "review", str(path), "--no-open", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        link = process.stdout.readline().removeprefix("open: ").strip()
        ready = time.perf_counter() - start
        try:
            return ready, measure(link)
        finally:
            process.terminate()


def main() -> int:
    from playwright.sync_api import sync_playwright

    program = next((found for found in map(shutil.which, ("chromium", "google-chrome")) if found), None)
    if program is None:
        print("no browser: install Chromium")
        return 1
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        million = folder / "million.parquet"
        table(MANY).to_parquet(million)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "crust", "report", str(million), "--quiet"], check=True)
        found["write the report of 1,000,000, seconds"] = time.perf_counter() - start
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        report = folder / "million.report.html"
        found["open the report of 1,000,000, seconds"] = opened(browser, report.as_uri())
        ready, seconds = reviewed(million, lambda link: opened(browser, link))
        found["start the review of 1,000,000, seconds"] = ready
        found["open the review of 1,000,000, seconds"] = seconds
        points = np.random.default_rng(1).beta(2, 2, (POINTS, 2)).astype(np.float32)
        page = browser.new_page(viewport=WINDOW)
        path = folder / "map.html"
        path.write_text(audit_page(table(POINTS), points=(points, "features")), encoding="utf-8")
        page.goto(path.as_uri())
        page.wait_for_selector(".map[data-ready=yes]")
        for what, zooms in (("moved", False), ("zoomed", True)):
            found[f"a map of 100,000 points {what}, frames a second"] = max(
                page.evaluate(MOVE, zooms) for _ in range(3)
            )
        browser.close()
    late = False
    for what, value in found.items():
        limit = FRAMES if "frames" in what else SECONDS if what.startswith("open") else None
        late |= limit is not None and (value < limit if "frames" in what else value > limit)
        print(f"{what:54}{value:8.2f}{'' if limit is None else f'   limit {limit:g}'}")
    place = Path(__file__).parent / "results" / "pages.json"
    place.parent.mkdir(exist_ok=True)
    about = {"date": date.today().isoformat(), "machine": platform.processor() or platform.machine()}
    place.write_text(json.dumps({**about, "found": {what: round(v, 3) for what, v in found.items()}}, indent=1) + "\n")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
