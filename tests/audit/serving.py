"""The review of an audit, served for as long as a test needs it."""

import threading
from contextlib import contextmanager

from crust.review import ReviewServer, Store, run_key

CLASSES = ["cat", "dog", "cow"]


@contextmanager
def serving(folder, table, classes=CLASSES, looks=None, **options):
    store = Store(folder / "review.sqlite", run_key(table, classes), table["index"].tolist(), len(classes))
    with ReviewServer(store, table, classes, looks, **{"who": "first", "name": "a run", **options}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
            store.close()
