"""What a command of the book sets before it begins: its signals, and what it does not import."""

from __future__ import annotations

import signal
import sys

_INTERRUPTED, _TERMINATED = 130, 143
_received: list[int] = []


def heed_signals() -> None:
    """Let Ctrl-C end this process also where the caller ignored it, and TERM end it likewise."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


def farewell() -> tuple[str, int]:
    """Return how a command ends that was interrupted: a word for it, and its exit status."""
    return ("Terminated", _TERMINATED) if _received else ("Interrupted", _INTERRUPTED)


def _terminate(number: int, _: object) -> None:
    _received.append(number)
    signal.raise_signal(signal.SIGINT)


def spare_grammar() -> None:
    """Keep `jsonschema` from compiling the grammar of addresses, which takes over a second.

    JupyterLab's dependencies bring `rfc3987_syntax`, which compiles it whenever `jsonschema` is
    imported. The build validates no address, and `jsonschema` does without.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
