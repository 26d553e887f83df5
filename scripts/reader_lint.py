"""What a reader would stumble over in a chapter, found in its file without running it.

``python scripts/reader_lint.py`` counts findings, chapter by chapter; with names of chapters it
lists theirs. A chapter is held to the rules once its front matter says
``insidetorch: {form: new}``. What is folded on the page, and sections marked *Deeper*, count for
pictures and terms alone. Cells for a GPU are left as they are.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from reader import rules
from reader.page import Finding, take_apart
from reader.syntax import ROOT
from reader.terms import terms

from insidetorch.book.parsed import parse
from insidetorch.book.project import Chapter, Page, Project, front_matter, open_project
from insidetorch.errors import BookError
from insidetorch.site.glossary import FILE as GLOSSARY
from insidetorch.site.glossary import Entry, read_glossary

RULES = {
    "long": "a visible cell has at most 8 lines, or 10 with a comment",
    "comment": "a visible cell of more than 6 lines has a comment",
    "check": "what only a check needs is not in sight",
    "tuple": "no tuple as a statement",
    "trick": "no lambda for its side effect, no slice of a formatted string",
    "kinds": "a name stands for one kind of thing",
    "picture": "a picture has a caption and alternative text",
    "drawn": "a section of the walk has a picture",
    "takeaway": "a section of the walk has a takeaway",
    "link": "a term of the glossary is a link where it is first used",
    "later": "a term that a later section defines is explained where it is first used",
}


def declared(page: Page) -> bool:
    """Tell whether a chapter is held to the rules.

    :raises BookError: its front matter names a form that is none.
    """
    own = front_matter(page.text, page.path).get("insidetorch") or {}
    form = own.get("form") if isinstance(own, dict) else None
    if form not in (None, "new"):
        raise BookError(
            f"{page.path}: `form: {form}` in the front matter is none; write `form: new`."
        )
    return form == "new"


def findings(chapter: Chapter, entries: Sequence[Entry], root: Path = ROOT) -> list[Finding]:
    """Return what breaks the rules, by line.

    :param root: where the modules are that the chapter imports.
    """
    read = take_apart(chapter, root)
    found = [
        *rules.lengths(read), *rules.checks(read), *rules.statements(read), *rules.kinds(read),
        *rules.pictures(read), *rules.sections(read), *terms(read, entries),
    ]  # fmt: skip
    return sorted(set(found), key=lambda one: (one.line, list(RULES).index(one.rule), one.said))


def chapters(project: Project, *, held: bool = False) -> list[Chapter]:
    """Return the chapters of the book, and appendices that are held to the rules.

    :param held: only those that are.
    """

    def lazily(doc: str, text: str) -> dict[str, Any]:
        wanted = not held or declared(Page(doc, project.root / f"{doc}.md", text))
        return parse(doc, text) if wanted else {"cells": [], "metadata": {"source_map": []}}

    return [
        page
        for page in project.pages(project.limits(), lazily)
        if isinstance(page, Chapter)
        and (declared(page) or (page.doc.startswith("notebooks/") and not held))
    ]


def listed(chapter: Chapter, found: Iterable[Finding]) -> list[str]:
    """Return findings as lines, each with its place."""
    return [f"{chapter.doc}.md:{one.line}: {one.rule}: {one.said}" for one in found]


def report(found: Sequence[tuple[Chapter, Sequence[Finding]]], named: Iterable[str] = ()) -> str:
    """Return the counts by chapter and rule, and the findings of those named and those held."""
    width = max((len(Path(chapter.doc).name) for chapter, _ in found), default=0) + 2
    lines = [" " * width + "".join(f"{rule:>9}" for rule in RULES)]
    for chapter, its in found:
        counts = Counter(one.rule for one in its)
        name = f"{'*' if declared(chapter) else ' '} {Path(chapter.doc).name}"
        lines.append(f"{name:<{width}}" + "".join(f"{counts[rule] or '·':>9}" for rule in RULES))
    lines.append("* is held to the rules; its front matter has `insidetorch: {form: new}`")
    lines += [f"  {rule + ':':<10}{meaning}" for rule, meaning in RULES.items()]
    wanted = {Path(name).stem for name in named}
    for chapter, its in found:
        if declared(chapter) or Path(chapter.doc).name in wanted:
            lines += listed(chapter, its)
    return "\n".join(lines)


def main(named: Sequence[str]) -> int:
    """Print the report; return 1 if a chapter that is held to the rules breaks one."""
    entries = read_glossary(ROOT / GLOSSARY)
    found = [(one, findings(one, entries)) for one in chapters(open_project(ROOT))]
    print(report(found, named))
    return int(any(its and declared(chapter) for chapter, its in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
