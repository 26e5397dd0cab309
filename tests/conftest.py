"""For all tests."""

import os
import signal

from hypothesis import settings

# Some virtual machines announce AMX and do not let a program use it: torch would end with an illegal instruction.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# On a build machine a change is judged by the same examples as the one before it; elsewhere the search goes on.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# A shell's background jobs ignore Ctrl-C and hand that on to every program that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
