"""Where the book lives on the web: its repository and its site, as far as that is known."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from insidetorch.errors import BookError
from insidetorch.processes import run

NOTEBOOKS_BRANCH = "notebooks"
_GITHUB = re.compile(
    r"(?:https://|git@|ssh://git@)github\.com[:/](?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?\Z"
)


@dataclass(frozen=True)
class Address:
    """What is known of the book's places; an empty text where nothing is.

    :param repository: the address of the repository on GitHub, without a slash at its end.
    :param site: the address of the published site, without a slash at its end.
    """

    repository: str = ""
    site: str = ""

    @property
    def name(self) -> str:
        """The repository's owner and name on GitHub, or ""."""
        return self.repository.removeprefix("https://github.com/")

    def file(self, path: str) -> str:
        """Return the page that shows a file of the main branch, or "" if that is not known."""
        return f"{self.repository}/blob/main/{path}" if self.repository else ""

    def edit(self, path: str) -> str:
        """Return the page that edits a file of the main branch, or "" if that is not known."""
        return f"{self.repository}/edit/main/{path}" if self.repository else ""

    def report(self, title: str, body: str = "") -> str:
        """Return the page that opens an issue, or "" if that is not known."""
        if not self.repository:
            return ""
        given = urlencode({"title": title, **({"body": body} if body else {})}, quote_via=quote)
        return f"{self.repository}/issues/new?{given}"

    def colab(self, notebook: str) -> str:
        """Return the address that opens a published notebook in Colab, or "" if not known.

        :param notebook: the name of its file on the branch of the published notebooks.
        """
        if not self.name:
            return ""
        branch = f"{self.name}/blob/{NOTEBOOKS_BRANCH}"
        return f"https://colab.research.google.com/github/{branch}/{notebook}"

    def wheel(self, name: str) -> str:
        """Return what pip installs the toolkit from: the web, or a file beside the notebook."""
        if self.site:
            return f"{self.site}/_static/{name}"
        if self.name:
            return f"https://raw.githubusercontent.com/{self.name}/{NOTEBOOKS_BRANCH}/{name}"
        return f"./{name}"


def address(
    root: Path, config: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> Address:
    """Return where the book lives.

    The configuration wins (``repository: url`` and ``html: baseurl`` in ``_config.yml``), then
    the environment (``GITHUB_REPOSITORY`` as GitHub's workflows set it, and ``BOOK_ADDRESS``),
    then the checkout's remote ``origin``. Nothing is guessed: a site's address is only what was
    given as one.
    """
    given = str((config.get("repository") or {}).get("url") or "")
    if not given and environ.get("GITHUB_REPOSITORY"):
        given = f"https://github.com/{environ['GITHUB_REPOSITORY']}"
    found = _GITHUB.match(given or _origin(root))
    repository = f"https://github.com/{found['name']}" if found else ""
    site = (config.get("html") or {}).get("baseurl") or environ.get("BOOK_ADDRESS") or ""
    return Address(repository, str(site).rstrip("/"))


def _origin(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    try:
        said = run(["git", "-C", root, "remote", "get-url", "origin"])
    except BookError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
