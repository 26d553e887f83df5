"""Sentences that are checked as they are read: claim, verdict, and warnings declared in advance."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from insidetorch.decode import Words, Written, decode
from insidetorch.display import Display, escape, facts, marked, show, table
from insidetorch.errors import BookError


@dataclass(frozen=True)
class Outcome:
    """What can become of a sentence that circulates: the words and the colour for it, everywhere.

    :param label: what the verdict is headed with.
    :param words: what is said where verdicts are counted.
    :param means: its line in the legend.
    :param colour: a colour of the theme.
    :param needs: the argument of `verdict` that goes with it, and with no other outcome.
    :param asks: what that argument says.
    :param before: what the page has before it; "" where it stands in the label.
    """

    label: str
    words: str
    means: str
    colour: str
    needs: str = ""
    asks: str = ""
    before: str = ""


OUTCOMES = {
    "confirmed": Outcome("Confirmed", "still true", "it holds on this release.", "--it-good"),
    "since": Outcome(
        "True since", "true since a later release",
        "it was not true when it was written, and is since the named release.",
        "--it-a", "since", "names the first release in which the sentence is true",
    ),
    "half": Outcome(
        "Half right", "half right",
        "a part of it holds and a part does not; below it stands which.",
        "--it-d", "now", "says what holds and what does not",
    ),
    "depends": Outcome(
        "It depends", "it depends",
        "it holds under a condition that it does not name; the verdict does.",
        "--it-b", "on", "says what it depends on", "On:",
    ),
    "open": Outcome(
        "Open", "open",
        "what was tried settles nothing; below it stands what it would take to know.",
        "--it-soft", "takes", "says what it would take to know", "To know, it would take:",
    ),
    "until": Outcome(
        "True until", "no longer true", "it was true up to the named release.",
        "--it-note", "until", "names the last release in which the sentence was true",
    ),
    "refuted": Outcome(
        "Refuted", "not true",
        "it does not hold on this release. What happens instead is said below it.", "--it-bad",
    ),
}  # fmt: skip
"""The outcomes by name, from what holds to what does not."""
FAILED = "Evidence failed"


class Citation(Written, frozen=True):
    """A text that says a sentence.

    :param year: when it was written.
    :param ref: its key in the bibliography, if it is on the reading list.
    :param where: the place in the text.
    """

    title: Words
    year: int | None = None
    url: str | None = None
    ref: str | None = None
    where: str | None = None


class Verdict(Written, frozen=True):
    """A sentence that circulates, in our words, and the chapter that settles it.

    :param note: what the authors found, for themselves.
    """

    id: Words
    sentence: Words
    sources: tuple[Citation, ...]
    chapter: str
    note: str = ""


_settled: dict[str, tuple[dict[str, Any], Verdict]] = {}


class ClaimFailed(AssertionError):
    """A sentence of the book that did not hold when it was run."""

    def __init__(self, sentence: str, values: Mapping[str, str], release: str) -> None:
        self.sentence, self.values, self.release = sentence, dict(values), release
        seen = ", ".join(f"{name} = {value}" for name, value in values.items())
        super().__init__(
            f"does not hold on torch {release}: “{sentence}”" + (f" ({seen})" if seen else "")
        )


def claim(
    text: str,
    holds: object,
    *,
    over: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
    **values: object,
) -> None:
    """State a sentence about PyTorch and check it, once or over many cases.

    :param text: the sentence, as the reader reads it.
    :param holds: what must be true. A tensor of one element counts as its value. With `over`, a
        function that is called for each case and says whether the sentence holds in it.
    :param over: the cases: values, each given to `holds`; or names with their values, such as
        ``{"dtype": dtypes, "layout": layouts}``, of which each combination is given by name. The
        line says in how many of them the sentence held, and over what.
    :param values: what was seen, shown under the sentence and in the error when it fails.
    :raises ClaimFailed: `holds` is false, or is in some case, which is named; under a drift run
        (``INSIDETORCH_COLLECT=1``) the failed claim is recorded instead.
    :raises BookError: `over` has no case, or `holds` cannot be called for one.
    """
    counted: dict[str, object] = {}
    if over is not None:
        counted = _over_cases(text, holds, over)
        holds = "fails_for" not in counted
    held, shown, release = bool(holds), _shown({**counted, **values}), _release()
    record = {"kind": "claim", "text": text, "held": held, "values": shown, "torch": release}
    mark, word = ("✔", "held") if held else ("✘", "failed")
    html = (
        f'<div class="it it-claim it-{word}"><span class="it-mark" role="img" aria-label="{word}">'
        f'{mark}</span><div class="it-body"><p>{marked(text)}</p>{facts(shown)}</div>'
        f'<span class="it-release">{escape(release)}</span></div>'
    )
    seen = "".join(f"\n    {name} = {value}" for name, value in shown.items())
    show(Display(html, f"{mark} {text}  [torch {release}]{seen}", record))
    if not held and not _collecting():
        raise ClaimFailed(text, shown, release)


def beside(html: str, releases: Sequence[str]) -> str:
    """Return a claim's HTML with the releases of which its cell does not say the sentence."""
    here = '</div><span class="it-release">'
    return html.replace(here, facts({"not said of": ", ".join(releases)}) + here, 1)


def _over_cases(
    text: str, check: object, over: Iterable[Any] | Mapping[str, Iterable[Any]]
) -> dict[str, object]:
    """Return in how many cases a sentence held, over what, and the first cases that fail it."""
    if not callable(check):
        raise BookError(f"claim({text!r}, …, over=…) needs a function that checks one case.")
    named = {name: list(each) for name, each in over.items()} if isinstance(over, Mapping) else None
    cases = list(product(*named.values())) if named is not None else [(case,) for case in over]
    if not cases:
        raise BookError(f"claim({text!r}, …, over=…) has no case; give at least one.")
    failing = []
    for case in cases:
        given = dict(zip(named, case, strict=True)) if named is not None else {}
        said = ", ".join(f"{name}={value!r}" for name, value in given.items()) or repr(case[0])
        try:
            held = bool(check(**given) if given else check(*case))
        except Exception as error:
            held, said = False, f"{said} ({type(error).__name__}: {' '.join(str(error).split())})"
        if not held:
            failing.append(said)
    counted: dict[str, object] = {"held_in": f"{len(cases) - len(failing)} of {len(cases)}"}
    if named is not None:
        each = (
            f"{len(values)} {name.replace('_', ' ')}{'s' * (len(values) != 1)}"
            for name, values in named.items()
        )
        counted["held_in"] = f"{counted['held_in']}: {' × '.join(each)}"
    if failing:
        more = f" and {len(failing) - 3} more" if len(failing) > 3 else ""
        counted["fails_for"] = "; ".join(failing[:3]) + more
    return counted


def verdict(
    id: str,
    holds: object,
    *,
    outcome: str = "refuted",
    until: str = "",
    since: str = "",
    on: str = "",
    takes: str = "",
    now: str = "",
    **values: object,
) -> None:
    """Settle a sentence that circulates, by what this cell saw.

    :param id: the entry of ``book/verdicts.yml`` that holds the sentence and who says it.
    :param holds: evidence for the outcome; must be true. Of an ``"open"`` sentence it is what was
        tried, which settles nothing.
    :param outcome: ``"confirmed"``, ``"refuted"``, ``"half"`` (right), ``"until"`` or ``"since"``
        (true up to, or from, a release), ``"depends"``, ``"open"``.
    :param until: for ``"until"``, the last release in which the sentence was true.
    :param since: for ``"since"``, the first release in which the sentence is true.
    :param on: for ``"depends"``, what it depends on.
    :param takes: for ``"open"``, what it would take to know.
    :param now: one sentence: what happens today; for ``"half"``, what holds and what does not.
    :param values: what was seen.
    :raises BookError: the id or the outcome is unknown, or what goes with the outcome is missing.
    :raises ClaimFailed: the evidence does not hold.
    """
    entry = _verdicts().get(id)
    if entry is None:
        import difflib

        near = difflib.get_close_matches(id, _verdicts(), n=3)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise BookError(f"verdict {id!r} has no entry in book/verdicts.yml{hint}; add one there.")
    said = {"until": until, "since": since, "on": on, "takes": takes, "now": now}
    _require_what_goes_with(id, outcome, said)
    held, shown, release = bool(holds), _shown(values), _release()
    record = {
        "kind": "verdict", "id": id, "sentence": entry.sentence, "outcome": outcome,
        **said, "held": held, "torch": release, "values": shown,
    }  # fmt: skip
    label, more = outcome_label(record), outcome_more(record)
    sources = _sources(entry)
    html = (
        f"<div {outcome_attributes(record)}>"
        f'<p class="it-label"><strong>{escape(label)}</strong>'
        f'<span class="it-release">{escape(release)}</span></p>'
        f"<blockquote><p>{marked(entry.sentence)}</p>"
        f"<footer>{sources.html}</footer></blockquote>"
        f"{''.join(f'<p>{marked(each)}</p>' for each in more)}{facts(shown)}</div>"
    )
    seen = "".join(f"\n    {each}" for each in more)
    seen += "".join(f"\n    {name} = {value}" for name, value in shown.items())
    text = f"{label} [torch {release}]: “{entry.sentence}” ({sources.text}){seen}"
    show(Display(html, text, record))
    _settled[id] = (record, entry)
    if not held and not _collecting():
        raise ClaimFailed(f"{label}: {entry.sentence}", shown, release)


def _require_what_goes_with(id: str, outcome: str, said: Mapping[str, str]) -> None:
    """Refuse an outcome that is unknown, or comes without its argument or with another's."""
    if outcome not in OUTCOMES:
        raise BookError(
            f"verdict {id!r} has the outcome {outcome!r}; use one of {', '.join(OUTCOMES)}."
        )
    for name, kind in OUTCOMES.items():
        wanted, given = name == outcome, bool(said.get(kind.needs, "").strip())
        if kind.needs and wanted != given and (wanted or kind.needs != "now"):
            only = " alone" if kind.needs != "now" else ""
            raise BookError(
                f"verdict {id!r}: `{kind.needs}` {kind.asks}, and goes with outcome={name!r}{only}."
            )


def outcome_label(record: Mapping[str, Any]) -> str:
    """Return what the verdict of a record is headed with, as in “True until 1.5”."""
    if not record.get("held"):
        return FAILED
    kind = OUTCOMES[str(record["outcome"])]
    in_label = kind.needs in ("until", "since")
    return f"{kind.label} {record.get(kind.needs) or ''}".strip() if in_label else kind.label


def outcome_more(record: Mapping[str, Any]) -> list[str]:
    """Return the sentences below the verdict of a record."""
    kind = OUTCOMES[str(record["outcome"])]
    added = str(record.get(kind.needs) or "") if kind.before else ""
    now = str(record.get("now") or "")
    return [*([f"{kind.before} {added.rstrip('.')}."] if added else []), *([now] if now else [])]


def outcome_attributes(record: Mapping[str, Any]) -> str:
    """Return the attributes of the box that has the verdict of a record."""
    if not record.get("held"):
        return 'class="it it-verdict it-failed"'
    name = str(record["outcome"])
    return f'class="it it-verdict it-{name}" style="--it-outcome:var({OUTCOMES[name].colour})"'


def settled() -> Display:
    """Return the table of the verdicts given so far in this run."""
    if not _settled:
        raise BookError("settled() was called before any verdict(…) in this run; run those first.")
    rows = []
    for record, entry in _settled.values():
        sentence = Display(marked(entry.sentence), entry.sentence)
        now = " ".join(outcome_more(record))
        rows.append([sentence, _sources(entry), outcome_label(record), Display(marked(now), now)])
    return table(
        ["Sentence", "Who says it", "Verdict", "What happens now"],
        rows,
        caption=f"Settled on torch {_release()}",
        prose=True,
    )


@contextmanager
def warns(category: type[Warning], match: str = "") -> Iterator[None]:
    """Declare that the block warns, and show the warning for what it is.

    :param category: the warning's class.
    :param match: a regular expression found in the message.
    :raises ClaimFailed: no such warning came, so the sentence around it is out of date.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = False
    for item in caught:
        message = str(item.message)
        declared = issubclass(item.category, category) and bool(re.search(match, message))
        found |= declared
        show_warning(item.category, message, declared=declared, origin=item.filename)
    if not found:
        wanted = f"the block warns with {category.__name__}" + (
            f" matching {match!r}" if match else ""
        )
        release = _release()
        record = {"kind": "claim", "text": wanted, "held": False, "values": {}, "torch": release}
        if not _collecting():
            raise ClaimFailed(wanted, {}, release)
        show(
            Display(
                f'<p class="it it-claim it-failed">✘ {escape(wanted)}</p>', f"✘ {wanted}", record
            )
        )


def show_warning(category: type[Warning], message: str, *, declared: bool, origin: str) -> None:
    """Show a warning as an output of the cell, with a record for the ledger.

    :param origin: the file that warned; only its part below ``site-packages`` is kept.
    """
    place = re.sub(r".*site-packages[/\\]", "", origin)
    message = re.sub(r'(?<=File ")[^"]*[/\\]([^"/\\]+)(?=")', _shortened, message)
    if ("/" not in place and "\\" not in place) or "ipykernel" in place or place.startswith("/"):
        place = "this cell"
    record = {
        "kind": "warning", "category": category.__name__, "message": message,
        "declared": declared, "origin": place,
        "deprecation": issubclass(category, DeprecationWarning | FutureWarning),
    }  # fmt: skip
    html = (
        '<div class="it it-warning"><p class="it-label">'
        f"<strong>{escape(category.__name__)}</strong>"
        f"<span>{'expected here; ' if declared else ''}from {escape(place)}</span></p>"
        f"<p>{escape(message)}</p></div>"
    )
    show(Display(html, f"{category.__name__} (from {place}): {message}", record))


def _shortened(path: re.Match[str]) -> str:
    """Return a file's path below ``site-packages``, or its name: the same on every machine."""
    _, found, below = path[0].replace("\\", "/").rpartition("/site-packages/")
    return below if found else path[1]


def record_warnings() -> None:
    """Turn the warnings of this kernel into outputs with records.

    Deprecations raised inside torch, which Python hides unless the caller is ``__main__``,
    are shown once for each place.
    """

    def showwarning(
        message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: Any = None, line: str | None = None,
    ) -> None:  # fmt: skip
        show_warning(category, str(message), declared=False, origin=filename)

    for category in (DeprecationWarning, FutureWarning):
        warnings.filterwarnings("default", category=category, module=r"torch(\.|$)|__main__")
    warnings.showwarning = showwarning


@cache
def _verdicts() -> dict[str, Verdict]:
    for path in verdict_files():
        if path.is_file():
            return {entry.id: entry for entry in read_verdicts(path)}
    raise BookError(
        f"book/verdicts.yml was not found beside the package ({verdict_files()[0]}); "
        "run from a checkout of the book or install its wheel."
    )


def read_verdicts(path: Path) -> list[Verdict]:
    """Read the sentences that circulate.

    :raises BookError: the file is missing or broken; the message names the entry.
    """
    return decode(list[Verdict], path)


def verdict_files() -> list[Path]:
    """Return where the verdicts may be: in a checkout, then inside an installed wheel."""
    package = Path(__file__).parent
    return [package.parent / "book" / "verdicts.yml", package / "verdicts.yml"]


def _sources(entry: Verdict) -> Display:
    """Return who says a sentence."""
    texts, html = [], []
    for source in entry.sources:
        texts.append(f"{source.title}, {source.year}" if source.year else source.title)
        text, url = escape(texts[-1]), source.url or ""
        html.append(f'<a href="{escape(url)}">{text}</a>' if url.startswith("https:") else text)
    return Display("; ".join(html), "; ".join(texts))


def _shown(values: Mapping[str, object]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else repr(value) for name, value in values.items()
    }


def _release() -> str:
    import torch

    return str(torch.__version__)


def _collecting() -> bool:
    return os.environ.get("INSIDETORCH_COLLECT") == "1"
