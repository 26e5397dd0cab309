"""Parts of a report: one HTML file that needs nothing else, in which everything from the data is shown as text."""

from crust.audit.report.audit_page import audit_page
from crust.audit.report.chart import Line, line_chart
from crust.audit.report.gallery import Suspect, gallery
from crust.audit.report.markup import Html, escape, join, tag
from crust.audit.report.page import page, section, table
from crust.audit.report.pictures import image_uri

__all__ = [
    "Html",
    "Line",
    "Suspect",
    "audit_page",
    "escape",
    "gallery",
    "image_uri",
    "join",
    "line_chart",
    "page",
    "section",
    "table",
    "tag",
]
