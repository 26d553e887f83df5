"""The parts of the build that only parse, hash, compare or choose."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_book import CHAPTER_HEAD, TinyBook

from insidetorch import claims
from insidetorch import commands as cli
from insidetorch.book.cache import KEEP, Cache, CorruptEntry
from insidetorch.book.cache_key import Ingredients, key
from insidetorch.book.ledger import undeclared_warnings
from insidetorch.book.project import Chapter, Limits, Project, heading, open_project
from insidetorch.book.runs import Run
from insidetorch.commands.doctor import examine
from insidetorch.display import Display, style_block
from insidetorch.errors import BookError
from insidetorch.files import write_changed
from insidetorch.publish import assemble as publish
from insidetorch.publish import notebook_forms as notebooks
from insidetorch.publish.preflight import pinned
from insidetorch.publish.render import complaints
from insidetorch.records import RECORD_MIME
from insidetorch.run.execute import clean_streams, execute, longest_first

BASE = Ingredients(
    cells=(("1 + 1", ()),),
    torch="2.13.0+cpu",
    commit="abc",
    python="3.11.7",
    packages={"numpy": "2.4.6"},
    code={"miniatures/autograd_engine/engine.py": "m"},
    verdicts={"leaf": {"id": "leaf", "sentence": "s"}},
    recordings={"recordings/x/1.json": "r"},
)


def chapter(tmp_path: Path, body: str, front: str = "") -> Chapter:
    book = TinyBook(tmp_path)
    book.chapter("notebooks/x", body, front=front)
    project = open_project(tmp_path)
    (page,) = (p for p in project.pages(project.limits()) if isinstance(p, Chapter))
    return page


@pytest.mark.parametrize(
    "change",
    [
        {"cells": (("1 + 2", ()),)},
        {"cells": (("1 + 1", ("raises-exception",)),)},
        {"torch": "2.14.0"},
        {"commit": "abd"},
        {"python": "3.12.1"},
        {"packages": {"numpy": "2.4.7"}},
        {"code": {"miniatures/autograd_engine/engine.py": "n"}},
        {"verdicts": {"leaf": {"id": "leaf", "sentence": "other"}}},
        {"recordings": {}},
        {"checkout": "/src/pytorch"},
    ],
)
def test_every_ingredient_changes_the_key(change: dict) -> None:
    assert key(dataclasses.replace(BASE, **change)) != key(BASE)


def test_every_ingredient_is_tried_above() -> None:
    names = {field.name for field in dataclasses.fields(Ingredients)} - {"format"}
    mark = test_every_ingredient_changes_the_key.pytestmark[0]
    assert {name for change in mark.args[1] for name in change} == names


def test_key_does_not_depend_on_the_order_of_mappings() -> None:
    one = dataclasses.replace(BASE, code={"a": "1", "b": "2"})
    two = dataclasses.replace(BASE, code={"b": "2", "a": "1"})
    assert key(one) == key(two)


def test_code_cells_tags_titles_and_lines_are_read(tmp_path: Path) -> None:
    page = chapter(
        tmp_path,
        "# The title\n\nwords\n\n```{code-cell} ipython3\n:tags: [raises-exception]\n1/0\n```\n",
    )
    assert page.title == "The title"
    line = page.code_lines[0]
    assert page.text.splitlines()[line - 1].startswith("```{code-cell}") or (
        page.text.splitlines()[line - 2].startswith("```{code-cell}")
    )
    assert page.code_cells[0]["metadata"]["tags"] == ["raises-exception"]


def test_two_readings_of_a_chapter_are_equal(tmp_path: Path) -> None:
    first = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n")
    second = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n")
    assert first.notebook == second.notebook


def test_front_matter_sets_limits(tmp_path: Path) -> None:
    page = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n", "insidetorch: {cell-seconds: 7}\n")
    assert page.limits.cell == 7


def test_pyproject_sets_limits_and_arguments_win(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.insidetorch]\ncell-seconds = 5\n")
    project = Project(tmp_path)
    assert project.limits().cell == 5
    assert project.limits(cell=3) == Limits(3, 900)


def test_a_heading_inside_a_block_is_no_title() -> None:
    assert heading("---\na: 1\n---\n```python\n# no\n```\n# Yes #\n") == "Yes"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[a](x.md)", "[a](x.ipynb)"),
        ("[a](x.md#part)", "[a](x.ipynb#part)"),
        ("[a](../notebooks/x.md)", "[a](../notebooks/x.ipynb)"),
        ("[a](/notebooks/x.md)", "[a](/notebooks/x.ipynb)"),
        ('[a](x.md "title")', '[a](x.ipynb "title")'),
        ("<project:x.md>", "<project:x.ipynb>"),
        ("[a]: x.md", "[a]: x.ipynb"),
        ("[a](prose.md)", "[a](prose.md)"),
        ("[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("```\n[a](x.md)\n```\n[a](x.md)", "```\n[a](x.md)\n```\n[a](x.ipynb)"),
        ("see x.md", "see x.md"),
    ],
)
def test_links_to_chapters_lead_to_the_staged_file(before: str, after: str) -> None:
    assert notebooks.retarget(before, "notebooks/y", {"notebooks/x", "notebooks/y"}) == after


def test_site_form_drops_style_and_records_and_the_merged_one_keeps_them(tmp_path: Path) -> None:
    page = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n")
    data = {"text/html": style_block() + "<p>x</p>", RECORD_MIME: {"kind": "claim"}}
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    cell = {"cell_type": "code", "outputs": [output], "execution_count": 1}
    merged = notebooks.merge(page, {"cells": [cell], "metadata": {"insidetorch": {"key": "k"}}})
    site = notebooks.for_site(merged, page.doc, {page.doc}, {})
    assert site["cells"][-1]["outputs"][0]["data"] == {"text/html": "<p>x</p>"}
    assert merged["cells"][-1]["outputs"][0]["data"] == data


def test_a_claim_says_of_which_releases_it_is_not_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Display] = []
    monkeypatch.setattr(claims, "show", shown.append)
    claims.claim("Two is two.", True, tried=3)
    claims.claim("One is one.", True)
    outputs = [
        {"output_type": "display_data", "metadata": {}, "data": one._repr_mimebundle_()}
        for one in shown
    ]
    page = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n")
    cell = {"cell_type": "code", "outputs": outputs, "execution_count": 1}
    merged = notebooks.merge(page, {"cells": [cell], "metadata": {}})
    said = {"Two is two.": ("2.11", "2.15"), "Three is three.": ("2.11",)}
    made = notebooks.for_site(merged, page.doc, {page.doc}, said)["cells"][-1]["outputs"]
    two, one = (str(each["data"]["text/html"]) for each in made)
    assert "<dt>not said of</dt><dd>2.11, 2.15</dd>" in two and "not said" not in one


def test_unexecuted_cells_are_found(tmp_path: Path) -> None:
    page = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n\n```{code-cell}\n2\n```\n")
    assert notebooks.unexecuted(notebooks.merge(page, None)) == [1, 2]


def test_cache_keeps_the_newest_and_refuses_the_damaged(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number in range(KEEP + 2):
        about = {"insidetorch": {"key": f"k{number}"}}
        cells = [{"outputs": [{"text": "the value is 1"}]}]
        cache.store("a/b", f"k{number}", {"metadata": about, "cells": cells})
    assert len(list((tmp_path / "a__b").iterdir())) == KEEP
    newest = f"k{KEEP + 1}"
    loaded = cache.load("a/b", newest)
    assert loaded == {"metadata": {"insidetorch": {"key": newest}}, "cells": cells}
    assert cache.load("a/b", "unknown") is None
    stored = cache.path("a/b", newest).read_text()
    altered = stored.replace("value is 1", "value is 2")
    unsigned = json.dumps(loaded)
    other_key = cache.path("a/b", f"k{KEEP}").read_text()
    for damage in ("", "{", "[]", altered, stored + " ", unsigned, other_key):
        cache.path("a/b", newest).write_text(damage)
        with pytest.raises(CorruptEntry):
            cache.load("a/b", newest)


def test_durations_survive_a_damaged_file(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.remember("a", 2.0)
    assert cache.seconds("a") == 2.0
    (tmp_path / "durations.json").write_text("no json")
    assert cache.seconds("a") is None
    cache.remember("b", 1.0)
    assert cache.seconds("b") == 1.0


class Refuses:
    """A watcher whose disk fails."""

    def started(self, chapter: Chapter) -> None: ...
    def cell(self, chapter: Chapter, number: int) -> None: ...
    def finished(self, run: Run) -> None:
        raise OSError(28, "No space left on device")


def test_what_a_watcher_raises_comes_out_as_it_is(tmp_path: Path) -> None:
    page = chapter(tmp_path, "# A\n\n```{code-cell}\n1\n```\n")
    with pytest.raises(OSError, match="No space left") as caught:
        execute([page], Project(tmp_path), 1, Refuses())
    assert not isinstance(caught.value, BaseExceptionGroup)


@pytest.mark.parametrize(
    "error, said",
    [
        (OSError(28, "No space left on device", "/book/a"), "the disk is full (/book/a); free"),
        (
            shutil.Error([("a", "b", "[Errno 28] No space left on device")]),
            "the disk is full; free",
        ),
    ],
)
def test_a_disk_that_is_full_anywhere_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    def full(*_: object) -> int:
        raise error

    TinyBook(tmp_path)
    monkeypatch.setattr(cli, "build_book", full)
    done = CliRunner().invoke(cli.main, ["build", "--root", str(tmp_path)])
    assert done.exit_code == 1 and done.output == f"Error: {said} some space, try again.\n"


def test_a_folder_without_pins_is_examined_too(tmp_path: Path) -> None:
    assert pinned(tmp_path) == ""
    assert examine(tmp_path)[0].name == "torch"
    (tmp_path / "requirements.txt").write_text("torch == 2.0.1  # old\n")
    assert pinned(tmp_path) == "2.0.1"
    assert examine(tmp_path)[0].found.endswith("(the book is pinned to 2.0.1)")


def test_equal_content_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert write_changed(path, "a")
    before = path.stat().st_mtime_ns
    assert not write_changed(path, "a")
    assert path.stat().st_mtime_ns == before


def test_longest_first_and_unknown_before_all(tmp_path: Path) -> None:
    page = chapter(tmp_path, "# T\n\n```{code-cell}\n1\n```\n")
    pages = [dataclasses.replace(page, doc=doc) for doc in ("short", "long", "new")]
    order = longest_first(pages, {"short": 1.0, "long": 9.0, "new": None})
    assert [page.doc for page in order] == ["new", "long", "short"]


def test_probe_noise_is_removed_and_other_errors_are_kept() -> None:
    def stderr(text: str) -> dict:
        return {"output_type": "stream", "name": "stderr", "text": text}

    cell = {"outputs": [stderr("USDT: a"), stderr("\n"), stderr("USDT: b\nreal\n")]}
    clean_streams({"cells": [cell]})
    assert cell["outputs"] == [stderr("real\n")]


def test_freshness_markers_are_filled_again_and_again() -> None:
    html = '<p><span class="it-freshness" data-doc="notebooks/x"></span></p>'
    fresh = publish.fill_markers(html, {"notebooks/x"})
    assert ">fresh</span>" in fresh
    assert ">cached</span>" in publish.fill_markers(fresh, set())


def test_visible_text_leaves_out_scripts_and_what_surrounds_the_page() -> None:
    html = "<nav>menu</nav><article><script>x()</script><h1>Title</h1> words</article>"
    assert publish.visible_text(html) == "Title words"


def test_only_undeclared_deprecations_count() -> None:
    base = {"kind": "warning", "declared": False, "deprecation": True}
    records = [
        base,
        {**base, "declared": True},
        {**base, "deprecation": False},
        {"kind": "claim", "held": True},
    ]
    assert undeclared_warnings(records) == [base]


def test_complaints_name_the_file_the_author_edits(tmp_path: Path) -> None:
    stage = Project(tmp_path).stage
    said = (
        f"\x1b[91m{stage}/notebooks/x.ipynb:12: WARNING: unknown document\x1b[39;49;00m\n"
        "build finished with problems, 1 warning (with warnings treated as errors).\n"
    )
    assert complaints(said, Project(tmp_path)) == ["notebooks/x.md:12: WARNING: unknown document"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("_toc.yml", "root: [", "_toc.yml:1 is not valid YAML"),
        ("_toc.yml", "chapters: []\n", "has no `root:`"),
        ("_toc.yml", "- a\n", "must hold a YAML mapping"),
        ("_toc.yml", "root: index\nchapters:\n- file: gone\n", "lists 'gone'"),
        ("notebooks/x.md", "---\na: [\n---\n# T\n", "notebooks/x.md:"),
        ("notebooks/x.md", "# T\n\n```{code-cell}\n1\n```\n", "not the header of a chapter"),
        ("notebooks/x.md", "---\nkernelspec: {name: python3}\n---\n# T\n", "not the header"),
        ("notebooks/x.md", CHAPTER_HEAD + "\n```{code-cell}\n```\n", "is empty; remove it"),
        (
            "notebooks/x.md",
            CHAPTER_HEAD + "\n```{code-cell}\n:tags: [skip-execution]\n1\n```\n",
            "tagged skip-execution",
        ),
        ("notebooks/x.md", CHAPTER_HEAD + "\n```{code-cell}\n:a: [\n1\n```\n", "could not be read"),
        (
            "notebooks/x.md",
            CHAPTER_HEAD.replace("---\n\n", "insidetorch: {cell-seconds: soon}\n---\n\n"),
            "no positive number of seconds",
        ),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, name: str, text: str, said: str) -> None:
    book = TinyBook(tmp_path)
    book.chapter("notebooks/x", "# T\n\n```{code-cell}\n1\n```\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(BookError) as caught:
        project = open_project(tmp_path)
        project.pages(project.limits())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_book_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="holds no book"):
        open_project(tmp_path)
