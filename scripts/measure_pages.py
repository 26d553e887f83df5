"""Measure the built pages as a reader meets them: how high, how much code, how many pictures.

``python scripts/measure_pages.py [SITE] [CHAPTER …]`` opens each chapter in headless Chromium at
1400 by 900 pixels; SITE is `_build/html` unless given. Shares are of the height of the text column
with *Deeper* closed, as the page opens; the screens of the core path are those of the same. With
``--deeper`` the shares are those of the page with *Deeper* open. Stars stand where a page misses a
bar.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from insidetorch import facts

ROOT = Path(__file__).resolve().parent.parent
WIDE, SCREEN = 1400, 900

_MEASURE = """(open) => {
  const article = document.querySelector("article.bd-article");
  const deeper = [...article.querySelectorAll("details.it-deeper")];
  // What waits to be parsed is parsed when it is told.
  const set = (is) => deeper.forEach((details) => {
    details.open = is;
    details.dispatchEvent(new Event("toggle"));
  });
  const box = () => article.getBoundingClientRect();
  const all = (selector) => [...article.querySelectorAll(selector)]
    .filter((e) => e.checkVisibility({ visibilityProperty: true }));
  const spans = (elements) => {
    const top = box().top, found = elements.map((e) => e.getBoundingClientRect())
      .filter((r) => r.height > 0).map((r) => [r.top - top, r.bottom - top])
      .sort((a, b) => a[0] - b[0]);
    const made = [];
    for (const [from, to] of found) {
      const last = made[made.length - 1];
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else made.push([from, to]);
    }
    return made;
  };
  const sum = (found) => found.reduce((total, [from, to]) => total + to - from, 0);
  const PICTURE = ".it-picture, .it-figure, .it-replay, figure.align-default, .mermaid, img";
  const EXCERPT = ".it-excerpt", OUTPUT = ".cell_output, .it";
  const CODE = ".cell_input, div.highlight, pre";
  const TEXT = "p, li, dt, dd, blockquote, h1, h2, h3, h4, h5, h6, td, th, div.math";
  const within = (e, selector) => e.parentElement.closest(selector);
  const measure = () => {
    const pictures = all(PICTURE).filter((e) => !within(e, PICTURE) && !e.closest(EXCERPT)
      && e.getBoundingClientRect().height >= 40);
    const excerpts = all(EXCERPT).filter((e) => !within(e, EXCERPT + "," + PICTURE));
    const code = all(CODE).filter((e) => !within(e, CODE) && !e.closest(EXCERPT + "," + PICTURE)
      && (e.closest(".cell_input") || !e.closest(".cell_output") || e.closest(".it-how")));
    const text = all(TEXT).filter((e) => !within(e, TEXT)
      && !e.closest(OUTPUT + "," + CODE + "," + PICTURE));
    return { height: box().height, pictures: spans(pictures), count: pictures.length,
      code: sum(spans(code)), excerpts: sum(spans(excerpts)), prose: sum(spans(text)),
      words: text.map((e) => e.innerText).join(" ").split(/\\s+/)
        .filter((word) => /[\\p{L}\\p{N}]/u.test(word)).length };
  };
  set(false);
  const closed = measure();
  const checks = all(".it-claim.it-held").filter((e) => !e.closest("details.it-deeper")).length;
  set(true);
  const opened = measure();
  set(false);
  const seen = open ? opened : closed;
  const edges = [0, ...seen.pictures.flat(), seen.height];
  const gaps = edges.filter((_, n) => n % 2).map((end, n) => end - edges[2 * n]);
  return { height: opened.height, core: closed.height, code: seen.code / seen.height,
    pictures: sum(seen.pictures) / seen.height, prose: seen.prose / seen.height,
    excerpts: seen.excerpts / seen.height, checks, count: opened.count,
    longest: Math.max(...gaps), words: closed.words };
}"""


@dataclass(frozen=True)
class Page:
    """What was measured of a chapter's page.

    :param screens: its height with *Deeper* open.
    :param core: its height with *Deeper* closed, in screens too.
    :param code: the share of the height that is code in sight; so `pictures`, `prose`, `excerpts`.
    :param checks: how many ✔ there are outside *Deeper*.
    :param count: how many pictures there are, a replay counting as one.
    :param longest: most screens from one picture, or an end of the page, to the next.
    :param words: of the prose outside *Deeper*.
    """

    screens: float
    core: float
    code: float
    pictures: float
    prose: float
    excerpts: float
    checks: int
    count: int
    longest: float
    words: int


BARS: dict[str, Callable[[float], bool]] = {
    "core": lambda screens: screens <= 16,
    "code": lambda share: share <= 0.15,
    "pictures": lambda share: share >= 0.12,
    "checks": lambda count: count <= 20,
    "longest": lambda screens: screens <= 6,
    "words": lambda count: 2500 <= count <= 4000,
}


def measure(browser: Browser, page: Path, deeper: bool = False) -> Page:
    """Open a page and measure it.

    :param deeper: take the shares with *Deeper* open.
    """
    context = browser.new_context(
        viewport={"width": WIDE, "height": SCREEN}, color_scheme="light", reduced_motion="reduce"
    )
    tab = context.new_page()
    tab.goto(page.resolve().as_uri(), wait_until="load")
    # What is drawn only near the view has no height elsewhere.
    tab.add_style_tag(content="* { content-visibility: visible !important; }")
    tab.evaluate("document.fonts.ready.then(() => true)")
    found = tab.evaluate(_MEASURE, deeper)
    context.close()
    return Page(
        found["height"] / SCREEN, found["core"] / SCREEN, found["code"], found["pictures"],
        found["prose"], found["excerpts"], found["checks"], found["count"],
        found["longest"] / SCREEN, found["words"],
    )  # fmt: skip


def lines(found: Sequence[tuple[str, Page]]) -> Iterator[str]:
    """Return the table, a line for each chapter; a star stands at what misses its bar."""
    names = [field.name for field in fields(Page)]
    width = max((len(name) for name, _ in found), default=0) + 1
    yield " " * width + "".join(f"{name:>10}" for name in names)
    for chapter, page in found:
        cells = []
        for name in names:
            value = getattr(page, name)
            said = str(value)
            if name in ("code", "pictures", "prose", "excerpts"):
                said = f"{value:.0%}" if value >= 0.1 or not value else f"{value:.1%}"
            elif isinstance(value, float):
                said = f"{value:.1f}"
            cells.append(f"{said}{' ' if name not in BARS or BARS[name](value) else '*'}")
        yield f"{chapter:<{width}}" + "".join(f"{cell:>10}" for cell in cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", nargs="?", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("chapters", nargs="*", help="all chapters unless named")
    parser.add_argument("--deeper", action="store_true", help="shares with Deeper open")
    asked = parser.parse_args()
    wanted = {Path(name).stem for name in asked.chapters}
    pages = [
        page
        for page in sorted((asked.site / "notebooks").glob("*.html"))
        if not wanted or page.stem in wanted
    ]
    program = facts.chromium()
    if not pages or program is None:
        lacks = "Chromium is not on PATH" if pages else f"{asked.site} holds no such chapter"
        print(f"{lacks}.", file=sys.stderr)
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        found = [(page.stem, measure(browser, page, asked.deeper)) for page in pages]
        browser.close()
    print("\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
