"""Tests of the decoder: what a file may hold, and the one sentence that a mistake comes to."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec import field

from insidetorch.decode import Words, Written, decode
from insidetorch.errors import BookError


class Text(Written, frozen=True):
    """A text with a title."""

    title: Words
    year: int | None = None


class Entry(Written, frozen=True):
    """An entry of a list."""

    name: Words
    texts: tuple[Text, ...] = ()
    day: date | None = field(name="date", default=None)

    def __post_init__(self) -> None:
        if self.name == "nobody":
            raise ValueError("has a name that is none")


def read(folder: Path, text: str, name: str = "a.yml", kind: Any = list[Entry]) -> Any:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return decode(kind, path)


def test_a_file_becomes_records(tmp_path: Path) -> None:
    text = "- {name: a, date: 2026-01-31}\n- name: b\n  texts: [{title: T, year: 2019}]\n"
    assert read(tmp_path, text) == [
        Entry("a", day=date(2026, 1, 31)),
        Entry("b", (Text("T", 2019),)),
    ]
    assert read(tmp_path, "# nothing yet\n") == []
    assert read(tmp_path, '[{"name": "a", "date": "2026-01-31"}]', "a.json") == [
        Entry("a", day=date(2026, 1, 31))
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: a}\n-\n  texts: []", "a.yml, line 3: entry 2 lacks 'name'; mend it."),
        ("- {name: a, label: b}", "a.yml, line 1: entry 1 (a) has 'label', which means nothing;"),
        (
            "- {name: ''}",
            "a.yml, line 1: entry 1, 'name' must be a text of length >= 1;",
        ),
        ("\n- {name: 1}", "a.yml, line 2: entry 1, 'name' must be a text, not a number; mend it."),
        ("- {name: nobody}", "a.yml, line 1: entry 1 (nobody) has a name that is none; mend it."),
        (
            "- name: a\n  texts:\n    - title: T\n      year: soon\n",
            "a.yml, line 4: entry 1 (a), 'texts', entry 1 (T), 'year' must be a number or nothing, "
            "not a text; mend it.",
        ),
        ("- a", "a.yml, line 1: entry 1 must be a mapping, not a text; mend it."),
        ("name: a", "a.yml must be a list, not a mapping; mend it."),
        ("- {name: a, date: 2026-13-01}", "a.yml cannot be read (month must be in 1..12)"),
        ("- {name: [", "a.yml cannot be read (while parsing a flow node"),
    ],
)
def test_a_mistake_is_said_in_one_sentence_with_its_place(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(BookError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value) and str(error.value).endswith("; mend it.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.json cannot be read ("),
        ("[" * 100_000, "a.json cannot be read ("),
        ('{"a": {"b": 1}}', "a.json: a value must be a text, not a mapping; mend it."),
        ('{"a": "b"', "a.json cannot be read ("),
    ],
)
def test_mistakes_in_json_have_no_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BookError) as error:
        read(tmp_path, text, "a.json", dict[str, str])
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


def test_no_file_and_no_text_are_said(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"^none\.yml cannot be read .*; write it again\.$"):
        decode(list[Entry], tmp_path / "none.yml", mend="write it again")
    (tmp_path / "a.yml").write_bytes(b"- {name: \xff}")
    with pytest.raises(BookError, match=r"^a\.yml cannot be read"):
        decode(list[Entry], tmp_path / "a.yml")
