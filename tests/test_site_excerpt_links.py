"""Excerpts have addresses, and names in the text lead to them."""

from __future__ import annotations

from pathlib import Path

from tiny_site import build_site

from insidetorch.display import Display
from insidetorch.show.listings import listing
from insidetorch.site.excerpt_links import anchored, names

CONF = """
extensions = ["myst_parser", "insidetorch.site"]
html_math_renderer = "mathml"
html_theme = "basic"
"""


def shown(symbol: str, place: str = "c10/x.h") -> Display:
    return listing("int x;", symbol, place=place, note="lines 1–2")


def test_each_excerpt_has_an_address_of_its_own_and_says_its_place() -> None:
    taken: set[str] = set()
    text, found = anchored(shown("a::b").html + shown("a::b<c>").html + shown("a::b").html, taken)
    assert [one.id for one in found] == ["excerpt-a-b", "excerpt-a-b-c", "excerpt-a-b-2"]
    assert found[1].symbol == "a::b<c>" and found[1].place == "c10/x.h, lines 1–2"
    assert all(f'<figure id="{id}"' in text and f'href="#{id}"' in text for id in taken)
    _, again = anchored(shown("a::b").html, taken)
    assert again[0].id == "excerpt-a-b-3"


def test_a_name_stands_for_an_excerpt_if_no_other_ends_so() -> None:
    _, found = anchored("".join(shown(one).html for one in ("a::f", "b::f", "b::g", "m.g_")), set())
    known = names(found)
    assert set(known) == {"a::f", "b::f", "b::g", "g", "m.g_", "g_"}


def test_names_in_the_text_lead_to_the_code(tmp_path: Path) -> None:
    page = f"""# A page about `f`

Call `f()`, or `a::f`, or [`f`](https://example.org), or `h`.

```{{raw}} html
{shown("a::f").html}
```
"""
    _, pages = build_site(tmp_path, {"conf.py": CONF, "index.md": page})
    links = pages["index"].select("a.it-to-code")
    assert [(link.text, link["href"], link["title"]) for link in links] == [
        ("f()", "#excerpt-a-f", "c10/x.h, lines 1–2"),
        ("a::f", "#excerpt-a-f", "c10/x.h, lines 1–2"),
    ]
    assert pages["index"].select_one("figure#excerpt-a-f figcaption a.it-here") is not None
