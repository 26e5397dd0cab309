"""Memory that is freed stays with the process.

A step of training frees its activations and asks for the same amount at once. glibc gives large blocks back to the
system, which then clears every page anew: on the CPU that is several percent of the time. Only a process of our own
is told so: the commands and the workers of a grid of runs, never one that calls the library.
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
LARGEST = 2**30  # bytes; a block above this comes from the system and goes back to it, as before


def keep_freed() -> bool:
    """Let the C library keep freed memory for the next step; does nothing where it is not glibc.

    Returns:
        Whether it was told so.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # musl, for one
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(M_TRIM_THRESHOLD, LARGEST))
