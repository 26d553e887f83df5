"""What comparisons with other releases of PyTorch left behind, read for the pages that show it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from insidetorch.drift import history, reasons, report, run
from insidetorch.drift.history import History
from insidetorch.drift.reasons import Reason
from insidetorch.drift.run import Result

FOLDER = "data/drift"
"""The data's folder in the book's."""
FILES = ("data/**/*.*",)
"""What a page that shows the data depends on."""


@dataclass(frozen=True)
class DriftData:
    """What drift stored.

    :param results: releases on which the chapters were executed, oldest first.
    :param reports: static reports that lie beside the build, with the differences of the code.
    """

    history: History | None = None
    results: tuple[Result, ...] = ()
    reasons: tuple[Reason, ...] = ()
    reports: tuple[report.Report, ...] = ()


def read_drift(root: Path) -> DriftData:
    """Read what drift stored in the book's folder.

    :raises BookError: a file is there and cannot be read.
    """
    folder = root / FOLDER
    file = folder / history.NAME
    known = history.parse(file.read_text(encoding="utf-8"), file.name) if file.is_file() else None
    made = [
        report.from_json(json.loads(path.read_text(encoding="utf-8")), path.name)
        for path in sorted((root / "_build" / "drift").glob("*/static.json"))
    ]
    return DriftData(known, tuple(run.stored(folder)), tuple(reasons.read(folder)), tuple(made))
