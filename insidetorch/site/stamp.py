"""The line below a chapter's title: on what it ran, when, and what of it held."""

from __future__ import annotations

from datetime import datetime

from insidetorch.book.address import Address
from insidetorch.display import escape
from insidetorch.site.book_ledger import Executed, commit_url
from insidetorch.site.places import linked

NO_RECORD = (
    "There is no record of this chapter’s last run: the site was built without the book’s "
    "ledger, which <code>make book</code> writes."
)
NOWHERE = Address()


def stamp(chapter: Executed | None, doc: str, download: str, address: Address = NOWHERE) -> str:
    """Return the stamp of a chapter as HTML.

    :param chapter: its entry in the ledger, or None if it has none.
    :param doc: its document name; the build fills the freshness of this name in afterwards.
    :param download: the address of its notebook, relative to the page.
    :param address: where the book lives; links that it does not know are left out.
    """
    what = "Download the notebook (.zip)" if download.endswith(".zip") else "Download"
    links = [f'<a href="{escape(download)}" download>{what}</a>']
    for name, goal in (
        ("Open in Colab", address.colab(f"{doc.rpartition('/')[2]}.ipynb")),
        ("Source", address.file(f"{doc}.md")),
        ("Suggest an edit", address.edit(f"{doc}.md")),
        ("Discuss", address.report(chapter.title if chapter else doc)),
    ):
        if goal:
            links.append(linked(goal, name))
    if chapter is None:
        return _box([f"<span>{NO_RECORD}</span>", *links])
    held, claims = chapter.held()
    verdicts = len(chapter.of("verdict"))
    parts = [
        f"<span>{release(chapter.torch, chapter.commit)}</span>",
        f"<span>Python {escape(chapter.python)}</span>" if chapter.python else "",
        f"<span>{escape(chapter.cpu)}</span>" if chapter.cpu else "",
        f"<span>executed {moment(chapter.executed)}"
        f'<span class="it-freshness" data-doc="{escape(doc)}"></span></span>',
    ]
    if chapter.status != "ok":
        parts.append('<strong class="it-stamp-failed">a cell failed in that run</strong>')
    if claims:
        parts.append(f"<span>{claims_held(held, claims)}</span>")
    if verdicts:
        parts.append(f"<span>{counted(verdicts, 'verdict')}</span>")
    return _box([*parts, *links])


def release(torch: str, commit: str) -> str:
    """Return the release with its commit, linked where PyTorch keeps it."""
    name = f"torch {escape(torch)}"
    if not commit:
        return name
    return f"{name} ({linked(commit_url(commit), commit[:7])})"


def claims_held(held: int, claims: int) -> str:
    """Return how many of the claims held, in words."""
    mark = '<span class="it-stamp-mark" aria-hidden="true">✔</span> ' if held == claims else ""
    return f"{mark}{held} of {counted(claims, 'claim')} held"


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, e.g. ``1 claim`` or ``3 claims``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def moment(when: datetime | None) -> str:
    """Return a date as HTML, the exact time in its attribute."""
    if when is None:
        return "on an unknown date"
    return f'<time datetime="{when.isoformat()}">{when.day} {when:%B %Y}</time>'


def _box(parts: list[str]) -> str:
    items = "".join(f"<li>{part}</li>" for part in parts if part)
    return f'<ul class="it it-stamp" aria-label="How this chapter was made">{items}</ul>'
