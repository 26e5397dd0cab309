"""The label audit: which labels to doubt, from what a run has seen of every example."""

from crust.audit.scores import audit_table, estimated_transitions
from crust.audit.tables import read_audit, read_table

__all__ = ["audit_table", "estimated_transitions", "read_audit", "read_table"]
