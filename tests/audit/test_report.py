"""The parts of a report: text stays text, curves fit their frame, images come back as they were."""

import base64
import hashlib
import re
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from PIL import Image

from crust.report import charts
from crust.report.charts import Line, line_chart
from crust.report.document import TEMPLATES, page, render
from crust.report.previews import as_image, picture_uri


@given(st.text())
def test_text_stays_text(text):
    html = page("report/document.html.j2", text)
    inside = re.search(r"<h1>(.*)</h1>\n", html, re.DOTALL)[1]
    assert not re.search(r"[<\"'\x00]", inside)
    html.encode("utf-8")


def test_what_no_page_may_hold():
    assert "<h1>a\ufffdb\ufffdc\ufffd[31m\ufffd</h1>" in page("report/document.html.j2", "a\x00b\ud800c\x1b[31m\x85")
    assert "<h1>line\nline\t🙂</h1>" in page("report/document.html.j2", "line\nline\t🙂")


def test_every_template_escapes_and_refuses_what_it_was_not_given():
    """Also in attributes, and whatever the file is called."""
    link = '"><script>alert(1)</script>'
    assert "<script" not in render("review/open.html.j2", link=link)
    assert TEMPLATES.from_string('<p title="{{ x }}">{{ x }}{{ nothing }}').render(x="\"'<&", nothing=None) == (
        '<p title="&#34;&#39;&lt;&amp;">&#34;&#39;&lt;&amp;'
    )
    with pytest.raises(UndefinedError):
        render("review/open.html.j2")


def test_html_is_not_escaped_twice():
    chart = line_chart([Line("a & b", [0.5])], "title")
    assert "a &amp; b" in TEMPLATES.from_string("{{ chart }}").render(chart=chart)
    # with a string that is not HTML it is escaped all the same
    assert "&lt;b&gt;" in TEMPLATES.from_string("{{ chart ~ text }}").render(chart=chart, text="<b>")


@settings(max_examples=30)
@given(st.lists(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=30), max_size=4), st.none() | st.floats(-1e6, 1e6))
def test_curves_stay_in_their_frame(series, top):
    lines = [Line(str(i), values) for i, values in enumerate(series)]
    highest = max((v for values in series for v in values if v is not None), default=0.0)
    html = line_chart(lines, "title", top=None if top is None else max(top, highest))
    places = [
        tuple(map(float, pair.split(",")))
        for points in re.findall(r' points="([^"]*)"', html)
        for pair in points.split()
    ]
    assert len(places) == sum(v is not None for values in series for v in values)
    for x, y in places:
        assert charts.LEFT <= x <= charts.WIDTH - charts.RIGHT
        assert charts.TOP - 0.1 <= y <= charts.HEIGHT - charts.BOTTOM + 0.1


def test_what_is_not_a_number_is_left_out():
    html = line_chart([Line("a", [0.5, float("nan"), float("inf"), 0.7])], "title")
    assert "nan" not in html
    assert "inf" not in html
    assert len(re.search(r' points="([^"]*)"', html)[1].split()) == 2


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_a_scale_holds_its_values(low, size):
    ticks = charts.scale(low, low + size)
    assert 2 <= len(ticks) <= 7
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + size - 1e-6 * step


@given(st.lists(st.floats(0, 100), max_size=5))
def test_names_at_the_ends_do_not_cover_each_other(places):
    found = charts.spread(places, 20, 0, 100)
    for i in range(len(places)):
        for j in range(i):
            assert abs(found[i] - found[j]) >= 20 - 1e-9
            assert (found[i] - found[j]) * (places[i] - places[j]) >= 0
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)


@pytest.mark.parametrize("shape", [(8, 6), (1, 8, 6), (3, 8, 6)])
def test_images_come_back(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    kind, code = picture_uri(as_image(pixels), 96).split(",")
    assert kind == "data:image/png;base64"
    found = np.asarray(Image.open(BytesIO(base64.b64decode(code))))
    assert (found == (np.moveaxis(pixels, 0, 2) if shape[0] == 3 else pixels.reshape(8, 6))).all()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e6)), min_size=1, max_size=20))
def test_bands_stay_in_their_frame(points):
    values, spread = zip(*points, strict=True)
    html = line_chart([Line("a", values, spread=spread)], "title", top=None)
    bands = re.findall(r'<polygon points="([^"]*)"', html)
    wide = any(low < high for _, low, high in Line("a", values, spread=spread).band(1))
    assert len(bands) == wide
    for x, y in [tuple(map(float, pair.split(","))) for band in bands for pair in band.split()]:
        assert charts.LEFT <= x <= charts.WIDTH - charts.RIGHT
        assert charts.TOP - 0.1 <= y <= charts.HEIGHT - charts.BOTTOM + 0.1


def test_only_the_script_that_is_named_may_run():
    text = page("report/document.html.j2", "t", scripts=["experiments/outputs/sort.js"])
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'; img-src data:" in text
    assert "script-src 'none'" in page("report/document.html.j2", "t")
