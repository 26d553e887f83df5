"""The first page: what the book found, shown with what the last build made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from insidetorch.claims import OUTCOMES, read_verdicts
from insidetorch.display import escape, marked, strip_style
from insidetorch.errors import BookError
from insidetorch.site import own_host, questions, reading_list, verdicts
from insidetorch.site.book_ledger import Ledger
from insidetorch.site.part import PageContext
from insidetorch.site.parts import NO_LEDGER
from insidetorch.site.places import linked
from insidetorch.site.stamp import moment, release

FILES = (questions.FILE, questions.SYMPTOMS, reading_list.VERDICTS)
NOT_SO = ("refuted", "until")


def counts(source: Path, ledger: Ledger) -> tuple[Counter[str], str]:
    """Return how many of the sentences that circulate have each outcome, and on which release."""
    found = verdicts.settled(read_verdicts(source / reading_list.VERDICTS), ledger)
    return Counter(one.outcome for one in found), ledger.torch.split("+")[0]


def finding(page: PageContext) -> str:
    """Return how many of the sentences that circulate are not true, with all outcomes as a bar."""
    if page.ledger is None:
        return NO_LEDGER
    of, torch = counts(page.source, page.ledger)
    wrong = sum(of[kind] for kind in NOT_SO)
    goal = page.link(reading_list.VERDICT_PAGE)
    there = [(kind, one) for kind, one in reversed(OUTCOMES.items()) if of[kind]]
    bar = "".join(
        f'<span style="flex:{of[kind]};background:var({one.colour})"></span>' for kind, one in there
    )
    key = "".join(
        f'<li style="--it-outcome:var({one.colour})">'
        f"{linked(f'{goal}?o={kind}', f'{of[kind]} {one.words}')}</li>"
        for kind, one in there
    )
    return (
        f'<div class="it it-finding"><p>Of <strong>{of.total()}</strong> statements about '
        f"PyTorch from documentation, articles and courses, <strong>{wrong}</strong> are not true, "
        f"or no longer, on torch {escape(torch)}. "
        f"{linked(goal, 'See all of them')}.</p>"
        f'<div class="it-shares" aria-hidden="true">{bar}</div><ul class="it-key">{key}</ul></div>'
    )


def live(page: PageContext, id: str) -> str:
    """Return a verdict as its chapter shows it, below the excerpt that stands before it.

    :raises BookError: no chapter has given that verdict.
    """
    sentence = next(
        (v.sentence for v in read_verdicts(page.source / reading_list.VERDICTS) if v.id == id), None
    )
    for chapter in page.ledger.chapters if page.ledger else ():
        if any(record.get("id") == id for record in chapter.of("verdict")):
            break
    else:
        return NO_LEDGER if page.ledger is None else _lacks(f"no chapter gives the verdict {id!r}")
    assert sentence is not None
    shown = ""
    for node in own_host.raw_html(page.app.env.get_doctree(chapter.doc), 'class="it '):
        html = strip_style(node.astext()).partition("<details")[0]
        if 'class="it it-excerpt' in html:
            shown = html
        if 'class="it it-verdict' in html and marked(sentence) in html:
            break
    goal = page.link(chapter.doc, verdicts.anchor(id))
    return (
        f'<div class="it-live-verdict">{html}{shown}<p>{linked(goal, "The cell that settles it")}, '
        f"in {linked(page.link(chapter.doc), chapter.title)}.</p></div>"
    )


def picture(page: PageContext, doc: str, id: str) -> str:
    """Return a picture of a chapter.

    :raises BookError: the chapter has no picture of that name.
    """
    mark = f'id="fig-{id}"'
    for node in own_host.raw_html(page.app.env.get_doctree(doc), mark):
        html = strip_style(node.astext()).replace(mark, "")
        return html.partition("<figcaption")[0] + "</figure>"
    return _lacks(f"{doc} has no picture {id!r}")


def _lacks(what: str) -> str:
    raise BookError(f"the first page shows what is not there: {what}; mend book/index.md.")


def doors(page: PageContext) -> str:
    """Return a door for each symptom that has one: to its path, and to its questions."""
    symptoms = questions.read_symptoms(page.source / questions.SYMPTOMS)
    asked = questions.read_questions(page.source / questions.FILE)
    each = Counter(questions.symptom_of(one, symptoms) for one in asked)
    made = ""
    for one in (one for one in symptoms if one.path):
        place = page.places.find(one.path)
        if place is None:
            page.complain(f"{questions.SYMPTOMS}: {one.path!r} is no label of the book; mend it.")
            continue
        more = linked(page.link(one.page, one.id), f"{each[one.id]} questions")
        made += (
            f"<li>{linked(page.link(place.doc, place.anchor), one.title)}"
            f"<span>{escape(one.says)} {more}</span></li>"
        )
    return f'<ul class="it it-doors">{made}</ul>'


def chapters(page: PageContext) -> str:
    """Return the chapters by part, each with the question it starts from."""
    root = page.app.env.get_doctree(page.app.config.root_doc)
    made = ""
    for tree in root.findall(addnodes.toctree):
        docs = [doc for _, doc in tree["entries"] if doc.startswith("notebooks/")]
        items = "".join(
            f"<li>{linked(page.link(doc), page.titles[doc])}<span>{escape(_question(page, doc))}"
            "</span></li>"
            for doc in docs
        )
        if items:
            made += f"<h3>{escape(tree.get('caption') or '')}</h3><ul>{items}</ul>"
    return f'<div class="it it-chapters">{made}</div>'


def _question(page: PageContext, doc: str) -> str:
    first = next(iter(page.app.env.get_doctree(doc).findall(nodes.paragraph)), None)
    return " ".join(first.astext().split()) if first is not None else ""


def status(page: PageContext) -> str:
    """Return a line: what of the book held, on what, when."""
    if page.ledger is None:
        return NO_LEDGER
    pairs = [chapter.held() for chapter in page.ledger.chapters]
    held, made = (sum(each) for each in zip(*pairs, strict=True))
    return (
        f'<p class="it it-status">{held} of {made} claims held on '
        f"{release(page.ledger.torch, page.ledger.commit)}, built {moment(page.ledger.built)}. "
        f"{linked(page.link('book/colophon'), 'All checks')}</p>"
    )
