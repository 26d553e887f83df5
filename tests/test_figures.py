"""Pictures follow the page: its colours, its width, its one name space for ids."""

import re
from xml.etree import ElementTree

import matplotlib
import pytest

from insidetorch.display import style_block
from insidetorch.errors import BookError
from insidetorch.show import figures

matplotlib.use("Agg")


def plot(label: str = "a"):
    import matplotlib.pyplot as plt

    with figures.style():
        fig, axes = plt.subplots()
        axes.plot([1, 3, 2], "o-", label=label)
        axes.legend()
    return fig


def test_the_colours_read_on_white_and_on_dark():
    for role, colour in figures.COLOURS.items():
        assert figures.contrast(colour, "#ffffff") >= 3, role
        assert figures.contrast(colour, "#121212") >= 3, role


def test_contrast_is_that_of_wcag():
    assert figures.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert figures.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_each_colour_is_a_custom_property_of_the_style_sheet():
    sheet = style_block()
    assert all(f"--it-{role}:" in sheet for role in figures.COLOURS)


@pytest.mark.slow
def test_a_figure_takes_the_colours_of_the_page_and_leaks_nothing_into_it():
    shown = figures.figure(plot(), alt="Three points").html
    assert "var(--it-a, #3d85c6)" in shown
    assert "var(--it-ink, currentColor)" in shown
    for forbidden in ("<style", "<script", "<title", "<metadata", "http://purl", "<?xml"):
        assert forbidden not in shown


@pytest.mark.slow
def test_a_figure_is_an_image_with_its_alternative_text():
    shown = figures.figure(plot(), alt='Time < "limit"\nfor all')
    svg = ElementTree.fromstring(re.search(r"<svg.*</svg>", shown.html, re.DOTALL)[0])
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == 'Time < "limit" for all'
    assert "max-width: 100%" in svg.attrib["style"]
    assert shown.text == '[figure: Time < "limit" for all]'


@pytest.mark.slow
def test_text_stays_text():
    shown = figures.figure(plot("measured"), alt="Three points").html
    assert re.search(r"<text[^>]*>measured</text>", shown)


@pytest.mark.slow
def test_the_same_figure_is_drawn_the_same_but_never_shares_an_id():
    first, second = (figures.figure(plot("twice"), alt="Three points").html for _ in range(2))
    ids = [set(re.findall(r'\bid="([^"]+)"', html)) for html in (first, second)]
    assert ids[0] and not ids[0] & ids[1]
    assert len(ids[0]) == len(re.findall(r'\bid="', first))
    plain = [re.sub(r"it-[0-9a-f]{8}(-\d+)?-", "", html) for html in (first, second)]
    assert plain[0] == plain[1]


@pytest.mark.slow
def test_every_reference_leads_to_an_id():
    shown = figures.figure(plot(), alt="Three points").html
    ids = set(re.findall(r'\bid="([^"]+)"', shown))
    used = set(re.findall(r"url\(#([^)]+)\)", shown)) | set(re.findall(r'href="#([^"]+)"', shown))
    assert used == ids


def test_a_figure_shown_is_closed():
    import matplotlib.pyplot as plt

    fig = plot()
    figures.figure(fig, alt="Three points")
    assert not plt.fignum_exists(fig.number)


def test_small_text_makes_the_picture_scroll_instead_of_shrink():
    text = '<text font-size="5">x</text>'
    small = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 10">{text}</svg>'
    assert "min-width: 1800px" in figures.adapt(small, alt="x", prefix="p-")


def test_a_black_shape_follows_the_theme_even_where_black_is_only_the_default():
    bare = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0"/></svg>'
    assert "fill: var(--it-ink, currentColor)" in figures.adapt(bare, alt="x", prefix="p-")


def test_places_are_short_and_factors_whole():
    path = '<path d="M 1.234567  -0.000001 L 20 3.000000" transform="scale(0.001234)"/>'
    drawn = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">{path}</svg>'
    adapted = figures.adapt(drawn, alt="x", prefix="p-")
    assert 'd="M 1.23 -0 L 20 3"' in adapted
    assert 'transform="scale(0.001234)"' in adapted


@pytest.mark.parametrize("alt", ["", "  \n", None])
def test_no_alternative_text_is_refused(alt):
    with pytest.raises(BookError, match=r"figure\(…\) has no alternative text"):
        figures.figure(plot(), alt=alt)
    with pytest.raises(BookError, match=r"graph\(…\) has no alternative text"):
        figures.graph("digraph{}", alt=alt)


needs_dot = pytest.mark.needs("dot")


@needs_dot
def test_a_graph_takes_the_colours_of_the_page():
    source = f'digraph {{ a -> b; b [color="{figures.COLOURS["b"]}", label="two"] }}'
    shown = figures.graph(source, alt="a leads to b")
    assert "var(--it-b, #c9682b)" in shown.html
    assert re.search(r"<text[^>]*>two</text>", shown.html)
    assert "<title" not in shown.html
    assert shown.text == "[figure: a leads to b]"


@needs_dot
def test_a_wrong_graph_is_told_in_one_sentence():
    with pytest.raises(BookError, match=r"Graphviz refuses the graph .*syntax error") as raised:
        figures.graph("digraph { a -> ", alt="broken")
    assert "\n" not in str(raised.value)


def test_without_graphviz_the_build_stops_and_a_reader_gets_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("INSIDETORCH_BUILD", raising=False)
    shown = figures.graph("digraph{}", alt="nothing")
    assert shown.text.startswith("[figure: nothing]\nGraphviz is not installed")
    monkeypatch.setenv("INSIDETORCH_BUILD", "1")
    with pytest.raises(BookError, match="install the system package graphviz"):
        figures.graph("digraph{}", alt="nothing")
