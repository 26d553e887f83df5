"""The References page: the reading list by subject, with a state for each text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from insidetorch.display import escape
from insidetorch.site import lists
from insidetorch.site.bibliography import (
    COVERED,
    LANGUAGES,
    OUTSIDE,
    SETTLED,
    STATES,
    WAITING,
    Reference,
    State,
    Subject,
)
from insidetorch.site.places import linked

_LATER = (WAITING, OUTSIDE)

Link = Callable[[str], tuple[str, str]]
"""Takes a document; returns its address relative to the page, and its title."""


def anchor(id: str) -> str:
    """Return the id of a reference on the page; citations lead to it."""
    return f"ref-{id}"


def page(
    references: Sequence[Reference],
    subjects: Sequence[Subject],
    states: Mapping[str, State],
    link: Link,
    verdicts: str,
) -> str:
    """Return the list as HTML, with contents and a filter.

    :param states: the state of each reference, by id.
    :param verdicts: the address of the page of verdicts, with the fragment's beginning.
    """
    first = {
        subject.id: [one for one in references if one.subjects[0] == subject.id]
        for subject in subjects
    }
    used = [subject for subject in subjects if first[subject.id]]
    # What the book has something to say of comes first.
    used.sort(key=lambda one: all(states[r.id].kind in _LATER for r in first[one.id]))
    sections = "".join(
        _section(subject, first[subject.id], states, link, verdicts) for subject in used
    )
    form = lists.form(
        ".it-refs li",
        len(references),
        topic={one.id: one.title for one in subjects},
        language=LANGUAGES,
        state=STATES,
    )
    subjects_of = lists.contents(((f"#subject-{one.id}", one.title) for one in used), "Subjects")
    return f'{_counted(states)}{subjects_of}{form}<div class="it-refs">{sections}</div>'


def _counted(states: Mapping[str, State]) -> str:
    counts = Counter(one.kind for one in states.values())
    said = ", ".join(f"{counts[kind]} {words}" for kind, words in STATES.items())
    return f"<p>{len(states)} texts: {said}.</p>"


def _section(
    subject: Subject,
    references: Sequence[Reference],
    states: Mapping[str, State],
    link: Link,
    verdicts: str,
) -> str:
    note = f"<p>{escape(subject.outside)}</p>" if subject.outside else ""
    items = "".join(_item(one, states[one.id], link, verdicts) for one in references)
    return (
        f'<section id="subject-{escape(subject.id)}"><h2>{escape(subject.title)}</h2>{note}'
        f"<ul>{items}</ul></section>"
    )


def _item(reference: Reference, state: State, link: Link, verdicts: str) -> str:
    lang = f' lang="{reference.language}"' if reference.language != "en" else ""
    title = f"<cite{lang}>{escape(reference.title)}</cite>"
    if reference.url:
        title = f'<a href="{escape(reference.url)}">{title}</a>'
    gloss = f" ({escape(reference.gloss)})" if reference.gloss else ""
    year = f"{'≈ ' if reference.inferred else ''}{reference.year}" if reference.year else ""
    about = [reference.author, year, LANGUAGES[reference.language], reference.read]
    said = "".join(
        f"<p>{escape(text)}</p>" for text in (reference.good_for, reference.doubt, reference.remark)
        if text
    )  # fmt: skip
    return (
        f'<li id="{escape(anchor(reference.id))}" data-t="{escape(" ".join(reference.subjects))}" '
        f'data-l="{reference.language}" data-s="{state.kind}">{title}{gloss}<p class="it-about">'
        f"{escape(', '.join(part for part in about if part))}</p>{said}"
        f'<p class="it-state">{_state(state, link, verdicts)}</p></li>'
    )


def _state(state: State, link: Link, verdicts: str) -> str:
    shown = ", ".join(linked(*link(doc)) for doc in state.chapters)
    if state.kind == SETTLED:
        count = len(state.verdicts)
        links = ", ".join(
            linked(f"{verdicts}{id}", str(number))
            for number, id in enumerate(state.verdicts, start=1)
        )
        said = f"settled in {count} {'verdict' if count == 1 else 'verdicts'} ({links})"
        return f"{said}; shown in {shown}" if shown else said
    if state.kind == COVERED:
        return f"shown in {shown}"
    return {WAITING: STATES[WAITING], OUTSIDE: STATES[OUTSIDE]}[state.kind]
