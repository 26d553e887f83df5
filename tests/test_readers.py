"""Notebooks that leave the site: plain Markdown, an installing cell, links where they are known."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import yaml
from tiny_book import PACKAGE, REPOSITORY, TinyBook

from insidetorch.book.address import Address, address
from insidetorch.book.project import open_project
from insidetorch.publish.downloads import downloads, headings
from insidetorch.publish.plain_markdown import plain
from insidetorch.records import RECORD_MIME


def nowhere(role: str, target: str) -> str:
    return ""


def somewhere(role: str, target: str) -> str:
    return f"at/{role}/{target}"


@pytest.mark.parametrize(
    ("before", "after", "linked"),
    [
        ("(a-label)=\n## Head", "## Head", "## Head"),
        ("{term}`leaf`s", "leafs", "[leaf](at/term/leaf)s"),
        ("{term}`the leaves <leaf>`", "the leaves", "[the leaves](at/term/leaf)"),
        ("a {doc}`b\nc <../d/e>` f", "a b\nc f", "a [b\nc](at/doc/../d/e) f"),
        ("[x](../d/e.md#f)", "[x](../d/e.md#f)", "[x](at/doc/../d/e#f)"),
        ("[x](https://e.org/e.md)", "[x](https://e.org/e.md)", "[x](https://e.org/e.md)"),
        ("{cite}`key`", "[key]", "[key]"),
        ("`{term}` and ``(`a`)``", "`{term}` and ``(`a`)``", "`{term}` and ``(`a`)``"),
        ("```python\n{term}`x`\n```", "```python\n{term}`x`\n```", "```python\n{term}`x`\n```"),
        (
            "```{admonition} Title\n:class: tip\n**A** {term}`b`.\n\nC.\n```\nD",
            "> **Title**\n>\n> **A** b.\n>\n> C.\n\nD",
            "> **Title**\n>\n> **A** [b](at/term/b).\n>\n> C.\n\nD",
        ),
        ("```{margin}\nAside.\n```", "> Aside.", "> Aside."),
        (":::{note} One line\n:::", "> One line", "> One line"),
        (
            "````{note}\n{term}`A`\n```{tip}\nB\n```\nC\n````",
            "> A\n> > B\n>\n> C",
            "> [A](at/term/A)\n> > B\n>\n> C",
        ),
        (
            "::::{note}\nA\n\n:::{admonition} B {term}`b`\n:class: tip\nC\n:::\n::::\n\nD",
            "> A\n>\n> > **B b**\n> >\n> > C\n\nD",
            "> A\n>\n> > **B [b](at/term/b)**\n> >\n> > C\n\nD",
        ),
        (
            "- {term}`a`\n\n  ```python\n  {term}`x`\n  ```\n- b",
            "- a\n\n  ```python\n  {term}`x`\n  ```\n- b",
            "- [a](at/term/a)\n\n  ```python\n  {term}`x`\n  ```\n- b",
        ),
        (
            "1. a\n   ```{note} T\n   {term}`x`\n   ```\n2. ```{tip}\n   y\n   ```",
            "1. a\n   > T\n   > x\n\n2. > y",
            "1. a\n   > T\n   > [x](at/term/x)\n\n2. > y",
        ),
        ("> ```{note}\n> a\n> ```\n> b", "> > a\n>\n> b", "> > a\n>\n> b"),
        (
            "```{code-block} python\n:linenos:\n{term}`x`\n```",
            "```python\n{term}`x`\n```",
            "```python\n{term}`x`\n```",
        ),
        (
            ":::{code-block} md\n---\ncaption: C\n---\n```\nx\n```\n:::",
            "````md\n```\nx\n```\n````",
            "````md\n```\nx\n```\n````",
        ),
        ("```{math}\n:label: l\na = b\n```", "$$\na = b\n$$", "$$\na = b\n$$"),
        ("a\n\n    {term}`x`\n", "a\n\n    {term}`x`", "a\n\n    {term}`x`"),
        ("a ` b\n\n{term}`x` ` c", "a ` b\n\nx ` c", "a ` b\n\n[x](at/term/x) ` c"),
        ("a\n\n(b)=\n## C", "a\n\n## C", "a\n\n## C"),
        (
            "[a `[b]`](c-d) [e](https://f)",
            "a `[b]` [e](https://f)",
            "[a `[b]`](at/ref/c-d) [e](https://f)",
        ),
    ],
)
def test_what_only_myst_reads_becomes_plain(before: str, after: str, linked: str) -> None:
    assert plain(before, nowhere) == after
    assert plain(before, somewhere) == linked


def test_a_link_to_a_heading_of_the_same_notebook_leads_to_it() -> None:
    found = headings("(a-b)=\n## 1. The `.grad` of *x*\n\n(c)=\ntext\n")
    assert found == {"a-b": "#1.-The-.grad-of-x"}


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/an-owner/a.book",
        "https://github.com/an-owner/a.book.git",
        "git@github.com:an-owner/a.book.git",
        "ssh://git@github.com/an-owner/a.book.git",
    ],
)
def test_the_repository_is_the_remote_of_the_checkout(tmp_path: Path, remote: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert address(tmp_path, {}, {}) == Address()
    subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", remote], check=True)
    assert address(tmp_path, {}, {}).repository == "https://github.com/an-owner/a.book"


def test_configuration_wins_over_environment_and_nothing_is_guessed(tmp_path: Path) -> None:
    environ = {"GITHUB_REPOSITORY": "o/r", "BOOK_ADDRESS": "https://o.example/r/"}
    found = address(tmp_path, {}, environ)
    assert found == Address("https://github.com/o/r", "https://o.example/r")
    config = {
        "repository": {"url": "https://github.com/p/q"},
        "html": {"baseurl": "https://p.example/q/"},
    }
    assert address(tmp_path, config, environ) == Address(
        "https://github.com/p/q", "https://p.example/q"
    )
    elsewhere = {"repository": {"url": "https://code.example/p/q"}}
    assert address(tmp_path, elsewhere, {}) == Address()


def test_links_are_made_of_what_is_known() -> None:
    empty, known = Address(), Address("https://github.com/o/r", "https://o.example/r")
    assert empty.colab("x.ipynb") == empty.edit("x.md") == empty.file("x.md") == ""
    assert empty.report("X") == ""
    assert empty.wheel("w.whl") == "./w.whl"
    assert known.wheel("w.whl") == "https://o.example/r/_static/w.whl"
    assert "githubusercontent.com/o/r/notebooks/w.whl" in Address(known.repository).wheel("w.whl")
    assert known.colab("x.ipynb").endswith("/github/o/r/blob/notebooks/x.ipynb")
    assert known.report("a & b") == "https://github.com/o/r/issues/new?title=a%20%26%20b"


@pytest.fixture
def book(tmp_path: Path) -> TinyBook:
    book = TinyBook(tmp_path)
    book.chapter("notebooks/one", "(here)=\n# One\n\nSee {ref}`there <here>`.\n")
    book.chapter("notebooks/two", "# Two\n\nSee {doc}`one <one>` and {ref}`it <here>`.\n")
    return book


def given(book: TinyBook, wheel: Path | None) -> dict:
    project = open_project(book.root)
    pages = project.pages(project.limits())[1:]
    about = {"torch": "9.8.7+cpu", "date": "2020-01-02T03:04:05"}
    merged = {
        page.doc: {
            **page.notebook,
            "metadata": {"source_map": [1], "insidetorch": about},
        }
        for page in pages
    }
    sources = {page.doc: "" for page in pages}
    made = downloads(project, pages, merged, wheel, sources)
    return {doc: download.make() for doc, download in made.items()}


def test_a_notebook_says_what_it_is_and_installs_what_it_needs(
    book: TinyBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BOOK_ADDRESS", raising=False)
    one = given(book, Path("x/tool-1-py3-none-any.whl"))["notebooks/one"]
    about, install, text = (cell["source"] for cell in one["cells"])
    assert "“One”" in about and "9.8.7+cpu on 2020-01-02" in about
    assert "plain text until you run it" in about
    assert '"./tool-1-py3-none-any.whl"' in install and "2.7 GB" in install
    assert max(map(len, install.splitlines())) <= 95
    ast.parse(install)
    assert text == "# One\n\nSee [there](#One)."
    assert "source_map" not in one["metadata"]
    without = given(book, None)["notebooks/one"]
    assert [cell["cell_type"] for cell in without["cells"]] == ["markdown", "markdown"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that has pip, and says that it has torch."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    (packages / "torch-9.8.7.dist-info").mkdir()
    (packages / "torch-9.8.7.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 9.8.7\n"
    )
    return folder / "bin/python"


def wheel_of(folder: Path, version: str, needs: str = "") -> Path:
    """Make a wheel that is called as the toolkit's."""
    path = folder / f"insidetorch-{version}-py3-none-any.whl"
    about = f"insidetorch-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: insidetorch\nVersion: {version}\n{needs}"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("insidetorch/__init__.py", f"WHICH = {version!r}\n")
        archive.writestr(f"{about}/METADATA", head)
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


def first_cell(python: Path, book: TinyBook, wheel: Path, here: Path) -> tuple[int, list[str]]:
    """Run what a download installs, without a network; return its status and what it said."""
    here.mkdir(exist_ok=True)
    (here / "cell.py").write_text(given(book, wheel)["notebooks/one"]["cells"][1]["source"])
    apart = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    nothing = {"https_proxy": "http://127.0.0.1:9", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        [python, "cell.py"], cwd=here, env={**apart, **nothing, "PYTHONPATH": ""},
        capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]


@pytest.mark.slow
def test_another_build_of_the_toolkit_replaces_the_one_that_is_there(
    book: TinyBook, environment: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for version in ("1.2+bbb", "1.2+aaa"):
        status, said = first_cell(environment, book, wheel_of(here, version), here)
        assert status == 0, said
        assert said[-1] == f"torch 9.8.7 and the toolkit {version} are here."
    # What is there already is not asked for again.
    (here / "insidetorch-1.2+aaa-py3-none-any.whl").unlink()
    status, again = first_cell(environment, book, Path("insidetorch-1.2+aaa-x.whl"), here)
    assert status == 0 and again == said[-1:]


@pytest.mark.slow
def test_a_failed_install_stops_with_one_sentence_that_says_what_to_do(
    book: TinyBook, environment: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    status, said = first_cell(environment, book, Path("insidetorch-1.2+ccc-x.whl"), here)
    assert status == 1 and said[-1].endswith("put it there, from the download.")
    lacking = wheel_of(here, "1.2+ddd", "Requires-Dist: nowhere-to-be-found\n")
    status, said = first_cell(environment, book, lacking, here)
    assert status == 1 and "No matching distribution found for nowhere-to-be-found" in said[-1]
    assert "connect to a network, use an environment of your own (python -m venv)" in said[-1]
    # As a notebook shows it, it is that sentence alone.
    cell = (here / "cell.py").read_text().replace('"torch"', '"insidetorch"')
    shown = subprocess.run(
        [sys.executable, "-m", "IPython", "--quick", "--no-banner", "--colors=NoColor", "-c", cell],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "IPYTHONDIR": str(here)},
    )  # fmt: skip
    (line,) = shown.stdout.strip().splitlines()
    assert line.startswith("insidetorch-1.2+ddd-py3-none-any.whl is not beside this notebook")


def test_the_outputs_of_a_download_are_text_that_needs_no_style(book: TinyBook) -> None:
    html = {"text/html": "<style data-insidetorch></style><svg></svg>", "text/plain": "a figure"}
    shown = {"output_type": "display_data", "metadata": {}, "data": {**html, RECORD_MIME: {}}}
    picture = {**shown, "data": {"text/html": "<b>alone</b>", "image/png": "x"}}
    book.cells("notebooks/one", "1")
    project = open_project(book.root)
    page = next(p for p in project.pages(project.limits()) if p.doc == "notebooks/one")
    notebook = {**page.notebook, "metadata": {"insidetorch": {"torch": "9", "date": "2020-01-02"}}}
    notebook["cells"][-1]["outputs"] = [shown, picture]
    made = downloads(project, [page], {page.doc: notebook}, None, {page.doc: ""})[page.doc].make()
    one, other = (output["data"] for output in made["cells"][-1]["outputs"])
    assert one == {"text/plain": "a figure"} and other == picture["data"]


def test_where_the_site_is_known_the_notebook_links_to_it(
    book: TinyBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOK_ADDRESS", "https://o.example/r/")
    two = given(book, Path("tool.whl"))["notebooks/two"]
    about, install, text = (cell["source"] for cell in two["cells"])
    assert "https://o.example/r/notebooks/two.html" in about
    assert "https://o.example/r/_static/tool.whl" in install
    assert "[one](https://o.example/r/notebooks/one.html)" in text
    assert "[it](https://o.example/r/notebooks/one.html#here)" in text


@pytest.mark.slow
def test_a_site_with_an_address_has_a_map_cards_and_a_page_for_lost_readers(
    tmp_path: Path,
) -> None:
    book = TinyBook(tmp_path)
    book.cells("notebooks/one", "1")
    (tmp_path / "pyproject.toml").write_text(PACKAGE)
    (tmp_path / "tinytools").mkdir()
    (tmp_path / "tinytools/__init__.py").write_text("")
    # The site is set up as this book's is, apart from its extension and what that serves.
    shutil.copytree(REPOSITORY / "book/_static", tmp_path / "book/_static")
    config = yaml.safe_load((REPOSITORY / "_config.yml").read_text())
    del config["bibtex_bibfiles"]
    config["sphinx"]["extra_extensions"].remove("insidetorch.site")
    settings = config["sphinx"]["config"]
    for name in ("html_math_renderer", "bibtex_cite_id", "bibtex_reference_style"):
        del settings[name]
    settings["include_patterns"].append("index.md")
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(config))
    status, said = book.build(BOOK_ADDRESS="https://o.example/r", GITHUB_REPOSITORY="o/r")
    assert status == 0, said
    assert not _at_work(tmp_path), "the map of the site starts a process, which must end"
    html = tmp_path / "_build/html"
    assert "https://o.example/r/notebooks/one.html" in (html / "sitemap.xml").read_text()
    page = (html / "notebooks/one.html").read_text()
    assert '<link rel="canonical" href="https://o.example/r/notebooks/one.html"' in page
    assert 'property="og:image"' in page and 'property="og:title"' in page
    sheets = re.findall(r'href="/r/(_static/[^"]+\.css)', (html / "404.html").read_text())
    assert sheets and all((html / sheet).stat().st_size > 100 for sheet in sheets)
    config = yaml.safe_load((tmp_path / "_build/stage/_config.yml").read_text())
    assert config["html"]["baseurl"] == "https://o.example/r/"
    given = json.loads((html / "_sources/notebooks/one.ipynb").read_text())
    assert "https://o.example/r/_static/tinytools-1.2" in given["cells"][1]["source"]


def _at_work(folder: Path) -> list[Path]:
    """Return the processes that are at work in a folder, and stay."""

    def is_here(process: Path) -> bool:
        try:
            return (process / "cwd").readlink() == folder
        except OSError:  # it has ended, or is another user's
            return False

    found = list(Path("/proc").glob("[0-9]*"))
    for _ in range(30):
        found = [process for process in found if is_here(process)]
        if not found:
            break
        time.sleep(0.1)
    return found
