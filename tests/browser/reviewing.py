"""What the tests of the review page share."""

from contextlib import contextmanager

import numpy as np

from crust.report.previews import as_image


def colours(index):
    return as_image(np.full((3, 32, 32), index % 256, np.uint8))


def suspects(table):
    """Their indices in the order that they are shown."""
    return table[table["given_label"] != table["predicted_label"]].sort_values("label_quality")["index"].tolist()


def ready(page):
    page.wait_for_selector("html[data-ready=yes]")
    return page


def settled(page, count, kind=""):
    """Wait until so many cards of the page are decided, and on disk."""
    selector = f"#grid .done{kind}"
    page.wait_for_function("([s, n]) => document.querySelectorAll(s).length === n", arg=[selector, count])


def kept(server):
    return {one.example: (one.kind, one.label) for one in server.store.decisions() if one.kind is not None}


@contextmanager
def held_back(page, path):
    """Requests that wait until the end of this, however slow the machine is; those that are done with are taken out."""
    held = []
    page.route(path, lambda route: held.append(route))
    yield held
    for one in held:
        one.continue_()
    page.unroute(path)


def not_looking(page):
    """A window that does not hear for a while of what others do."""
    return held_back(page, "**/changes/*")
