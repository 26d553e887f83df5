"""A chapter's kernel: ipykernel in a process that dies with the build that started it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from insidetorch.book import opened
from insidetorch.run.die_with_parent import die_with_parent


def main() -> None:
    """Run the kernel whose connection file is named on the command line."""
    # ipykernel's own watch over its parent is a thread, which waits while a cell holds the GIL.
    die_with_parent(int(os.environ["JPY_PARENT_PID"]))
    if sys.path and Path(sys.path[0] or ".").resolve() == Path.cwd():
        del sys.path[0]
    opened.note()
    from ipykernel.kernelapp import IPKernelApp

    # The package is imported before there is a shell for it to join.
    IPKernelApp.launch_instance([*sys.argv[1:], "--ext", "insidetorch"])


if __name__ == "__main__":
    main()
