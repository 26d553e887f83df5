"""What the reading list owes its reader, checked at every build: nothing left without a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from insidetorch.claims import Verdict
from insidetorch.site.bibliography import Reference, Subject, state
from insidetorch.site.book_ledger import Ledger


def problems(
    references: Sequence[Reference],
    subjects: Sequence[Subject],
    verdicts: Sequence[Verdict],
    docs: Collection[str],
    ledger: Ledger | None,
) -> list[str]:
    """Return a sentence for each thing that does not fit together, nothing if all does.

    :param docs: the documents of the book.
    :param ledger: the build's ledger; None leaves out what only an execution can tell.
    """
    return [
        *_subjects(references, subjects),
        *_states(references, subjects, docs),
        *_sources(references, verdicts),
        *_places(verdicts, docs),
        *(_cells(verdicts, ledger) if ledger else ()),
    ]


def _subjects(references: Sequence[Reference], subjects: Sequence[Subject]) -> Iterator[str]:
    known = {subject.id for subject in subjects}
    used = Counter(id for reference in references for id in reference.subjects)
    for id in used:
        if id not in known:
            some = next(one.id for one in references if id in one.subjects)
            yield (
                f"book/references.bib: the subject {id!r} of {some!r} has no chapter and no state; "
                "add it to book/subjects.yml."
            )
    for subject in subjects:
        if subject.id not in used:
            yield f"book/subjects.yml: no reference has the subject {subject.id!r}; remove it."


def _states(
    references: Sequence[Reference], subjects: Sequence[Subject], docs: Collection[str]
) -> Iterator[str]:
    known = {subject.id: subject for subject in subjects}
    for reference in references:
        if reference.subjects[0] in known and state(reference, known, docs, {}) is None:
            yield (
                f"book/references.bib: {reference.id!r} has no state; give it chapters, or give "
                "its subject chapters in book/subjects.yml."
            )


def _sources(references: Sequence[Reference], verdicts: Sequence[Verdict]) -> Iterator[str]:
    known = {reference.id for reference in references}
    for verdict in verdicts:
        for source in verdict.sources:
            if source.ref and source.ref not in known:
                yield (
                    f"book/verdicts.yml: {verdict.id!r} names the reference {source.ref!r}, which "
                    "is not in book/references.bib; mend the name."
                )


def _places(verdicts: Sequence[Verdict], docs: Collection[str]) -> Iterator[str]:
    for id, count in Counter(verdict.id for verdict in verdicts).items():
        if count > 1:
            yield f"book/verdicts.yml has {id!r} {count} times; keep one."
    for chapter in dict.fromkeys(verdict.chapter for verdict in verdicts):
        ids = [repr(verdict.id) for verdict in verdicts if verdict.chapter == chapter]
        if chapter not in docs:
            more = f" and {len(ids) - 2} more" if len(ids) > 2 else ""
            yield (
                f"book/verdicts.yml: {', '.join(ids[:2])}{more} name the chapter {chapter!r}, "
                "which is not in _toc.yml; add it there or mend the name."
            )


def _cells(verdicts: Sequence[Verdict], ledger: Ledger) -> Iterator[str]:
    given = Counter(
        (str(record.get("id")), chapter.doc)
        for chapter in ledger.chapters
        for record in chapter.of("verdict")
    )
    ran = {chapter.doc for chapter in ledger.chapters if chapter.status == "ok"}
    for verdict in verdicts:
        count = given[verdict.id, verdict.chapter]
        if verdict.chapter in ran and count != 1:
            yield (
                f"book/verdicts.yml: {verdict.id!r} is settled by {count} cells of "
                f"{verdict.chapter}; settle it in exactly one."
            )
        for (id, doc), _ in given.items():
            if id == verdict.id and doc != verdict.chapter:
                yield (
                    f"book/verdicts.yml: {id!r} is settled in {doc}, but its chapter is "
                    f"{verdict.chapter!r}; keep one of the two."
                )
