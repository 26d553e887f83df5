"""What people write for the site: lists in YAML files, code in backticks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from insidetorch.display import escape
from insidetorch.errors import BookError


def read_list(path: Path, kind: str) -> list[Any]:
    """Return the entries of a YAML file; an empty file has none.

    :param kind: what its entries are, in words.
    :raises BookError: the file is missing or broken, or holds no list; the message names it.
    """
    try:
        listed = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except (OSError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise BookError(f"{path.name} cannot be read ({problem}); mend it.") from error
    if not isinstance(listed, list):
        raise BookError(f"{path.name} must be a list of {kind}; mend it.")
    return listed


def marked(text: str) -> str:
    """Return text as HTML; what stands in backticks is code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(pieces))
