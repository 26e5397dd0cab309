"""The report of an audit: one HTML file that needs nothing else."""

from crust.report.page import audit_page

__all__ = ["audit_page"]
