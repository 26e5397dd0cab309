"""The label audit: which labels are wrong, from what a run has seen of every example, or from what the user has."""

from crust.audit.by_class import class_summary, overlapping_classes
from crust.audit.duplicates import conflicting_duplicates, duplicates
from crust.audit.find_label_issues import find_label_issues
from crust.audit.label_quality import audit_table, estimate_noise_matrix
from crust.audit.noise_rate import NoiseRate, noise_rate
from crust.audit.reliability import unreliable

__all__ = [
    "NoiseRate",
    "audit_table",
    "class_summary",
    "conflicting_duplicates",
    "duplicates",
    "estimate_noise_matrix",
    "find_label_issues",
    "noise_rate",
    "overlapping_classes",
    "unreliable",
]
