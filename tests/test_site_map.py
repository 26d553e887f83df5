"""Tests of the architecture map: its file, its drawing, and what it says of the installed torch."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup

from insidetorch.errors import BookError
from insidetorch.facts import torch_facts
from insidetorch.site import architecture

ROOT = Path(__file__).parent.parent
SMALL = """
layers:
  - title: Above
    says: Says `this`.
    rows: [[a, b], [~, c]]
  - title: Below
    says: That.
    library: c10
    rows: [[d], [e, f]]
parts:
  - {id: a, title: A <one>, says: It., files: [torch/version.py], uses: [d], chapters: [x]}
  - {id: b, title: B, says: It., files: [torch/nn], chapters: [y, z]}
  - {id: c, title: C, says: It., files: [torch/nn], makes: [e], chapters: [z]}
  - {id: d, title: D, says: It., files: [torch/nn], chapters: [y]}
  - {id: e, title: E, says: It., files: [torch/nn], chapters: [y]}
  - {id: f, title: F, says: It., files: [torch/none.py], chapters: [y]}
"""


def packages() -> Path:
    torch = torch_facts()
    assert torch is not None
    return torch.root.parent


def small(tmp_path: Path, text: str = SMALL) -> architecture.Map:
    path = tmp_path / "map.yml"
    path.write_text(text)
    return architecture.read_map(path)


def chapter(name: str) -> tuple[str, str] | None:
    return {"x": ("../x.html", "The <x>"), "z": ("../z.html", "Z")}.get(name)


def book() -> architecture.Map:
    return architecture.read_map(ROOT / "book" / "map.yml")


def test_boxes_lead_to_their_first_written_chapter(tmp_path: Path) -> None:
    soup = BeautifulSoup(architecture.picture(small(tmp_path), chapter), "html.parser")
    links = {" ".join(a.get_text(" ").split()): a["href"] for a in soup.find_all("a")}
    assert links == {"A <one> → The <x>": "../x.html", "B → Z": "../z.html", "C → Z": "../z.html"}
    text = soup.get_text(" ")
    assert text.count(architecture.NONE_YET) == 3
    assert "<x>" in text


def test_the_drawing_is_sound_and_its_links_can_be_reached(tmp_path: Path) -> None:
    html = architecture.picture(small(tmp_path), chapter)
    svg = BeautifulSoup(html, "html.parser").find("svg")
    ElementTree.fromstring("<svg" + html.split("<svg")[1].split("</svg>")[0] + "</svg>")
    assert svg["role"] == "group"
    assert "3 of 6 parts lead to a chapter" in svg["aria-label"]
    assert len(svg.find_all("text")) >= 6


def test_the_words_say_what_the_drawing_says(tmp_path: Path) -> None:
    soup = BeautifulSoup(architecture.in_words(small(tmp_path), chapter), "html.parser")
    assert [h2.get_text() for h2 in soup.find_all("h2")] == ["Above", "Below"]
    assert [dt.get_text() for dt in soup.find_all("dt")] == ["A <one>", "B", "C", "D", "E", "F"]
    first, third, fourth = (soup.find_all("dd")[n] for n in (0, 2, 3))
    assert "Calls D. Look into torch/version.py. Shown in The <x>." in first.get_text()
    assert "Becomes E." in third.get_text()
    assert f"There is {architecture.NONE_YET}." in fourth.get_text()
    for link in soup.select("a[href^='#']"):
        assert soup.find(id=link["href"][1:]) is not None


def test_what_the_installation_lacks_is_said_in_a_sentence(tmp_path: Path) -> None:
    layers = small(tmp_path, SMALL.replace("library: c10", "library: c11"))
    said = architecture.missing(layers, packages())
    assert len(said) == 2
    assert "part 'f' names torch/none.py, which is not in the installed torch" in said[0]
    assert "names the library 'c11'" in said[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("uses: [d]", "uses: [q]"), "names 'q', which is no part"),
        (("[[d], [e, f]]", "[[d], [e, e]]"), "must describe and place the part 'e' once"),
        (("[[d], [e, f]]", "[[d], [e, g]]"), "names 'g', which is no part"),
        (("[[d], [e, f]]", "[[d], [e]]"), "must describe and place the part 'f' once"),
        (("id: b", "id: a"), "names 'b', which is no part"),
        (("id: f, title: F", "id: e, title: F"), "names 'f', which is no part"),
        (("files: [torch/version.py], ", ""), r"line 11: 'parts', entry 1 \(a\) lacks 'files'"),
        (("layers:", "layers: ["), "cannot be read"),
    ],
)
def test_a_malformed_map_is_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(BookError, match=rf"^map\.yml.*{message}"):
        small(tmp_path, SMALL.replace(*change))


def test_what_the_book_s_map_names_is_installed() -> None:
    assert architecture.missing(book(), packages()) == []


def test_each_compiled_part_is_in_the_library_of_its_layer() -> None:
    """Look each part's function up among those that its library defines."""
    drawn = book()
    for layer in drawn.layers:
        named = {part.id: part.symbol for part in drawn.of(layer) if part.symbol}
        assert bool(named) == bool(layer.library)
        if not layer.library:
            continue
        (library,) = (packages() / "torch" / "lib").glob(f"lib{layer.library}.*")
        symbols = subprocess.run(
            ["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True
        ).stdout
        assert [id for id, symbol in named.items() if symbol not in symbols] == []


def test_chapters_that_no_part_names_are_listed(tmp_path: Path) -> None:
    html = architecture.beside(small(tmp_path), ["x", "other"], lambda name: (f"{name}.html", name))
    assert BeautifulSoup(html, "html.parser").get_text() == "Chapters on no single part: other."
    assert architecture.beside(small(tmp_path), ["x", "y"], chapter) == ""
