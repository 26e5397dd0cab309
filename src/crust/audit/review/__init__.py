"""The review page: suspects looked at one by one or many at once, with every decision on disk before it is shown."""

from crust.audit.review.decisions import Change, Conflict, Decision, StoreError
from crust.audit.review.server import ReviewServer
from crust.audit.review.store import Store, run_key

__all__ = ["Change", "Conflict", "Decision", "ReviewServer", "Store", "StoreError", "run_key"]
