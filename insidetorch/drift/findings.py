"""What may become of an anchor in another release: one small class for each kind of finding.

How much a finding matters to a reader is not said here: `reread` ranks by the sentence that rests
on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from insidetorch.drift.anchors import Anchor
from insidetorch.drift.changes import Change
from insidetorch.drift.signatures import Breakage


@dataclass(frozen=True)
class Finding:
    """What became of one anchor in the other release.

    :param file: where it is in the other release; "" if it is gone.
    :param lines: first and last line there.
    :param breakages: what callers notice.
    :param changes: the places at which the two definitions differ.
    :param near: where it may be now, if it is gone.
    :param said: what else is to be said, such as how the other release deprecates it.
    """

    verdict: ClassVar[str] = "unchanged"
    differs: ClassVar[bool] = False

    anchor: Anchor
    file: str = ""
    lines: tuple[int, int] = (0, 0)
    breakages: tuple[Breakage, ...] = ()
    changes: tuple[Change, ...] = ()
    near: tuple[str, ...] = ()
    said: str = ""

    @property
    def moved_file(self) -> bool:
        """Whether it is in another file than before."""
        return bool(self.file) and self.file != self.anchor.file


class Unchanged(Finding):
    """It is there as it was, or written otherwise to the same effect."""


class MovedWithin(Finding):
    """It is the same on other lines of its file."""

    verdict = "moved within its file"


class Unseen(Finding):
    """The other release, or its form at hand, does not tell; `said` says why."""

    verdict = "unknown"


class Moved(Finding):
    """It is the same in another file, or given out by its module's ``__getattr__``."""

    verdict, differs = "moved", True


class Changed(Finding):
    """It is another definition; "signature" where callers notice."""

    differs = True

    @property
    def verdict(self) -> str:  # type: ignore[override]
        return "signature" if self.breakages else "changed"


class Derivative(Finding):
    """The formula of its derivative is another one."""

    verdict, differs = "derivative", True


class Gone(Finding):
    """It is no longer there."""

    verdict, differs = "gone", True
