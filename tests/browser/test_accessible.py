"""No page has a fault that axe-core finds: names of controls, contrast in both schemes, roles, order."""

import pytest
from tests.audit.samples import audit
from tests.audit.serving import CLASSES, serving
from tests.browser.reviewing import colours, ready
from tests.report.test_audit_page import calibration

from crust.report.page import audit_page
from crust.report.previews import Pictures, rows_of

pytestmark = pytest.mark.browser

N = 40
COLUMNS = {"age": [20 + i % 30 for i in range(N)], "town": ["Ulm", "Bonn"] * (N // 2), "more": ["so " * 40] * N}
LOOKS = {
    "images": Pictures(colours),
    "texts": rows_of({"text": [f"text {i} " * (1 + i % 60) for i in range(N)]}),
    "table": rows_of(COLUMNS),
}


@pytest.fixture(scope="session")
def axe():
    module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")
    return module.Axe()


def faults(axe, page):
    page.wait_for_timeout(100)
    found = axe.run(page).response["violations"]
    return [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found]


def sample():
    table = audit(N, CLASSES, [f"folder/image {i:03d}.png" for i in range(N)])
    table["medoids"] = [[(i + 1) % N, (i + 7) % N] for i in range(N)]
    table["duplicate_of"] = [0 if i == 3 else -1 for i in range(N)]
    return table


def points(table):
    return table[["label_quality", "predicted_prob"]].to_numpy(), "made-up numbers"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", LOOKS)
def test_the_report(open_page, tmp_path, axe, kind, scheme):
    table = sample()
    path = tmp_path / "report.html"
    path.write_text(audit_page(table, CLASSES, looks=LOOKS[kind], calibration=calibration(), points=points(table)))
    page = ready(open_page(path, scheme=scheme))
    assert faults(axe, page) == []
    page.locator("#gallery [data-place] >> nth=0").click()
    assert faults(axe, page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", LOOKS)
def test_the_review(open_page, tmp_path, axe, kind, scheme):
    table = sample()
    with serving(
        tmp_path, table, looks=LOOKS[kind], points=lambda: points(table), next_steps=["crust apply x"]
    ) as server:
        page = ready(open_page(server.link, scheme=scheme))
        page.keyboard.press("1")
        page.click("#show-map")
        page.wait_for_selector(".map[data-ready=yes]")
        page.wait_for_selector("#grid .done")
        assert faults(axe, page) == []
        for key, dialog in (("r", "#picker"), ("x", "#why")):
            page.keyboard.press(key)
            page.wait_for_selector(f"{dialog}[open]")
            assert faults(axe, page) == []
            page.keyboard.press("Escape")
        page.click("#finish")
        page.wait_for_selector("#finished[open]")
        assert faults(axe, page) == []
        page.context.close()


def test_demo_theory_and_results(open_page, tmp_path, axe):
    from tests.browser.test_results_page import LINES

    from crust.experiments.paper import EXPERIMENTS, write_results_page
    from crust.report.document import page as document

    table = (["", "erm", "crust"], [["accuracy", "0.5", "0.6"]])
    epochs = (["epoch", "σ₁"], [["0", "1.5"]])
    theory = document(
        "cli/theory.html.j2", "Theory", about="about", pictures=[], epochs=epochs, quality=([], []), bounds=[],
        method="erm", outcome=None, holds=True, premises=([], []),
    )  # fmt: skip
    demo = document(
        "cli/demo.html.j2", "Demo", summary="summary", rows=table[1], footnote="note", charts=[], worst=[],
        false_alarms=[], missed=[], commands=["crust demo"],
    )  # fmt: skip
    for name, text in (("theory.html", theory), ("demo.html", demo)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    write_results_page(EXPERIMENTS, LINES, "cpu", tmp_path / "results.html")
    for name in ("theory.html", "demo.html", "results.html"):
        for scheme in ("light", "dark"):
            assert faults(axe, open_page(tmp_path / name, scheme=scheme)) == [], name
