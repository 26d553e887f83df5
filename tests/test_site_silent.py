"""The list of what goes wrong without an error: what is shown, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from insidetorch.errors import BookError
from insidetorch.site.book_ledger import Ledger, completed
from insidetorch.site.places import Place
from insidetorch.site.silent import FILE, Silent, listed, read_silent, seen_on

ROOT = Path(__file__).parent.parent
DOC = "notebooks/tensor"
ENTRY = Silent("A <write> in `x` is lost.", "Clone `x`.", DOC, "tensor-write", "The write is")


def a_ledger(*records: dict[str, object]) -> Ledger:
    built = {"torch": "9.8.7", "chapters": [{"doc": DOC, "records": records}]}
    return completed(msgspec.convert(built, Ledger))


@pytest.mark.parametrize(
    ("record", "release"),
    [
        ({"kind": "claim", "text": "The write is lost.", "held": True, "torch": "9.8.7"}, "9.8.7"),
        ({"kind": "claim", "text": "The write is lost.", "held": False, "torch": "9.8.7"}, ""),
        ({"kind": "claim", "text": "A write is lost.", "held": True, "torch": "9.8.7"}, ""),
        ({"kind": "verdict", "id": "The write is", "held": True, "torch": "9.8.6"}, "9.8.6"),
        ({"kind": "excerpt", "text": "The write is", "held": True, "torch": "9.8.7"}, ""),
    ],
)
def test_the_release_is_that_of_the_claim_or_verdict_that_held(
    record: dict[str, object], release: str
) -> None:
    assert seen_on(ENTRY, a_ledger(record)) == release


def test_without_a_ledger_nothing_was_seen() -> None:
    assert seen_on(ENTRY, None) == ""


def test_an_entry_says_what_to_do_and_leads_to_its_section_and_report() -> None:
    reported = msgspec.structs.replace(ENTRY, issue="https://example.org/1")
    found = [
        (reported, Place("b", "x", "Later", "A section", 1), "9.8.7"),
        (ENTRY, Place("a", "y", "Earlier <&>", "Another", 3), ""),
    ]
    html = listed(found, ["a", "b"], lambda doc: f"{doc}.html")
    assert html.index("Earlier &lt;&amp;&gt;") < html.index("Later")
    assert "A &lt;write&gt; in <code>x</code> is lost." in html
    assert "<strong>Instead:</strong> Clone <code>x</code>." in html
    assert '<a href="b.html#x">A section</a> · seen on torch 9.8.7' in html
    assert '<a href="https://example.org/1">reported</a>' in html
    assert "not seen in this build" in html and html.count("reported") == 1


def test_a_malformed_entry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "silent.yml"
    path.write_text("- what: It is lost.\n  remedy: Clone.\n")
    with pytest.raises(BookError, match=r"silent\.yml, line 1: entry 1 .* lacks"):
        read_silent(path)


def test_the_books_list_can_be_read() -> None:
    assert all(entry.chapter.startswith("notebooks/") for entry in read_silent(ROOT / FILE))
