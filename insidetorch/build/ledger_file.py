"""`_build/ledger.json`: what the chapters' cells recorded, and when and where they ran."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from insidetorch.build.project import Chapter
from insidetorch.build.runs import Failure
from insidetorch.facts import cpu_name, torch_facts
from insidetorch.ledger import records


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


def ledger(entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the whole ledger, from the chapters' parts in reading order."""
    torch = torch_facts()
    return {
        "built": now(),
        "torch": torch.release if torch else "",
        "commit": torch.commit if torch else "",
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "chapters": list(entries),
    }


def undeclared_warnings(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the deprecations that a chapter did not say it expects."""
    return [
        record
        for record in records
        if record["kind"] == "warning" and not record["declared"] and record["deprecation"]
    ]
