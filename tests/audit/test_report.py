"""The parts of a report: text stays text, curves fit their frame, images come back as they were."""

import base64
import re
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crust.errors import InputError
from crust.report.gallery import image_uri
from crust.report.html import line_chart
from crust.report.html.builder import escape, tag
from crust.report.html.document import page
from crust.report.html.line_chart import Line
from crust.report.html.line_chart import line_chart as line_chart_of


@given(st.text())
def test_text_stays_text(text):
    html = tag("p", text, title=text)
    inside = html.removeprefix('<p title="').removesuffix("</p>")
    assert not re.search(r"[<\"'\x00]", inside.replace('">', "", 1))
    html.encode("utf-8")


def test_what_no_page_may_hold():
    assert escape("a\x00b\ud800c\x1b[31m\x85") == "a\ufffdb\ufffdc\ufffd[31m\ufffd"
    assert escape("line\nline\t🙂") == "line\nline\t🙂"
    assert escape(None) == ""


def test_html_is_not_escaped_twice():
    assert tag("p", tag("b", "&"), "&") == "<p><b>&amp;</b>&amp;</p>"
    # an operation on strings gives a string, which is text again
    assert escape(tag("b", "x") + "y") == "&lt;b&gt;x&lt;/b&gt;y"


@settings(max_examples=30)
@given(st.lists(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=30), max_size=4), st.none() | st.floats(-1e6, 1e6))
def test_curves_stay_in_their_frame(series, top):
    lines = [Line(str(i), values) for i, values in enumerate(series)]
    highest = max((v for values in series for v in values if v is not None), default=0.0)
    html = line_chart_of(lines, "title", top=None if top is None else max(top, highest))
    places = [
        tuple(map(float, pair.split(",")))
        for points in re.findall(r' points="([^"]*)"', html)
        for pair in points.split()
    ]
    assert len(places) == sum(v is not None for values in series for v in values)
    for x, y in places:
        assert line_chart.LEFT <= x <= line_chart.WIDTH - line_chart.RIGHT
        assert line_chart.TOP - 0.1 <= y <= line_chart.HEIGHT - line_chart.BOTTOM + 0.1


def test_what_is_not_a_number_is_left_out():
    html = line_chart_of([Line("a", [0.5, float("nan"), float("inf"), 0.7])], "title")
    assert "nan" not in html
    assert "inf" not in html
    assert len(re.search(r' points="([^"]*)"', html)[1].split()) == 2


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_a_scale_holds_its_values(low, size):
    ticks = line_chart.scale(low, low + size)
    assert 2 <= len(ticks) <= 7
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + size - 1e-6 * step


@given(st.lists(st.floats(0, 100), max_size=5))
def test_names_at_the_ends_do_not_cover_each_other(places):
    found = line_chart.spread(places, 20, 0, 100)
    for i in range(len(places)):
        for j in range(i):
            assert abs(found[i] - found[j]) >= 20 - 1e-9
            assert (found[i] - found[j]) * (places[i] - places[j]) >= 0
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)


@pytest.mark.parametrize("shape", [(8, 6), (1, 8, 6), (3, 8, 6)])
def test_images_come_back(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    kind, code = image_uri(pixels).split(",")
    assert kind == "data:image/png;base64"
    found = np.asarray(Image.open(BytesIO(base64.b64decode(code))))
    assert (found == (np.moveaxis(pixels, 0, 2) if shape[0] == 3 else pixels.reshape(8, 6))).all()


@pytest.mark.parametrize("pixels", [np.zeros((2, 8, 8), np.uint8), np.zeros(8, np.uint8), np.zeros((8, 8))])
def test_no_image(pixels):
    with pytest.raises(InputError, match="give"):
        image_uri(pixels)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e6)), min_size=1, max_size=20))
def test_bands_stay_in_their_frame(points):
    values, spread = zip(*points, strict=True)
    html = line_chart_of([Line("a", values, spread=spread)], "title", top=None)
    bands = re.findall(r'<polygon points="([^"]*)"', html)
    wide = any(low < high for _, low, high in Line("a", values, spread=spread).band(1))
    assert len(bands) == wide
    for x, y in [tuple(map(float, pair.split(","))) for band in bands for pair in band.split()]:
        assert line_chart.LEFT <= x <= line_chart.WIDTH - line_chart.RIGHT
        assert line_chart.TOP - 0.1 <= y <= line_chart.HEIGHT - line_chart.BOTTOM + 0.1


def test_only_the_script_that_is_named_may_run():
    text = page("t", script="let a = 1;")
    assert "script-src &#x27;sha256-" in text
    assert "script-src &#x27;none&#x27;" in page("t")
