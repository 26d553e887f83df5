"""`_build/ledger.json`: what the chapters' cells recorded, and when and where they ran."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from insidetorch.book.project import Chapter
from insidetorch.book.runs import Failure
from insidetorch.facts import cpu_name, torch_facts
from insidetorch.records import records


def now() -> str:
    """Return the present time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(key: str, seconds: float, cell_seconds: Iterable[float]) -> dict[str, Any]:
    """Return what is kept with an executed notebook about its execution."""
    torch = torch_facts()
    return {
        "key": key,
        "torch": torch.release if torch else "",
        "commit": torch.commit if torch else "",
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "date": now(),
        "seconds": seconds,
        "cell_seconds": list(cell_seconds),
    }


def entry(
    chapter: Chapter, notebook: Mapping[str, Any], fresh: bool, failure: Failure | None
) -> dict[str, Any]:
    """Return a chapter's part of the ledger.

    :param notebook: the merged notebook, with its provenance under ``insidetorch``.
    """
    about = notebook["metadata"]["insidetorch"]
    error = None
    if failure is not None:
        error = {
            "cell": failure.cell,
            "ename": failure.name,
            "evalue": failure.message,
            "claim": failure.claim,
        }
    return {
        "doc": chapter.doc,
        "title": chapter.title,
        "key": about["key"],
        "fresh": fresh,
        "executed": about["date"],
        "seconds": about["seconds"],
        "cells": len(chapter.code_cells),
        "status": "failed" if failure else "ok",
        "error": error,
        "records": list(records(notebook)),
    }


def ledger(
    entries: Iterable[Mapping[str, Any]], before: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the whole ledger, from the chapters' parts in reading order.

    :param before: the ledger of the last build if no page changed since, else None. Where
        nothing but the freshness differs, the site is still the one built then, and says so.
    """
    torch = torch_facts()
    new = {
        "built": now(),
        "torch": torch.release if torch else "",
        "commit": torch.commit if torch else "",
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "chapters": list(entries),
    }
    if before is not None and same(before, new):
        new["built"] = before["built"]
    return new


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two ledgers differ in nothing but when they were made."""
    return _apart_from_time(one) == _apart_from_time(other)


def read(path: Path) -> dict[str, Any] | None:
    """Return the ledger that the last build left, or None."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _apart_from_time(ledger: Mapping[str, Any]) -> dict[str, Any]:
    chapters = [{**chapter, "fresh": None} for chapter in ledger.get("chapters", ())]
    return {**ledger, "built": None, "chapters": chapters}


def undeclared_warnings(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the deprecations that a chapter did not say it expects."""
    return [
        record
        for record in records
        if record["kind"] == "warning" and not record["declared"] and record["deprecation"]
    ]
