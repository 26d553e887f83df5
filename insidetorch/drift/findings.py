"""What may become of an anchor in another release: one small class for each kind of finding.

A new kind is a class here, with its place in `KINDS`; `compare` chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, ClassVar

from insidetorch.drift.anchors import Anchor

_MOST = 12


class Severity(IntEnum):
    """What a finding asks for; also the exit status of the commands."""

    GREEN = 0
    LOOK = 1
    BROKEN = 2


@dataclass(frozen=True)
class Finding:
    """What became of one anchor in the other release.

    :param file: where it is in the other release; "" if it is gone.
    :param lines: first and last line there.
    :param breakages: what callers notice, one line each.
    :param diff: the unified difference of the two definitions.
    :param near: where it may be now, if it is gone.
    :param deprecated: how the other release says that it is deprecated, if this one does not.
    """

    verdict: ClassVar[str] = "unchanged"
    severity: ClassVar[Severity] = Severity.GREEN
    place: ClassVar[str] = "unchanged"

    anchor: Anchor
    file: str = ""
    lines: tuple[int, int] = (0, 0)
    breakages: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    deprecated: str = ""

    @property
    def rank(self) -> int:
        """How much a reader may be misled, 0 the most."""
        return KINDS.index(type(self))

    @property
    def moved_file(self) -> bool:
        """Whether it is in another file than before."""
        return bool(self.file) and self.file != self.anchor.file

    @property
    def definition(self) -> tuple[str, str, str, str]:
        """What it is about: the same for all anchors of one definition."""
        anchor = self.anchor
        named = "" if self.file and anchor.sha256 else anchor.target
        return anchor.file, anchor.symbol, anchor.sha256, named

    def why(self) -> list[str]:
        """Return what is to be said beside its kind, one line each."""
        said = [f"now in {self.file}:{self.lines[0]}"] if self.moved_file else []
        said += self.breakages[:_MOST]
        if len(self.breakages) > _MOST:
            said.append(f"… and {len(self.breakages) - _MOST} more")
        return said


class Unchanged(Finding):
    """It is there as it was."""


class MovedWithin(Finding):
    """It is the same on other lines of its file."""

    verdict, place = "moved", "moved within its file"


class Restyled(Finding):
    """It is written otherwise and means the same."""

    verdict, place = "restyled", "written otherwise, to the same effect"


class Unseen(Finding):
    """The other release, or its form at hand, does not carry such files."""

    verdict, place = "unseen", "not carried"


class MovedFile(Finding):
    """It is the same in another file."""

    verdict, severity, place = "moved", Severity.LOOK, "moved to another file"


class Lazy(Finding):
    """Its module no longer binds it, but gives it out when it is asked for."""

    verdict, severity, place = "moved", Severity.LOOK, "given out by its module's __getattr__"


class _Changed(Finding):
    """It is another definition; "signature" where callers notice."""

    severity = Severity.LOOK

    @property
    def verdict(self) -> str:  # type: ignore[override]
        return "signature" if self.breakages else "changed"


class Behind(_Changed):
    """Something in the class or the entries that a cell names."""

    place = "changed behind its name"


class Derivative(_Changed):
    """The formula of its derivative."""

    place = "its derivative changed"


class Beside(_Changed):
    """The definition, in lines that the chapter does not show."""

    place = "changed beside what is shown"


class Body(_Changed):
    """The code of a function that a cell names, or the value of an option."""

    place = "its code changed"


class Member(_Changed):
    """A member that callers see, of a class that a cell names."""

    place = "signature of a member changed"


class Deprecated(_Changed):
    """The other release marks it as deprecated."""

    place = "deprecated there"

    def why(self) -> list[str]:
        return [*super().why(), f"deprecated there: {self.deprecated}"]


class Signature(_Changed):
    """What callers see of something that a cell names."""

    place = "signature changed"


class Shown(_Changed):
    """Lines that the chapter shows."""

    place = "changed where it is shown"


class Gone(Finding):
    """It is no longer there."""

    verdict, severity, place = "gone", Severity.BROKEN, "gone"

    def why(self) -> list[str]:
        return [f"perhaps now {'; '.join(self.near)}"] if self.near else []


KINDS: tuple[type[Finding], ...] = (
    Gone, Shown, Signature, Deprecated, Member, Body, Beside, Derivative, Behind, MovedFile, Lazy,
    Unseen, Restyled, MovedWithin, Unchanged,
)  # fmt: skip
"""The most misleading first."""


def by_definition(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as JSON data, one for each definition, the most misleading first.

    Each is the worst of its definition; ``others`` has the other anchors of it.
    """
    found: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda one: one.rank):
        found.setdefault(finding.definition, []).append(finding)
    ordered = sorted(found.values(), key=lambda group: (group[0].rank, -len(group)))
    return [
        {
            **asdict(first),
            "verdict": first.verdict,
            "rank": first.rank,
            "severity": int(first.severity),
            "place": first.place,
            "why": first.why(),
            "others": [
                {
                    "chapter": one.anchor.chapter,
                    "target": one.anchor.target,
                    "cells": one.anchor.cells,
                    "verdict": one.verdict,
                    "place": one.place,
                }
                for one in others
            ],
        }
        for first, *others in ordered
    ]
