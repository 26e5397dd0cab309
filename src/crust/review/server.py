"""The server of the review page: for this machine only, for the holder of the link only."""

from __future__ import annotations

import errno
import hmac
import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crust.audit.audit_tables import suspects
from crust.audit.reliability import warning_of
from crust.errors import CrustError, InputError
from crust.report.document import as_json, read_together
from crust.report.payload import MOST, pack, packed_points, worst_order
from crust.report.previews import Looks, picture_bytes
from crust.review.decision_store import Store
from crust.review.decisions import Change, Conflict, Decision, StoreError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ReviewServer"]

log = logging.getLogger("crust.audit")

ADDRESS = "127.0.0.1"
BODY = 1 << 20  # bytes of a request at most
DIGITS = 20  # of the number that says how long a request is: Python reads no numbers of thousands
SIDE = 640  # pixels of the longer side of an image
MORE = 2000  # examples that a page gets at a time, beyond those that it has from the beginning
SILENCE = 60  # seconds until a connection that says nothing is closed
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Moved(Exception):
    """A request that shall be made elsewhere: the message is the path."""


class Refused(Exception):
    """A request that gets no answer but why."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


class ReviewServer(ThreadingHTTPServer):
    """Serves the review page of one audit on this machine.

    Args:
        store: where decisions go; or a function that opens it, called once the port is ours.
        table: the audit.
        classes: its classes in the order of their numbers.
        looks: how examples are shown, or None.
        who: decides in this server.
        port: 0 takes one that is free.
        name: what is reviewed.
        least: the error score from which on a label is a suspect; None: those that the audit calls label issues.
        points: lays out the map: where the examples lie, from 0 to 1, and from what; None where that cannot be.
        next_steps: the commands that follow, for the end.
        without: why the examples are not shown, where they are not.
        most: examples that are in the page from the beginning, the worst; it asks for others.

    Example:
        >>> import tempfile, pandas as pd
        >>> columns = {"given_label": ["a", "b"], "predicted_label": ["a", "a"], "predicted_prob": [1, 0.7]}
        >>> table = pd.DataFrame({"index": [0, 1], **columns, "label_quality": [0.9, 0.1]})
        >>> store = Store(f"{tempfile.mkdtemp()}/review.sqlite", "audit 1")
        >>> server = ReviewServer(store, table, ["a", "b"], who="first")
        >>> server.link
        'http://127.0.0.1:.../.../'
        >>> server.server_close()
        >>> store.close()
    """

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would let two servers share a port
    request_queue_size = 64

    def __init__(
        self,
        store: Store | Callable[[], Store],
        table: pd.DataFrame,
        classes: Sequence[Any],
        looks: Looks | None = None,
        *,
        who: str,
        port: int = 0,
        name: str = "",
        least: float | None = None,
        points: Callable[[], tuple[NDArray[np.floating], str] | None] | None = None,
        next_steps: Sequence[str] = (),
        without: str | None = None,
        most: int = MOST,
    ):
        self.looks, self.who, self.without = looks, who, without
        self.finished = False  # by the page, not by the terminal
        self._points, self._map, self._mapping = points, b"", threading.Lock()
        order = worst_order(table)
        self._order, self._rest = order[:most], order[most:]
        self._table, self.classes = table, classes
        self.token = secrets.token_urlsafe(24)
        self.indices = frozenset(table["index"].tolist())
        # Images are asked for one by one; rows are in the page already, to be searched.
        self._listed = suspects(table, None if least is None else {"cut": {"threshold": least}})
        shown = looks if looks is not None and looks.columns else None
        packed = pack(table, classes, shown, most=most, listed=self._listed)
        self.files = _files(
            {**packed, "next": list(next_steps), "without": without, "warning": warning_of(table)}, who, name, looks
        )
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            why = {errno.EADDRINUSE: "is in use", errno.EACCES: "needs more rights"}.get(error.errno or 0)
            raise InputError(
                f"port {port} {why or f'cannot be used ({error.strerror or error})'}: give another with --port, "
                "or leave it out to get a free one",
                code="port",
            ) from None
        except OverflowError:
            raise InputError(
                f"there is no port {port}: give one from 1 to 65535, or leave it out", code="port"
            ) from None
        try:
            self.store = store if isinstance(store, Store) else store()
        except BaseException:
            self.server_close()
            raise

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def link(self) -> str:
        """What to open; whoever has it may review."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def map(self) -> bytes:
        """Where the examples lie, in the order of the page's data; laid out the first time that it is asked for."""
        with self._mapping:
            if not self._map:
                found = None if self._points is None else self._points()
                xy = None if found is None else packed_points(found[0][self._order])
                self._map = _json({"xy": xy, "source": None if found is None else found[1]})
            return self._map

    def rest(self, given: int, predicted: int, search: str) -> bytes:
        """Examples beyond those that are in the page, as the page's data; -1 is any class."""
        some = self._table.iloc[self._rest]
        fits = np.ones(len(some), bool)
        for number, column in ((given, "given_label"), (predicted, "predicted_label")):
            if number >= 0:
                fits = fits & (some[column].astype(str) == str(self.classes[number])).to_numpy()
        words = search.strip().lower()
        if words:
            named = (some["index"].astype(str) == words).to_numpy()
            if "id" in some:
                named = named | some["id"].astype(str).str.lower().str.contains(words, regex=False).to_numpy()
            fits = fits & named
        rows = self._rest[fits]
        looks = self.looks if self.looks is not None and self.looks.columns else None
        listed, found = self._listed[rows[:MORE]], self._table.iloc[rows[:MORE]]
        return _json({**pack(found, self.classes, looks, listed=listed), "fitting": len(rows)})

    def finish(self) -> None:
        """End `serve_forever`, from one of its own requests."""
        self.finished = True
        threading.Thread(target=self.shutdown, daemon=True).start()

    def hosts(self) -> tuple[str, str]:
        """The only names that requests may call it by: another one is somebody else's page in disguise."""
        return f"{ADDRESS}:{self.port}", f"localhost:{self.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves in the middle of an answer is nothing to tell."""
        log.debug("a request from %s broke off", client_address, exc_info=True)


def _files(packed: dict[str, Any], who: str, name: str, looks: Looks | None) -> dict[str, tuple[bytes, str]]:
    """All that is served as it is, by name: what comes with crust, and beside it the data."""
    kind = "none" if looks is None else "rows" if looks.columns else "images"
    script = read_together("report/shared.js", "report/map.js", "review/review.js")
    style = read_together("report/style.css", "report/report.css", "review/review.css")
    return {
        "": (read_together("review/review.html").encode(), "text/html; charset=utf-8"),
        "icon.svg": (read_together("review/icon.svg").encode(), "image/svg+xml"),
        "style.css": (style.encode(), "text/css; charset=utf-8"),
        "review.js": (
            script.encode(),
            "text/javascript; charset=utf-8",
        ),
        "data": (as_json({**packed, "who": who, "name": name, "looks": kind}).encode(), "application/json"),
    }


class _Handler(BaseHTTPRequestHandler):
    server: ReviewServer
    protocol_version = "HTTP/1.1"
    server_version = "crust"
    sys_version = ""
    timeout = SILENCE

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def _answer(self, work: Callable[[list[str]], tuple[bytes, str]]) -> None:
        try:
            content, kind = work(self._checked())
            self._send(200, content, kind)
        except Moved as moved:
            self._send(302, b"", "text/plain", {"Location": str(moved)})
        except Refused as refused:
            self.close_connection = True  # what is left of the request is not read
            self._send(refused.status, _json({"error": str(refused)}), "application/json")
        except StoreError as error:  # no fault of the request: it may be made again
            self._send(503, _json({"error": str(error)}), "application/json")
        except CrustError as error:
            self._send(400, _json({"error": str(error)}), "application/json")

    def _checked(self) -> list[str]:
        """The parts of the path after the token; anyone without it, or from elsewhere, is refused."""
        hosts = self.server.hosts()
        if self.headers.get_all("Host") is None or len(self.headers.get_all("Host") or []) != 1:
            raise Refused(400, "a request names one host")
        if self.headers["Host"] not in hosts:
            raise Refused(403, "this page is served under its own address only")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            raise Refused(403, "requests from other pages are refused")
        first, slash, rest = self.path.partition("?")[0].removeprefix("/").partition("/")
        followed = rest == "" and self._follows_a_link()
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not followed:
            raise Refused(403, "requests from other pages are refused")
        if not hmac.compare_digest(first.encode(), self.server.token.encode()):
            raise Refused(403, "this link is not the one that crust review has shown")
        return rest.split("/") if slash else []

    def _follows_a_link(self) -> bool:
        """Whether a whole window goes to the page, as from the file that opens it: nobody else can look into that."""
        wanted = (self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest"))
        return self.command == "GET" and wanted == ("navigate", "document")

    def _get(self, path: list[str]) -> tuple[bytes, str]:
        server = self.server
        if not path:  # the page asks for its files beside itself: without the slash that is elsewhere
            raise Moved(f"/{server.token}/")
        if path[0] in server.files and len(path) == 1:
            return server.files[path[0]]
        if path == ["state"]:
            decisions, last = server.store.changes(-1)
            return self._state(decisions, last, undoable=server.store.undoable(server.who))
        if path[0] == "changes" and len(path) == 2:
            return self._state(*server.store.changes(_number(path[1])))
        if path == ["map"]:
            return server.map(), "application/json"
        if path[0] == "image" and len(path) == 2:
            return self._image(self._index(path[1]))
        if path[0] == "row" and len(path) == 2:
            index = self._index(path[1])
            return _json({"row": None if server.looks is None else server.looks.row(index)}), "application/json"
        raise Refused(404, "there is nothing here")

    def _post(self, path: list[str]) -> tuple[bytes, str]:
        body = self._body()
        store, who = self.server.store, self.server.who
        if path == ["decide"]:
            saved, conflicts, batch = store.decide(_changes(body.get("changes")), who=who)
        elif path == ["undo"]:
            if not _whole(body.get("batch")):
                raise Refused(400, "name the number of what shall be undone")
            saved, conflicts, batch = store.undo(body["batch"], who=who)
        elif path == ["rest"]:
            numbers, search = [body.get("given", -1), body.get("suggested", -1)], body.get("search", "")
            if not isinstance(search, str) or not all(one == -1 or _whole(one) for one in numbers):
                raise Refused(400, "name classes by their numbers, and what to search for")
            if max(numbers) >= len(self.server.classes):
                raise Refused(400, "there is no such class")
            return self.server.rest(numbers[0], numbers[1], search), "application/json"
        elif path == ["finish"]:
            self.server.finish()
            return _json({}), "application/json"
        else:
            raise Refused(404, "there is nothing here")
        return self._state(saved, conflicts=conflicts, batch=batch)

    def _state(
        self,
        decisions: list[Decision],
        last: int | None = None,
        undoable: list[int] | None = None,
        conflicts: list[Conflict] | None = None,
        batch: int | None = None,
    ) -> tuple[bytes, str]:
        found: dict[str, Any] = {"decisions": [one.plain() for one in decisions], "last": last, "undoable": undoable}
        if conflicts is not None:
            found["batch"] = batch
            found["conflicts"] = [
                {"example": one.example, "version": one.version, "now": None if one.now is None else one.now.plain()}
                for one in conflicts
            ]
        return _json(found), "application/json"

    def _image(self, index: int) -> tuple[bytes, str]:
        looks = self.server.looks
        if looks is None or looks.columns:
            raise Refused(404, "the examples are no images")
        try:
            return picture_bytes(looks.picture(index), SIDE)
        except (CrustError, OSError) as error:
            raise Refused(404, f"image {index} cannot be read: {error}") from None

    def _index(self, text: str) -> int:
        index = _number(text)
        if index not in self.server.indices:
            raise Refused(404, "there is no such example")
        return index

    def _body(self) -> dict[str, Any]:
        if self.headers.get("Transfer-Encoding") is not None:
            raise Refused(411, "say how long the request is")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "send JSON")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(411, "say how long the request is")
        if len(length) > DIGITS:
            raise Refused(400, f"the length of a request has {DIGITS} digits at most")
        if int(length) > BODY:
            raise Refused(413, f"the request is longer than {BODY:,} bytes")
        try:
            found = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise Refused(400, "the request is no JSON") from None
        if not isinstance(found, dict):
            raise Refused(400, "the request is no JSON object")
        return found

    def _send(self, status: int, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server refuses by itself gets our headers too."""
        self.close_connection = True
        self._send(
            int(code), _json({"error": message or "this is no request that is answered here"}), "application/json"
        )

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on the terminal: links hold the token."""


def _json(value: Any) -> bytes:
    return as_json(value).encode("utf-8", "replace")  # halves of characters, which no text may hold


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(404, "there is nothing here")
    return int(text)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _sound(one: Change) -> bool:
    """Whether what came as JSON has the types of a decision."""
    texts = (one.kind, one.reason, one.note)
    label = one.label is None or _whole(one.label)
    return _whole(one.example) and _whole(one.version) and label and all(t is None or isinstance(t, str) for t in texts)


def _changes(found: Any) -> list[Change]:
    """What a page wants decided: example, version, kind and label of each."""
    lists = (
        found if isinstance(found, list) and all(isinstance(one, list) and 4 <= len(one) <= 6 for one in found) else []
    )
    changes = [Change(*one) for one in lists]
    if not isinstance(found, list) or len(changes) < len(found) or not all(map(_sound, changes)):
        raise Refused(400, "a decision names an example, its version, a kind and a label or none")
    if len({one.example for one in changes}) < len(changes):
        raise Refused(400, "every example is decided once")
    return changes
