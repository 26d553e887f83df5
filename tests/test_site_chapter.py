"""Takeaways are set apart, deeper sections fold, and the marks are plain Markdown."""

from __future__ import annotations

from pathlib import Path

from tiny_site import build_site

CONF = """
extensions = ["myst_parser", "insidetorch.site"]
html_math_renderer = "mathml"
html_theme = "basic"
"""
PAGE = """# A page

> **Takeaway.** One sentence, set apart.

> A quotation that says **Takeaway.** late.

## Deeper: what may be skipped

Words inside.

### A part of it

More words.

## Not folded

The end.
"""


def test_a_takeaway_is_set_apart_and_another_quotation_is_not(tmp_path: Path) -> None:
    _, pages = build_site(tmp_path, {"conf.py": CONF, "index.md": PAGE})
    marked = pages["index"].select("blockquote.it-takeaway")
    assert [one.get_text(" ", strip=True) for one in marked] == [
        "Takeaway. One sentence, set apart."
    ]


def test_a_deeper_section_folds_whole_and_keeps_its_address(tmp_path: Path) -> None:
    said, pages = build_site(tmp_path, {"conf.py": CONF, "index.md": PAGE})
    assert said == []
    page = pages["index"]
    (details,) = page.select("section#deeper-what-may-be-skipped > details.it-deeper")
    assert details.summary.h2.get_text().startswith("Deeper: what may be skipped")
    assert details.select_one("section#a-part-of-it") is not None
    assert "More words." in details.get_text() and "The end." not in details.get_text()
    assert page.select_one("section#not-folded details") is None


def test_only_a_page_that_folds_has_the_script(tmp_path: Path) -> None:
    files = {"conf.py": CONF, "index.md": PAGE, "plain.md": "---\norphan: true\n---\n# Plain\n"}
    _, pages = build_site(tmp_path, files)
    found = {
        name: [one["src"] for one in pages[name].select("script[src*=chapter]")]
        for name in ("index", "plain")
    }
    assert len(found["index"]) == 1 and found["plain"] == []
