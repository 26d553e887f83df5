"""Links of the built site to other hosts: which of them lead nowhere any more."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urldefrag, urlsplit
from urllib.request import Request, urlopen

_LINK = re.compile(r"<a\b[^>]*\bhref=\"(https?://[^\"]+)\"")
_GONE = frozenset({404, 410})
_SECONDS = 30


def outgoing(site: Path) -> dict[str, list[str]]:
    """Return the addresses that the pages of a site link to, without fragments, and the pages."""
    found: dict[str, list[str]] = {}
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site).as_posix()
        for address in _LINK.findall(page.read_text(encoding="utf-8")):
            pages = found.setdefault(urldefrag(unescape(address)).url, [])
            if name not in pages:
                pages.append(name)
    return found


def broken(addresses: Iterable[str], *, workers: int = 8, pause: float = 0.2) -> dict[str, str]:
    """Return the addresses that lead nowhere, each with what was said; one host, one at a time.

    A host that refuses to talk to a program (403, 429) or is out of order (5xx) says nothing of
    its page, so only what is gone, or has no host, counts.

    :param pause: seconds between two requests to one host.
    """
    by_host: dict[str, list[str]] = {}
    for address in addresses:
        by_host.setdefault(urlsplit(address).netloc, []).append(address)

    def ask(host: str) -> dict[str, str]:
        said = {}
        for address in by_host[host]:
            problem = _problem(address)
            if problem:
                said[address] = problem
            time.sleep(pause)
        return said

    with ThreadPoolExecutor(max(1, workers)) as pool:
        answers = list(pool.map(ask, by_host))
    return {address: said for answer in answers for address, said in answer.items()}


def sentences(problems: Mapping[str, str], pages: Mapping[str, list[str]]) -> list[str]:
    """Return one sentence for each broken address, with the pages that link to it."""
    return [
        f"{address} ({problem}), linked from {', '.join(pages[address])}"
        for address, problem in sorted(problems.items())
    ]


def _problem(address: str) -> str:
    for method in ("HEAD", "GET"):
        request = Request(address, method=method, headers={"User-Agent": "Mozilla/5.0 (links)"})
        try:
            with urlopen(request, timeout=_SECONDS):
                return ""
        except HTTPError as error:
            if error.code not in _GONE and method == "GET":
                return ""
            problem = f"status {error.code}"
        except (URLError, OSError, ValueError) as error:
            problem = str(getattr(error, "reason", error)) or type(error).__name__
    return problem
