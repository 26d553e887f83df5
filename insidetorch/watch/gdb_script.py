"""Run by gdb's own Python: stop a program in a function, write its stack as JSON, end it.

Environment: ``INSIDETORCH_BREAK`` names the function, ``INSIDETORCH_HIT`` says which call of it,
``INSIDETORCH_STACK`` is the file to write: ``frames``, innermost first, each [name, library], or
``exit``, the program's exit status, with ``found``, whether the function exists.
"""

import json
import os
from pathlib import Path

import gdb

PYTHON_STACK = "((const char *(*)(int, void *, void *))_Py_DumpTracebackThreads)(2, 0, 0)"


class Call(gdb.Breakpoint):  # type: ignore[misc]
    """Stops at one call of a function; its entry in the linkage table is not a call."""

    left = int(os.environ["INSIDETORCH_HIT"])

    def stop(self) -> bool:
        """Tell gdb whether to stop here."""
        if (gdb.newest_frame().name() or "").endswith("@plt"):
            return False
        self.left -= 1
        return self.left == 0


def stack() -> list[list[str]]:
    """Return name and library of each frame of the stopped thread, innermost first."""
    frames = []
    frame = gdb.newest_frame()
    while frame is not None:
        frames.append([frame.name() or "??", gdb.solib_name(frame.pc()) or "python"])
        frame = frame.older()
    return frames


def main() -> None:
    """Run the program, and write what there is to say about it."""
    for setting in (
        "breakpoint pending on",
        "confirm off",
        "debuginfod enabled off",
        "disable-randomization off",
        "pagination off",
        "startup-with-shell off",
        "unwindonsignal on",
    ):
        try:
            gdb.execute(f"set {setting}")
        except gdb.error:
            print(f"this gdb has no setting {setting}")
    call = Call(os.environ["INSIDETORCH_BREAK"])
    gdb.execute("run")
    out = Path(os.environ["INSIDETORCH_STACK"])
    if not gdb.selected_inferior().pid:
        status = gdb.convenience_variable("_exitcode")
        told = {"exit": None if status is None else int(status), "found": not call.pending}
        out.write_text(json.dumps(told), encoding="utf-8")
        return
    frames = stack()
    try:
        gdb.execute("set scheduler-locking on")
        gdb.parse_and_eval(PYTHON_STACK)
    except gdb.error as error:
        print(f"no Python frames: {error}")
    out.write_text(json.dumps({"frames": frames}), encoding="utf-8")
    gdb.execute("kill")


main()
