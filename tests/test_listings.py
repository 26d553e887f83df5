"""Listings of generated code: which lines they show, with which numbers."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

from insidetorch import BookError, listing

CODE = """int f() {
#ifndef NDEBUG
  check();
#endif

  // a comment that is so long that it does not fit
  return first_argument + second_argument;
}"""


def numbers(html: str) -> list[str]:
    return [str(line["data-n"]) for line in BeautifulSoup(html, "html.parser").select(".it-line")]


def test_a_listing_without_numbers_is_the_code() -> None:
    shown = listing(CODE, "f", width=0)
    assert shown.text == f"f\n{CODE}"
    code = BeautifulSoup(shown.html, "html.parser").select_one("pre")
    assert code is not None and code.text == CODE and not numbers(shown.html)


def test_numbers_stay_with_their_lines() -> None:
    shown = listing(
        CODE, "f", place="f.cpp", note="made", first=10, without="^#ifndef.*?#endif$|^$", width=30
    )
    assert shown.text.splitlines() == [
        "f · f.cpp · made",
        "10  int f() {",
        "15    // a comment that is so long",
        "      // that it does not fit",
        "16    return first_argument +",
        "          second_argument;",
        "17  }",
    ]
    assert numbers(shown.html) == ["10", "15", "", "16", "", "17"]


def test_a_part_is_chosen_by_its_lines() -> None:
    shown = listing(CODE, "f", start="comment", end="return", first=1, width=0)
    assert numbers(shown.html) == ["6", "7"]
    with pytest.raises(BookError, match=r"generated f has no line with 'else'"):
        listing(CODE, "f", start="else")


def test_what_it_shows_is_escaped() -> None:
    html = listing("a<b && c", "<f>", note="d & e").html
    assert "&lt;f&gt;" in html and "d &amp; e" in html and "<f>" not in html and "<b" not in html
