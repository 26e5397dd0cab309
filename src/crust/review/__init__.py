"""The review page: label issues one by one or many at once, with every decision on disk before it is shown."""

from crust.review.decision_store import Store, run_key
from crust.review.decisions import Change, Conflict, Decision, StoreError
from crust.review.server import ReviewServer

__all__ = ["Change", "Conflict", "Decision", "ReviewServer", "Store", "StoreError", "run_key"]
