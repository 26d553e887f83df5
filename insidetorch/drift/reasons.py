"""`data/drift/reasons.yml`: why a difference on another release stands, in the authors' words."""

from __future__ import annotations

from pathlib import Path

import msgspec

from insidetorch.drift.outcomes import Outcome
from insidetorch.errors import BookError

NAME = "reasons.yml"


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why one difference stands.

    :param release: the other release, e.g. ``2.15.0``.
    :param chapter: the document; "" for each.
    :param about: the beginning of the sentence, of the error, or of what the report names.
    :param reason: one or two sentences for readers.
    """

    release: str
    chapter: str
    about: str
    reason: str

    def explains(self, release: str, outcome: Outcome) -> bool:
        """Tell whether this is the reason of an outcome."""
        same = self.release == release and self.chapter in ("", outcome.doc)
        return same and outcome.text.startswith(self.about)


def read(folder: Path) -> list[Reason]:
    """Return the reasons; none if there is no such file.

    :raises BookError: the file is not a list of reasons.
    """
    path = folder / NAME
    if not path.is_file():
        return []
    try:
        return msgspec.yaml.decode(path.read_bytes() or b"[]", type=list[Reason])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        names = ", ".join(Reason.__struct_fields__)
        raise BookError(
            f"{path} must be a YAML list of entries with {names} "
            f"({' '.join(str(error).split())}); mend it."
        ) from None
