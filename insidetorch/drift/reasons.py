"""`drift/reasons.yml`: why a difference under another release stands, in the authors' words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import yaml

from insidetorch.drift.outcomes import Outcome
from insidetorch.errors import BookError

NAME = "reasons.yml"


@dataclass(frozen=True)
class Reason:
    """Why one difference stands.

    :param release: the other release, e.g. ``2.15.0``.
    :param chapter: the document.
    :param about: the sentence, or the beginning of the error, as the report has it.
    :param reason: one or two sentences for readers.
    """

    release: str
    chapter: str
    about: str
    reason: str

    def explains(self, release: str, outcome: Outcome) -> bool:
        """Tell whether this is the reason of an outcome."""
        same = (self.release, self.chapter) == (release, outcome.doc)
        return same and outcome.text.startswith(self.about)


def read(folder: Path) -> list[Reason]:
    """Return the reasons; none if there is no such file.

    :raises BookError: the file is not a list of reasons.
    """
    path = folder / NAME
    if not path.is_file():
        return []
    names = [field.name for field in fields(Reason)]
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
        return [
            Reason(**{name: str(entry.pop(name)) for name in names}, **entry) for entry in entries
        ]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise BookError(
            f"{path} must be a YAML list of entries with {', '.join(names)} "
            f"({type(error).__name__}: {' '.join(str(error).split())}); mend it."
        ) from None
