"""The review server over real HTTP: who may ask, what is answered, and that confirmed decisions stay."""

import http.client
import json
import sqlite3
import threading

import numpy as np
import pytest
from PIL import Image
from tests.audit.samples import HOSTILE, audit
from tests.audit.serving import CLASSES, serving
from tests.refusals import refused

from crust.errors import InputError
from crust.report.previews import Pictures, as_image, rows_of
from crust.review import ReviewServer, Store
from crust.review.server import BODY


@pytest.fixture
def server(tmp_path):
    pixels = Pictures(lambda index: as_image(np.full((3, 40, 50), index, np.uint8)))
    with serving(tmp_path, audit(), looks=pixels, name="<b>") as found:
        yield found


def ask(server, path, body=None, headers=None, method=None, token=None):
    """One request; a string or bytes as body is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    raw = json.dumps(body) if isinstance(body, dict | list) else body
    sent = {"Content-Type": "application/json"} if body is not None else {}
    prefix = f"/{server.token if token is None else token}/" if token != "" else ""
    connection.request(
        method or ("GET" if body is None else "POST"), f"{prefix}{path}", raw, {**sent, **(headers or {})}
    )
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def decide(server, *changes):
    answer, content = ask(server, "decide", {"changes": [list(one) for one in changes]})
    return answer.status, json.loads(content)


def test_the_page_and_its_files(server):
    for path, kind in (
        ("", "text/html"),
        ("review.js", "text/javascript"),
        ("style.css", "text/css"),
        ("data", "json"),
    ):
        answer, content = ask(server, path)
        assert answer.status == 200
        assert kind in answer.headers["Content-Type"]
        assert content
    found = json.loads(ask(server, "data")[1])
    assert "<b>" in found["name"]  # the page itself is the same for all
    assert (found["count"], found["classes"], found["who"], found["looks"]) == (30, CLASSES, "first", "images")


def test_every_answer_forbids_framing_foreign_scripts_and_storing(server):
    for answer, _ in (ask(server, ""), ask(server, "image/3"), ask(server, "nothing"), ask(server, "", token="wrong")):
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_it_listens_on_this_machine_only(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.link.startswith(f"http://127.0.0.1:{server.port}/")


@pytest.mark.parametrize("token", ["wrong", "", "..", "%2e%2e"])
def test_without_the_token_nothing_is_answered(server, token):
    for path in ("", "data", "image/1", "state"):
        answer, content = ask(server, f"/{path}" if token == "" else path, token=token)
        assert answer.status == 403
        assert list(json.loads(content)) == ["error"]
    answer, _ = ask(server, "decide" if token else "/decide", {"changes": [[1, 0, "keep", None]]}, token=token)
    assert answer.status == 403
    assert server.store.decisions() == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://127.0.0.1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_requests_from_elsewhere_are_refused(server, headers, status):
    assert ask(server, "data", headers=headers)[0].status == status
    answer, _ = ask(server, "decide", {"changes": [[1, 0, "keep", None]]}, headers)
    assert answer.status == status
    assert len(server.store.decisions()) == (status == 200)


def test_a_window_may_follow_a_link_to_the_page_and_nothing_else(server):
    """The file that opens the page is another page to the browser."""
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(server, "", headers=link)[0].status == 200
    for path in ("data", "state", "image/1"):
        assert ask(server, path, headers=link)[0].status == 403
    assert ask(server, "", {}, link)[0].status == 403
    assert ask(server, "", headers=link, token="wrong")[0].status == 403
    for other in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors"}, {"Origin": "http://evil.example"}):
        assert ask(server, "", headers={**link, **other})[0].status == 403


def test_the_link_without_its_last_slash_leads_to_the_page(server):
    for host in server.hosts():
        answer, content = ask(server, f"/{server.token}", headers={"Host": host}, token="")
        assert (answer.status, answer.headers["Location"], content) == (302, f"/{server.token}/", b"")
        assert answer.headers["Cache-Control"] == "no-store"
    assert ask(server, f"/{server.token}?x=1", token="")[0].headers["Location"] == f"/{server.token}/"
    assert ask(server, f"/{server.token}", {}, token="")[0].status == 404
    answer, _ = ask(server, f"/{server.token}x", token="")
    assert (answer.status, answer.headers["Location"]) == (403, None)


def test_its_own_names_are_answered(server):
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}"):
        assert ask(server, "data", headers={"Host": host, "Origin": f"http://{host}"})[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "../etc/passwd",
        "..%2f..%2fetc/passwd",
        "image/../../../etc/passwd",
        "image/30",
        "image/-1",
        "image/1.0",
        "image/1e1",
        "image/%D9%A1",
        "image/" + "9" * 400,
        "image/",
        "image/1/2",
        "row/30",
        "changes/x",
        "changes/-1",
        "data/",
        "review.js/x",
        "//data",
        "review.sqlite",
        "files",
    ],
)
def test_nothing_but_the_examples_is_served(server, path):
    answer, content = ask(server, path)
    assert answer.status == 404
    assert b"root:" not in content


def test_images_come_by_index(server, tmp_path):
    answer, content = ask(server, "image/7")
    assert answer.headers["Content-Type"] == "image/webp"
    (tmp_path / "image").write_bytes(content)
    with Image.open(tmp_path / "image") as image:
        assert image.size == (50, 40)
        assert all(abs(value - 7) < 8 for value in image.convert("RGB").getpixel((5, 5)))
    assert json.loads(ask(server, "row/7")[1]) == {"row": None}


def test_an_image_that_is_gone_is_said_to_be(tmp_path):
    def gone(index):
        raise InputError("cat/a.jpg cannot be read as an image (no such file)")

    with serving(tmp_path, audit(), looks=Pictures(gone)) as server:
        answer, content = ask(server, "image/1")
        assert answer.status == 404
        assert "image 1 cannot be read" in json.loads(content)["error"]
        assert decide(server, (1, 0, "keep", None))[0] == 200  # the work goes on


def test_rows_come_as_text(tmp_path):
    texts = [HOSTILE[i % len(HOSTILE)] for i in range(30)]
    with serving(tmp_path, audit(), looks=rows_of({"text": texts})) as server:
        raw = ask(server, "row/0")[1]
        assert b"<" not in raw
        assert json.loads(raw)["row"] == [texts[0]]
        assert ask(server, "image/0")[0].status == 404
        assert json.loads(ask(server, "data")[1])["rows"]["0"] == [texts[0]]


def test_deciding_and_undoing(server):
    status, found = decide(server, (1, 0, "relabel", 2), (2, 0, "keep", None))
    assert status == 200
    assert [(one["example"], one["version"], one["who"]) for one in found["decisions"]] == [
        (1, 1, "first"),
        (2, 1, "first"),
    ]
    assert found["conflicts"] == []
    state = json.loads(ask(server, "state")[1])
    assert [one["kind"] for one in state["decisions"]] == ["relabel", "keep"]
    assert (state["undoable"], state["last"]) == ([found["batch"]], 2)
    answer, content = ask(server, "undo", {"batch": found["batch"]})
    assert answer.status == 200
    assert [one["kind"] for one in json.loads(content)["decisions"]] == [None, None]
    changes = json.loads(ask(server, "changes/2")[1])
    assert [one["example"] for one in changes["decisions"]] == [1, 2]
    answer, content = ask(server, "undo", {"batch": found["batch"]})
    assert (answer.status, "undone already" in json.loads(content)["error"]) == (400, True)


def test_a_conflict_is_shown_and_not_written(server):
    decide(server, (1, 0, "relabel", 2))
    status, found = decide(server, (1, 0, "keep", None), (3, 0, "skip", None))
    assert status == 200
    assert [one["example"] for one in found["decisions"]] == [3]
    assert found["conflicts"][0]["now"]["label"] == 2
    assert {one.example: one.kind for one in server.store.decisions()} == {1: "relabel", 3: "skip"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"changes": [[99, 0, "keep", None]]}, 400),
        ({"changes": [[1, 0, "relabel", 3]]}, 400),
        ({"changes": [[1, 0, "burn", None]]}, 400),
        ({"changes": [[1, 0, "keep"]]}, 400),
        ({"changes": [["1", 0, "keep", None]]}, 400),
        ({"changes": [[True, 0, "keep", None]]}, 400),
        ({"changes": [[1, -1, "keep", None]]}, 400),
        ({"changes": [[1, 0, "keep", None], [1, 0, "skip", None]]}, 400),
        ({"changes": [[1, 0, "relabel", "<b>"]]}, 400),
        ({"changes": []}, 400),
        ({}, 400),
        ([], 400),
        ("no json", 400),
        ("[" * 100_000, 400),
        (b"\xff\xfe", 400),
        ("", 400),
    ],
)
def test_bad_decisions_get_a_sentence_and_change_nothing(server, body, status):
    answer, content = ask(server, "decide", body)
    assert answer.status == status
    assert json.loads(content)["error"]
    assert server.store.decisions() == []
    assert ask(server, "data")[0].status == 200


def test_bodies_are_limited_and_must_say_what_they_are(server):
    assert ask(server, "decide", "x" * 10, {"Content-Length": str(BODY + 1)})[0].status == 413
    assert ask(server, "decide", "{}", {"Content-Type": "text/plain"})[0].status == 415
    assert ask(server, "decide", "{}", {"Content-Length": "-1"})[0].status == 411
    assert ask(server, "decide", "{}", {"Content-Length": "9" * 20})[0].status == 413
    answer, content = ask(server, "decide", "{}", {"Content-Length": "9" * 5000})
    assert (answer.status, "20 digits at most" in json.loads(content)["error"]) == (400, True)
    assert ask(server, "decide", "{}", {"Transfer-Encoding": "chunked"})[0].status == 411
    assert ask(server, "decide", {"changes": []}, method="PUT")[0].status == 501
    assert ask(server, "elsewhere", {})[0].status == 404
    assert server.store.decisions() == []


def test_many_windows_at_once(server):
    """Every window decides examples of its own, and all fight for one: each answer is true in the end."""
    answers = []

    def window(number):
        for i in range(10):
            answers.append(decide(server, (number, i, "relabel", i % 3), (20, len(answers) % 3, "keep", None)))

    threads = [threading.Thread(target=window, args=[number]) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(status == 200 for status, _ in answers)
    final = {one.example: one for one in server.store.decisions()}
    assert all(final[number].version == 10 for number in range(6))
    confirmed = [one["version"] for _, found in answers for one in found["decisions"] if one["example"] == 20]
    assert sorted(confirmed) == list(range(1, final[20].version + 1))


def test_a_database_that_fails_is_answered_with_why(tmp_path, monkeypatch):
    monkeypatch.setattr("crust.review.decision_store.WAIT", 0.05)
    with serving(tmp_path, audit()) as server:
        batch = decide(server, (1, 0, "keep", None))[1]["batch"]
        other = sqlite3.connect(server.store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for path, body in (("decide", {"changes": [[2, 0, "keep", None]]}), ("undo", {"batch": batch})):
            answer, content = ask(server, path, body)
            assert answer.status == 503
            assert "review.sqlite was locked by another program" in json.loads(content)["error"]
        other.execute("ROLLBACK")
        assert decide(server, (2, 0, "keep", None))[0] == 200
        other.execute("DROP TABLE events")
        other.close()
        answer, content = ask(server, "state")
        assert (answer.status, "no such table: events" in json.loads(content)["error"]) == (503, True)


def test_a_port_in_use_opens_no_database(server, tmp_path):
    with refused("port"):
        ReviewServer(lambda: Store(tmp_path / "other.sqlite", "a"), audit(), CLASSES, who="second", port=server.port)
    assert not (tmp_path / "other.sqlite").exists()


def test_without_a_database_the_port_is_let_go(tmp_path):
    (tmp_path / "wrong.sqlite").write_text("no database" * 100)
    with ReviewServer(lambda: Store(tmp_path / "right.sqlite", "a"), audit(), CLASSES, who="first") as server:
        port = server.port
        server.store.close()
    for _ in range(2):  # the second time it is in use, unless the first has let it go
        with refused("not-a-review"):
            ReviewServer(lambda: Store(tmp_path / "wrong.sqlite", "a"), audit(), CLASSES, who="first", port=port)


def test_a_port_in_use_gets_a_sentence(server, tmp_path):
    store = Store(tmp_path / "other.sqlite", "audit 2")
    with pytest.raises(InputError, match=f"port {server.port} is in use: give another with --port"):
        ReviewServer(store, audit(), CLASSES, who="second", port=server.port)
    store.close()


def test_a_broken_request_does_not_end_it(server):
    import socket

    for text in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00\xff" * 100 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as raw:
            raw.sendall(text)
            raw.settimeout(5)
            raw.recv(100)
    assert ask(server, "data")[0].status == 200
