"""Records of what a cell showed, carried inside the cell's own outputs.

A record is a JSON object with a ``kind``. It travels in the output's mime bundle under
`RECORD_MIME`, so an executed notebook is its own ledger: nothing is written beside it, and a
notebook taken from the cache brings its records along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

RECORD_MIME = "application/vnd.insidetorch+json"
KINDS = frozenset(
    {"claim", "verdict", "excerpt", "warning", "stack", "ops", "timing", "cuda", "limits"},
)


def records(notebook: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of an executed notebook in order, each with its cell.

    :param notebook: the notebook as nbformat 4 JSON.
    :return: the records, each with ``cell`` added: the index among the code cells, from 1.
    """
    code_cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for number, cell in enumerate(code_cells, start=1):
        for output in cell.get("outputs", ()):
            record = output.get("data", {}).get(RECORD_MIME)
            if isinstance(record, Mapping) and record.get("kind") in KINDS:
                yield {"cell": number, **record}
