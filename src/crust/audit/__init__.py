"""The label audit: which labels to doubt, from what a run has seen of every example, or from what the user has."""

from crust.audit.classes import class_view, confusions
from crust.audit.duplicates import conflicting_duplicates, duplicates
from crust.audit.labels import audit_labels
from crust.audit.scores import audit_table, estimated_transitions
from crust.audit.tables import read_audit, read_table

__all__ = [
    "audit_labels",
    "audit_table",
    "class_view",
    "conflicting_duplicates",
    "confusions",
    "duplicates",
    "estimated_transitions",
    "read_audit",
    "read_table",
]
