"""For all tests."""

import os

from hypothesis import settings

# On a build machine a change is judged by the same examples as the one before it; elsewhere the search goes on.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
