"""The strip below a chapter's title: the book's five lines, with what the chapter opens marked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

from docutils import nodes
from msgspec import Meta
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from insidetorch.decode import Words, Written, decode
from insidetorch.display import escape, marked
from insidetorch.errors import BookError
from insidetorch.site.part import raw
from insidetorch.site.places import linked

logger = logging.getLogger(__name__)
FILE = "book/strip.yml"


class Opened(Written, frozen=True):
    """What a chapter opens: parts of the program as they stand there, and what it tells of them."""

    opens: Annotated[tuple[Words, ...], Meta(min_length=1)]
    says: Words


class Strip(Written, frozen=True):
    """The program, the document that explains it, and what each chapter opens of it."""

    program: Words
    about: Words
    chapters: dict[str, Opened]

    def parts(self, doc: str) -> list[tuple[int, str]]:
        """Return what a chapter opens, each with its place in the program, in order."""
        return sorted((self.program.find(part), part) for part in self.chapters[doc].opens)


def read_strip(path: Path) -> Strip:
    """Read the file of the strip.

    :raises BookError: it is missing or malformed, or a part of a chapter does not stand in a line
        of the program exactly once, or lies in another; the message names it.
    """
    strip = decode(Strip, path)
    for doc in strip.chapters:
        end = 0
        for start, part in strip.parts(doc):
            if strip.program.count(part) != 1 or "\n" in part or start < end:
                raise BookError(
                    f"{path.name}: {doc} opens {part!r}; give parts that stand in the program "
                    "once, each within a line and none in another."
                )
            end = start + len(part)
    return strip


def html(strip: Strip, doc: str, link: str) -> str:
    """Return a chapter's strip; `link` is the address at which the program is explained."""
    opened, done, at = strip.chapters[doc], "", 0
    for start, part in strip.parts(doc):
        done += f"{escape(strip.program[at:start])}<mark>{escape(part)}</mark>"
        at = start + len(part)
    done += escape(strip.program[at:])
    lines = "".join(f"<span>{line}\n</span>" for line in done.strip().splitlines())
    named = ", ".join(f"<code>{escape(part)}</code>" for part in opened.opens)
    return (
        f'<figure class="it it-strip"><pre><code>{lines}</code></pre><figcaption>Of the book’s '
        f"{linked(link, 'five lines')} this chapter opens {named}: {marked(opened.says)}"
        "</figcaption></figure>"
    )


def register(app: Sphinx) -> None:
    """Add the strip to the book's extension; a document without an entry has none."""
    app.connect("env-updated", to_write)
    app.connect("doctree-resolved", _place)


def to_write(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Name the pages whose strip is not as it was when they were written; complain of the file."""
    found = _found(app)
    if isinstance(found, str):
        logger.warning("%s", found)
    now = dict[str, object]()
    if isinstance(found, Strip):
        now = {doc: (found.program, found.about, one) for doc, one in found.chapters.items()}
        for doc in sorted({*now, found.about} - env.found_docs):
            logger.warning("%s names %r, which is no document of the book.", FILE, doc)
    before = getattr(env, "insidetorch_strips", {})
    env.insidetorch_strips = now  # type: ignore[attr-defined]
    return [doc for doc in {*before, *now} & env.found_docs if before.get(doc) != now.get(doc)]


def _place(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    found = _found(app) if app.builder.format == "html" else None
    title = next(iter(doctree.findall(nodes.title)), None)
    if title is not None and isinstance(found, Strip) and docname in found.chapters:
        link = app.builder.get_relative_uri(docname, found.about)
        title.parent.insert(title.parent.index(title) + 1, raw(html(found, docname, link)))


def _found(app: Sphinx) -> Strip | str | None:
    """Return the strip, None if the book has none, or what is wrong with its file."""
    path = Path(app.srcdir) / FILE
    return _read(path, path.stat().st_mtime_ns) if path.is_file() else None


@cache
def _read(path: Path, changed: int) -> Strip | str:
    try:
        return read_strip(path)
    except BookError as error:
        return str(error)
