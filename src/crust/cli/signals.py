"""Signals that end a command: Ctrl-C, SIGTERM of schedulers, SIGHUP of a terminal that closes. All are one to us."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

ENDING = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
SOON = 1.0  # seconds in which a second signal is the first one again: two fingers, or a scheduler that sends both

_first: tuple[int, float] | None = None


def listen() -> None:
    """Let each of them raise KeyboardInterrupt, once; a later one ends the process at once. For a process of our own.

    What is on disk is whole at any moment, so nothing is lost by that. A signal that is ignored stays ignored, as
    `nohup` wants it.
    """
    own = os.getpid()

    def hear(number: int, _: FrameType | None) -> None:
        global _first
        if os.getpid() != own:  # a child that was forked dies as it always did
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif _first is None:
            _first = number, time.monotonic()
            raise KeyboardInterrupt
        elif time.monotonic() - _first[1] > SOON:
            os._exit(exit_code())

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, hear)


def be_deaf() -> None:
    """The command has ended and says its last sentence: no signal can spoil it any more."""
    for number in ENDING:
        if _first is not None:
            signal.signal(number, signal.SIG_IGN)


def exit_code() -> int:
    """128 and the number of the signal, as shells have it."""
    return 128 + (signal.SIGINT if _first is None else _first[0])
