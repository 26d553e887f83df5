"""Rendered pages made lean: the rules in use stay, one sheet, late scripts, a few icons."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
import yaml
from bs4 import BeautifulSoup
from built_site import ROOT
from fontTools.ttLib import TTFont
from pygments.styles import get_style_by_name
from pygments.token import Name, Punctuation, Text

from insidetorch.publish.kept import digest
from insidetorch.publish.shrink import Names, names, rules_in_use
from insidetorch.publish.shrink import lean as plan


def lean(site: Path) -> None:
    """Make a site lean, in place."""
    files = [path for path in site.rglob("*") if path.is_file()]
    made = plan(site, {path: digest(path.read_bytes()) for path in files}, site / ".work")
    pages = {path: made.page(path) for path in made.bundles}
    for path, text in pages.items():
        path.write_text(text)
    for path in made.sheets:
        path.unlink()
    for path in made.files:
        (site / "_static" / path.name).write_bytes(path.read_bytes())


USED = Names(frozenset({"a", "b", "sd-w-1/2"}), ("tip-",))


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        (".a{color:red}", ".a{color:red}"),
        (".z{color:red}", ""),
        ("p,.z,.a .b{x:y}", "p,.a .b{x:y}"),
        (".a.z{x:y}", ""),
        (".a:not(.z){x:y}", ".a:not(.z){x:y}"),
        (".a:is(.z, :not(.z)){x:y}", ".a:is(.z, :not(.z)){x:y}"),
        ("[class*='.z'] .a{x:y}", None),
        (r".sd-w-1\/2{x:y}", r".sd-w-1\/2{x:y}"),
        (".tip-end{x:y}", ".tip-end{x:y}"),
        ("@media print{.z{x:y}}", ""),
        ("@media print{.z{x:y}.a{x:y}}", "@media print{.a{x:y}\n}"),
        ("@keyframes k{0%{x:y}}", "@keyframes k{0%{x:y}}"),
        ("/* .a */ .a{/* no */x:y}", ".a{x:y}"),
    ],
)
def test_a_rule_stays_if_something_can_match(css: str, kept: str | None) -> None:
    expected = css.replace("'", '"') if kept is None else kept
    assert rules_in_use(css, USED).strip() == expected


def test_names_come_from_attributes_and_from_all_words_of_scripts() -> None:
    found = names(["<p class=\"x y\" id='z'>prose"], ["add('open'); 'tip-' + side"])
    assert all(name in found for name in ("x", "y", "z", "open", "tip-start"))
    assert "prose" not in found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    static = tmp_path / "_static"
    (static / "css").mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    font = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"
    (static / "icons.ttf").write_bytes(font.read_bytes())
    (static / "base.css").write_text('.a{background:url("dot.png")}')
    (static / "css/theme.css").write_text(
        '@import "../base.css"; .z{x:y} .a:before{content:"\\f6c5"}'
        "@font-face{font-family:I;src:url(../icons.ttf) format('truetype')}"
    )
    (static / "documentation_options.js").write_text("const OPTIONS = 1;")
    (static / "other.js").write_text("other();")
    head = (
        '<link rel="stylesheet" type="text/css" href="{0}_static/css/theme.css?v=1" />\n'
        '<script src="{0}_static/documentation_options.js"></script>'
        '<script src="{0}_static/other.js?v=2"></script><script>let b = 1;</script>'
    )
    (tmp_path / "index.html").write_text(f'{head.format("")}<p class="a">x</p>')
    (tmp_path / "deep/page.html").write_text(f"{head.format('../')}<p>x</p>")
    return tmp_path


def test_a_site_gets_one_sheet_late_scripts_and_a_small_font(site: Path) -> None:
    lean(site)
    (sheet,) = (site / "_static").glob("book-*.css")
    css = sheet.read_text(encoding="utf-8")
    assert 'url("dot.png")' in css and ".z" not in css
    assert not (site / "_static/css/theme.css").exists()
    index = (site / "index.html").read_text()
    assert index.count("stylesheet") == 1 and f'href="_static/{sheet.name}"' in index
    assert "<script>const OPTIONS = 1;</script>" in index
    assert '<script defer src="_static/other.js?v=2"></script><script>let b = 1;' in index
    assert f'href="../_static/{sheet.name}"' in (site / "deep/page.html").read_text()
    font = TTFont(site / "_static/icons.woff")
    assert set(font.getBestCmap()) == {0xF6C5} and 'src:url(icons.woff) format("woff")' in css


def test_a_page_for_lost_readers_finds_its_sheet_from_any_address(site: Path) -> None:
    index = (site / "index.html").read_text()
    (site / "404.html").write_text(index.replace('href="_static', 'href="/book/_static'))
    lean(site)
    (sheet,) = (site / "_static").glob("book-*.css")
    assert f'href="/book/_static/{sheet.name}"' in (site / "404.html").read_text()


@pytest.mark.parametrize(
    ("code", "style"),
    [
        ("<pre>a</pre>", "--it-rows:1"),
        ("<pre>\na\nb\n</pre>", "--it-rows:2"),
        ('<pre class="c"><span>a\n</span><span>b\n</span></pre>', "--it-rows:2"),
        ('<pre style="--it-digits:2">a\n\nb</pre>', "--it-rows:3;--it-digits:2"),
        ('<pre><span class="n">a</span><span class="p">(</span>\n</pre>', "--it-rows:1"),
        ('<pre style="white-space: pre-wrap">a\nb</pre>', "white-space: pre-wrap"),
        (f"<pre>{'a ' * 30}\nb</pre>", "--it-rows:2;--it-wrapped:3"),
    ],
)
def test_code_says_how_many_rows_it_has(code: str, style: str, site: Path) -> None:
    page = site / "index.html"
    page.write_text(page.read_text() + code)
    lean(site)
    found = BeautifulSoup(page.read_text(), "html.parser").select_one("pre")
    assert found is not None and found["style"] == style
    assert found.text == BeautifulSoup(code, "html.parser").text
    assert found.select_one(".n, .p, .w") is None


def test_what_is_printed_wider_than_a_page_is_not_wrapped(site: Path) -> None:
    page = site / "index.html"
    page.write_text(page.read_text() + "".join(f"<pre>{'a' * n}</pre>" for n in (120, 121)))
    lean(site)
    found = BeautifulSoup(page.read_text(), "html.parser").select("pre")
    assert [pre.get("class") for pre in found] == [None, ["it-wide"]]


def test_what_loses_its_element_had_the_colour_of_all_code() -> None:
    options = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
    for shade in ("light", "dark"):
        style = get_style_by_name(options["html_theme_options"][f"pygments_{shade}_style"])
        for kind in (Name, Punctuation):
            assert style.style_for_token(kind) == style.style_for_token(Text)


def test_a_site_without_sheets_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    page = tmp_path / "index.html"
    page.write_text("<p>plain</p>")
    lean(tmp_path)
    assert page.read_text() == "<p>plain</p>" and not list((tmp_path / "_static").iterdir())


def test_the_index_of_the_search_holds_no_names(site: Path) -> None:
    (site / "_static/search").mkdir()
    (site / "_static/search/t0.js").write_text('insideSearch("t0", {"z": "1A"})')
    lean(site)
    (sheet,) = (site / "_static").glob("book-*.css")
    assert ".z" not in sheet.read_text(encoding="utf-8")


def test_a_sheet_is_made_again_only_if_other_names_are_in_use(site: Path) -> None:
    def sheet() -> Path:
        digests = {path: digest(path.read_bytes()) for path in site.rglob("*") if path.is_file()}
        (made,) = set(plan(site, digests, site.with_name("work")).files[:1])
        return made

    first = sheet()
    state = first.stat()
    page = site / "index.html"
    page.write_text(page.read_text() + '<p class="unknown">more prose</p>')
    assert sheet() == first and first.stat() == state
    page.write_text(page.read_text() + '<p class="z">more prose</p>')
    assert sheet() != first and ".z" in sheet().read_text(encoding="utf-8")
