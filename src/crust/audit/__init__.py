"""The label audit: which labels to doubt, from what a run has seen of every example, or from what the user has."""

from crust.audit.class_summary import class_view, confusions
from crust.audit.duplicates import conflicting_duplicates, duplicates
from crust.audit.find_label_issues import audit_labels
from crust.audit.label_quality import audit_table, estimated_transitions

__all__ = [
    "audit_labels",
    "audit_table",
    "class_view",
    "conflicting_duplicates",
    "confusions",
    "duplicates",
    "estimated_transitions",
]
