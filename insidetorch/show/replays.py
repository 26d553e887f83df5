"""`replay`: the states of a run, one picture each, stepped through on the page."""

from __future__ import annotations

from collections.abc import Sequence

from insidetorch.display import Display, marked
from insidetorch.errors import BookError
from insidetorch.show.figures import captioned

_SIDE_BY_SIDE = 6


def replay(
    states: Sequence[tuple[Display, str]],
    *,
    caption: str,
    name: str = "",
    key: Sequence[int] | None = None,
) -> Display:
    """Show how something moved: a picture for each state of a run, and a sentence for each.

    On the page one state is seen at a time, and a slider, two buttons or the arrow keys lead to
    the others. In a notebook, without scripts and in print the key states stand side by side.

    :param states: picture and sentence of each state, in order, two at least.
    :param caption: what to look at.
    :param name: by which the text refers to the number, as in ``[](#fig-name)``.
    :param key: the states, counted from 0, that are shown side by side; without it the first,
        the last, and up to four evenly between them.
    :raises BookError: there are fewer than two states, one has no sentence, there is no caption,
        or `key` names a state that is not there.
    """
    if len(states) < 2 or not caption.strip() or any(not said.strip() for _, said in states):
        raise BookError(
            "replay(…) needs two states or more, a sentence for each, and a caption that says "
            "what to look at."
        )
    chosen = set(_evenly(len(states)) if key is None else key)
    if not chosen or not chosen <= set(range(len(states))):
        raise BookError(
            f"replay(…, key={list(key or ())}) must name some of the states 0 to {len(states) - 1}."
        )
    items = "".join(
        f'<li class="it-state{" it-key" if at in chosen else ""}">{picture.html}'
        f'<p class="it-says">{marked(said)}</p></li>'
        for at, (picture, said) in enumerate(states)
    )
    text = "\n".join(
        f"{at}. {said}\n{picture.text}" for at, (picture, said) in enumerate(states, 1)
    )
    html = f'<div class="it-replay"><ol class="it-states">{items}</ol></div>'
    return captioned(Display(html, text), caption, name)


def _evenly(count: int) -> list[int]:
    """Return up to six places, the first and the last among them, evenly spread."""
    shown = min(count, _SIDE_BY_SIDE)
    return [round(step * (count - 1) / (shown - 1)) for step in range(shown)]
