"""`crust review`, from end to end: served, killed, reviews that others changed, and one sentence for what is wrong."""

import http.client
import json
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml
from tests.audit.samples import audit
from tests.cli.common import call, decided, said

from crust.review import ReviewServer, Store, run_key
from crust.runs.folder import RunFolder


def handmade(folder, table=None, classes=("cat", "dog", "cow")):
    """A run's folder with an audit and nothing else."""
    folder.mkdir()
    (audit(200, classes) if table is None else table).to_parquet(folder / "audit.parquet")
    (folder / "config.yaml").write_text(yaml.safe_dump({"classes": list(classes), "method": "erm"}))
    return folder


class Server:
    """`crust review` as a process of its own."""

    def __init__(self, run, *words):
        command = [sys.executable, "-m", "crust", "review", str(run), "--no-open", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.link = line.removeprefix("open: ").strip()
        if not self.link.startswith("http://127.0.0.1:"):
            raise AssertionError(line + self.process.stderr.read())

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.link}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())

    def end(self, how):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


def test_the_command_serves_and_ends(tmp_path, capsys):
    run = handmade(tmp_path / "run")
    server = Server(run, "--as", "first b.")
    try:
        assert server.ask("data")["who"] == "first b."
        assert server.ask("decide", {"changes": [[3, 0, "keep", None]]})["decisions"][0]["who"] == "first b."
        port = re.search(r":(\d+)/", server.link)[1]
        said(capsys, f"review {run} --no-open --port {port}", f"port {port} is in use: give another with --port")
    finally:
        code, out, err = server.end(signal.SIGINT)
    assert code == 0, err
    assert f"next: crust apply {run}" in out
    assert "Traceback" not in err
    assert {path.name for path in run.iterdir()} == {"audit.parquet", "config.yaml", "review.sqlite"}


def test_what_cannot_be_reviewed(tmp_path, capsys):
    said(capsys, "review nowhere", "there is no folder nowhere: give the folder of a run")
    run = handmade(tmp_path / "run")
    said(capsys, f"review {run} --export a.csv", "has no review yet: begin one")
    said(capsys, f"review {run} --export {run}/audit.parquet", "would overwrite what is read")
    said(capsys, f"review {run} --export a.txt", r"--export a.txt: the name must end in .csv or .parquet")
    said(capsys, ["review", str(run), "--as", " "], "--as has no name")
    said(capsys, f"review {run} --port 70000", "'--port': Input should be less than or equal to 65535")
    (run / "review.sqlite").write_text("no database" * 100)
    said(
        capsys, f"review {run} --no-open", r"review.sqlite cannot be used as the database of a review .*: move it away"
    )


def test_a_port_in_use_leaves_nothing_behind(tmp_path, capsys):
    run = handmade(tmp_path / "run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said(capsys, f"review {run} --no-open --port {port}", f"port {port} is in use")
    assert {path.name for path in run.iterdir()} == {"audit.parquet", "config.yaml"}


@pytest.mark.parametrize(
    ("statement", "pattern"),
    [
        ("DROP TABLE decisions", r"review.sqlite has lost tables of the review"),
        (
            "INSERT INTO decisions (example, version, kind, label, who, at) VALUES (999, 1, 'relabel', 0, 'a', '')",
            "a decision about example 999, which this",
        ),
        ("UPDATE decisions SET label = 77", "about example 3 with the class number 77, which this audit does not have"),
    ],
)
def test_a_review_that_something_else_has_changed(tmp_path, capsys, statement, pattern):
    run = handmade(tmp_path / "run")
    (run / "recipe.yaml").write_text(yaml.safe_dump({"data": "digits"}))
    decided(run, e3="cow")
    connection = sqlite3.connect(run / "review.sqlite", isolation_level=None)
    connection.execute(statement)
    connection.close()
    said(capsys, f"review {run} --export {tmp_path}/a.csv", pattern)
    said(capsys, f"apply {run}", pattern)
    assert not (tmp_path / "a.csv").exists()


def test_the_browser_is_not_told_the_link_in_its_words(tmp_path, capsys, monkeypatch):
    """Other users of the machine see the words that programs are started with."""
    opened = {}

    def open_browser(address):
        path = Path(urlsplit(address).path)
        opened.update(address=address, path=path, text=path.read_text(encoding="utf-8"))
        opened["modes"] = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)]

    def stopped(server):
        assert opened["path"].exists()  # a browser may be slow to start
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", open_browser)
    monkeypatch.setattr(ReviewServer, "serve_forever", stopped)
    assert call(f"review {handmade(tmp_path / 'run')}") == 0
    link = re.search(r"open: (http://127.0.0.1:\d+/(\S+)/)\n", capsys.readouterr().out)
    assert opened["address"].startswith("file:///")
    assert link[2] not in opened["address"]
    assert f'http-equiv="refresh" content="0; url={link[1]}"' in opened["text"]
    assert opened["modes"] == [0o600, 0o700]
    assert not opened["path"].parent.exists()


def killed(folder, times):
    """Kill the server again and again in the middle of a stream of decisions; return what was confirmed."""
    run = handmade(folder / "run", audit(2000, ("cat", "dog", "cow")))
    rng = np.random.default_rng(0)
    confirmed = {}  # by example, the last decision that was confirmed
    sent = {}  # and every one that was sent after it, which may or may not have arrived
    at = 0
    for _ in range(times):
        server = Server(run)
        state = {one["example"]: one for one in server.ask("state")["decisions"]}
        for example, one in confirmed.items():
            assert (state[example]["kind"], state[example]["label"]) in [one, *sent.get(example, [])]
        timer = threading.Timer(float(rng.uniform(0.02, 0.25)), server.process.kill)
        answers = 0
        try:
            while True:
                if answers == 5:  # however slow the machine is
                    timer.start()
                answers += 1
                example, label = at % 2000, int(rng.integers(3))
                at += 1
                version = state[example]["version"] if example in state else 0
                sent.setdefault(example, []).append(("relabel", label))
                answer = server.ask("decide", {"changes": [[example, version, "relabel", label]]})
                for one in answer["decisions"]:
                    state[one["example"]] = one
                    confirmed[one["example"]] = (one["kind"], one["label"])
                    sent[one["example"]] = []
        except (http.client.HTTPException, OSError, ValueError):  # URLError is an OSError
            pass  # it was killed before it answered
        timer.join()
        assert server.end(signal.SIGKILL)[0] == -signal.SIGKILL
    assert len(confirmed) >= 5 * times
    table, classes = RunFolder(run).audit()
    store = Store(run / "review.sqlite", run_key(table, classes))
    final = {one.example: (one.kind, one.label) for one in store.decisions()}
    store.close()
    for example, one in confirmed.items():
        assert final[example] in [one, *sent[example]]


def test_killed_it_goes_on_where_it_was(tmp_path):
    killed(tmp_path, 2)


@pytest.mark.slow
def test_fifty_kills_lose_no_confirmed_decision(tmp_path):
    killed(tmp_path, 50)
