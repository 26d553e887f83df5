"""The reader's lint: each rule finds what breaks it, and what is folded does not count."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest
from built_site import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import reader_lint
from reader_lint import RULES, Finding, findings

from insidetorch.book.parsed import parse
from insidetorch.book.project import Chapter, Limits, open_project
from insidetorch.errors import BookError
from insidetorch.site.glossary import Entry, read_glossary

HEAD = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A title

*What is a kernel?*

"""
TERMS = [
    Entry("kernel", "Code.", "kernels"),
    Entry("dispatch key", "A place.", "keys"),
    Entry("autograd kernel", "Code.", "elsewhere"),
    Entry("view", "Seen.", "elsewhere", ("views",)),
    Entry("`GraphTask`", "A pass.", "elsewhere"),
    Entry("GIL", "A lock.", "elsewhere"),
]
EIGHT = "\n".join(f"x{n} = {n}" for n in range(8))
NINE = f"{EIGHT}\nx8 = 8"


def chapter(body: str, head: str = HEAD) -> Chapter:
    text = head + dedent(body).strip("\n") + "\n"
    notebook = parse("a", text)
    lines = tuple(line + 1 for line in notebook["metadata"]["source_map"])
    return Chapter("a", Path("a.md"), text, notebook, lines, Limits(1, 1))


def cell(code: str, options: str = "") -> str:
    return f"```{{code-cell}} ipython3\n{options}{dedent(code).strip()}\n```\n\n"


def found(body: str, *rules: str) -> list[Finding]:
    """Return the findings of some rules in a chapter, all rules unless named."""
    assert set(rules) <= set(RULES)
    return [one for one in findings(chapter(body), TERMS) if not rules or one.rule in rules]


def told(body: str, *rules: str) -> list[str]:
    return [one.rule for one in found(body, *rules)]


class TestCells:
    def test_eight_lines_or_ten_with_a_comment(self) -> None:
        assert told(cell("# why\n" + EIGHT), "long", "comment") == []
        assert told(cell(f"# why\n{NINE}\nx9 = 9"), "long", "comment") == ["long"]
        assert told(cell("\n".join(EIGHT.splitlines()[:6])), "long", "comment") == []
        assert told(cell(EIGHT), "long", "comment") == ["comment"]
        assert told(cell(NINE), "long", "comment") == ["long", "comment"]

    def test_a_text_with_a_hash_is_no_comment(self) -> None:
        assert told(cell(EIGHT + "\nname = '# why'"), "comment") == ["comment"]

    def test_what_is_folded_does_not_count(self) -> None:
        imports = "\n".join(f"import a{n}" for n in range(9))
        checks = "claim('It holds.',\n" + "      1,\n" * 9 + ")\n# check\n" + NINE
        assert told(cell(f"{imports}\n{checks}")) == []
        assert told(cell(NINE, ":tags: [hide-input]\n\n")) == []
        assert told(cell(f"%%cuda a\n{NINE}")) == []
        assert told(f"## The walk\n\n### Deeper: more\n\n{cell(NINE)}") == []
        assert told(f"### Deeper: more\n\nMore.\n\n## Settled\n\n{cell(NINE)}") == [
            "long",
            "comment",
        ]

    def test_a_finding_has_its_line(self) -> None:
        body = cell("import a\n\ny = 1\ny, 2")
        (one,) = found(body)
        assert (HEAD + body).splitlines()[one.line - 1] == "y, 2"
        assert one == Finding("tuple", one.line, "(y, 2)")

    @pytest.mark.parametrize("code", ["x, y", "if x:\n    f(), g()", "f(x), g()\nx"])
    def test_a_tuple_is_no_statement(self, code: str) -> None:
        assert told(cell(code)) == ["tuple"]

    @pytest.mark.parametrize("code", ["x = 1, 2", "print(x, y)", "[x, y]", "x, y = f()"])
    def test_a_tuple_may_be_a_value(self, code: str) -> None:
        assert told(cell(code), "tuple") == []

    @pytest.mark.parametrize(
        "code",
        [
            "f(lambda g: seen.append(g))", "f(lambda x, k=1: (ran.append(k), x.clone())[1])",
            "f(lambda x: (note(x), x)[1])", "f(lambda x: (y := x) + y)",
            "f(lambda x: setattr(x, 'a', 1))", "f'{x:064b}'[::-1].find('1')",
            "'{}'.format(x)[2:]",
        ],
    )  # fmt: skip
    def test_a_trick_is_found(self, code: str) -> None:
        assert told(cell(code)) == ["trick"]

    @pytest.mark.parametrize(
        "code",
        ["f(lambda g: g * 2)", "f(lambda: torch.add(a, b))", "f(lambda g: (g, g.sum()))",
         "f(lambda g: print(g))", "name[2:]", "seen.append(1)"],
    )  # fmt: skip
    def test_plain_code_is_no_trick(self, code: str) -> None:
        assert told(cell(code)) == []


class TestChecks:
    @pytest.mark.parametrize(
        "code",
        [
            "same = a == b", "same = torch.equal(a, b)", "same = [x is y for x, y in pairs]",
            "same, n = a == b, 3", "def same():\n    return a == b", "if a:\n    same = a > b",
        ],
    )  # fmt: skip
    def test_a_comparison_that_only_a_check_reads_is_found(self, code: str) -> None:
        wanted = ["check"]
        assert told(cell(f"{code}\nclaim('It holds.', same)"), "check") == wanted
        assert (
            told(cell(code) + cell("x = 1\n# check\nall(same)\nclaim('t', 1)"), "check") == wanted
        )
        assert told(cell(code) + cell("claim('t', f, over=same)"), "check") == wanted

    @pytest.mark.parametrize(
        "code",
        [
            "big = [x for x in xs if x > 2]\nclaim('t', big)", "a == b\nclaim('t', a == b)",
            "n = 1 if a > b else 2\nclaim('t', n)", "same = a == b\nclaim('t', 1, seen=same)",
            "def step(x):\n    if x > 1:\n        return x\nclaim('t', step(1))",
            "same = a == b\nsame = 1\nclaim('t', same)", "# check\nsame = a == b\nclaim('t', same)",
        ],
    )  # fmt: skip
    def test_what_is_no_such_comparison(self, code: str) -> None:
        assert told(cell(code), "check") == []

    def test_a_check_inside_a_function_and_assert_do_not_fold(self) -> None:
        assert told(cell("for x in xs:\n    claim('t', x)")) == []
        assert told(cell("def f(x):\n    claim('t', x)")) == ["check"]
        assert told(cell("with a:\n    assert b == c")) == ["check"]


class TestKinds:
    @pytest.mark.parametrize(
        "code",
        [
            "rows = []\nrows = 3", "rows = 3\nrows = {'a': 1}", "x = torch.ones(2)\nx = x.tolist()",
            "def f(): pass\nf = f'{1}'", "a, b = 1, 2\na, b = [], 2", "from a import b\nb = f()",
            "with f() as x:\n    y = 1\ny = 'two'", "x = nn.Linear(1, 1)\nx = torch.ones(1)",
        ],
    )  # fmt: skip
    def test_a_name_with_two_kinds_is_found(self, code: str) -> None:
        first, second = code.rsplit("\n", 1)
        assert told(cell(code), "kinds") == ["kinds"]
        assert told(cell(first) + cell(second), "kinds") == ["kinds"]

    @pytest.mark.parametrize(
        "code",
        [
            "rows = []\nrows = [1]", "x = f()\nx = 3", "x = None\nx = []", "x = 1\nx = x + 1",
            "_ = 1\n_ = []", "x = torch.ones(2)\nx = x * 2",
            "def f():\n    x = 1\nx = []", "rows = []\n# check\nrows = 3\nclaim('t', rows)",
        ],
    )  # fmt: skip
    def test_one_kind_or_an_unknown_one_is_not(self, code: str) -> None:
        assert told(cell(code), "kinds") == []


TOOLKIT = "from insidetorch import captioned, figure, graph, replay, autograd_graph, timeline\n"


class TestPictures:
    @pytest.mark.parametrize(
        ("code", "said"),
        [
            ("figure(f, alt='a')", "no caption"),
            ("figure(f, caption='c')", "no alternative text"),
            ("figure(f, alt='', caption='c')", "no alternative text"),
            ("graph(d, alt='a', caption=' ')", "no caption"),
            ("autograd_graph(y)", "no caption"),
            ("timeline(p, name='a')", "no caption"),
            ("captioned(table(r), '')", "no caption"),
            ("replay(states)", "no caption"),
            ("replay([(figure(f), 's')], caption='c')", "no alternative text"),
            ("%%cuda a\nfigure(f, alt='a')", "no caption"),
        ],
    )
    def test_a_picture_without_words_is_found(self, code: str, said: str) -> None:
        (one,) = found(cell(TOOLKIT) + cell(code), "picture")
        assert said in one.said

    @pytest.mark.parametrize(
        "code",
        [
            "figure(f, alt='a', caption='c')",
            "captioned(autograd_graph(y), 'c', 'name')",
            "captioned(timeline(p, name='a'), caption='c')",
            "replay([(figure(f, alt='a'), 's'), (graph(d, alt=t), 's')], caption='c')",
            "states = []\nfor x in y:\n    states.append((figure(x, alt='a'), 's'))\n"
            "replay(states, caption='c')",
            "shown = autograd_graph(y)\ncaptioned(shown, 'c')",
            "def drawn(x):\n    return figure(x, alt='a')\nreplay([(drawn(x), 's')], caption='c')",
            "def drawn(x):\n    return figure(x, alt='a', caption='c')\ndrawn(x)",
            "figure = 3",
        ],
    )
    def test_a_picture_with_words_is_not(self, code: str) -> None:
        assert told(cell(TOOLKIT) + cell(code), "picture") == []

    def test_what_is_not_the_toolkits_draws_nothing(self) -> None:
        assert told(cell("from a import figure, replay\nfigure(1)\nreplay(2)"), "picture") == []

    def test_a_helper_that_draws_is_a_picture(self, tmp_path: Path) -> None:
        (tmp_path / "helpers.py").write_text(
            "from insidetorch import graph\ndef plain(): pass\n"
            "def inner(): return graph(d, alt='a')\ndef drawn(): return inner()\n"
        )
        body = "## The walk\n\n### 1. One\n\n" + cell("from helpers import drawn, plain\nNAME()")
        rules = [
            [one.rule for one in findings(chapter(body.replace("NAME", name)), TERMS, tmp_path)]
            for name in ("drawn", "plain")
        ]
        assert rules == [["takeaway", "picture"], ["drawn", "takeaway"]]

    def test_a_helper_of_a_module_and_one_over_modules_draw_too(self, tmp_path: Path) -> None:
        (tmp_path / "lower.py").write_text(
            "from insidetorch.show.figures import figure\n"
            "def grid(**picture): return figure(f, alt='a', **picture)\n"
        )
        (tmp_path / "draw.py").write_text(
            "from lower import grid\ndef table_grid(**picture): return grid(**picture)"
        )
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "more.py").write_text(
            "from draw import table_grid\ndef shown(): return table_grid()"
        )
        head = "## The walk\n\n### 1. One\n\n> **Takeaway.** So.\n\n"
        for code, rules in {
            "from draw import table_grid\ntable_grid(caption='c')": [],
            "from draw import table_grid\ntable_grid()": ["picture"],
            "from a import more\nmore.shown()": ["picture"],
            "from a import more\nmore.hidden()": ["drawn"],
        }.items():
            found = findings(chapter(head + cell(code)), TERMS, tmp_path)
            assert [one.rule for one in found] == rules, code

    def test_pictures_of_markdown_want_a_caption_too(self) -> None:
        assert told("![a tree](tree.png)") == ["picture"]
        assert told("`![a tree](tree.png)`\n\n```text\n![a](b)\n```") == []


class TestSections:
    PICTURE = cell(TOOLKIT + "figure(f, alt='a', caption='c')")
    TAKEAWAY = "> **Takeaway.** One sentence.\n\n"

    def test_a_section_of_the_walk_has_a_picture_and_a_takeaway(self) -> None:
        head = "## The walk\n\n### 1. One\n\nText.\n\n"
        assert told(head + self.PICTURE + self.TAKEAWAY) == []
        assert told(head + self.PICTURE) == ["takeaway"]
        assert told(head + self.TAKEAWAY) == ["drawn"]
        assert told(head + "#### More\n\n" + self.PICTURE + self.TAKEAWAY) == []

    def test_what_is_deeper_or_no_section_of_the_walk_does_not_count(self) -> None:
        head = "## The walk\n\n### 1. One\n\n"
        deeper = f"#### Deeper: more\n\n{self.PICTURE}{self.TAKEAWAY}"
        assert told(head + deeper) == ["drawn", "takeaway"]
        assert told("## The walk\n\n### Deeper: more\n\nText.\n\n## Settled\n\n### 1. One") == []

    def test_a_page_without_a_walk_has_its_own_sections(self) -> None:
        assert told("## Down through the layers\n\nText.") == ["drawn", "takeaway"]
        assert told("## The short answer\n\nText.\n\n## Exercises\n\nText.") == []

    def test_a_helper_draws_where_it_is_called(self) -> None:
        helper = cell(TOOLKIT + "def drawn(x):\n    return figure(x, alt='a', caption='c')")
        one = f"## The walk\n\n### 1. One\n\n{helper}{self.TAKEAWAY}"
        assert told(one) == ["drawn"]
        assert told(one + "### 2. Two\n\n" + cell("drawn(x)") + self.TAKEAWAY) == ["drawn"]


class TestTerms:
    @pytest.mark.parametrize(
        "text",
        [
            "A kernel runs. A {term}`kernel` is code.", "Two kernels run.", "A Kernel runs.",
            "It has a dispatch\nkey.", "`GraphTask` is it.", "The GIL is taken.",
            "Many views. A {term}`view <views>` it is.", "A **kernel** runs.",
            "```{admonition} Mind\n:class: tip\nA kernel runs.\n```", "- a kernel",
        ],
    )  # fmt: skip
    def test_a_term_is_a_link_where_it_is_first_used(self, text: str) -> None:
        assert told(text, "link") == ["link"]

    @pytest.mark.parametrize(
        "text",
        [
            "A {term}`kernel` runs. Kernels are code.", "Two {term}`kernels <kernel>` run.",
            "A *{term}`kernel`* runs.", "`kernel` is a name.", "[The kernel](k) runs.",
            "Gil is a name.", "It views a thing.", "The {term}`autograd kernel` runs.",
            "## Every kernel", "```text\nkernel\n```", "```{admonition} This chapter\nkernel\n```",
            "See {doc}`the kernel <a>` and {cite:p}`kernel`.", "$kernel$", "`GraphTask.run` is it.",
        ],
    )  # fmt: skip
    def test_what_is_linked_or_is_no_use_is_not_found(self, text: str) -> None:
        assert told(text, "link") == []

    def test_the_core_comes_before_what_is_deeper(self) -> None:
        deeper = "### Deeper: more\n\nA {term}`kernel`.\n\n"
        assert told(f"{deeper}## Settled\n\nA kernel.", "link") == ["link"]
        assert told("### Deeper: more\n\nA kernel.", "link") == ["link"]
        assert told("A {term}`kernel`.\n\n### Deeper: more\n\nA kernel.", "link") == []

    @pytest.mark.parametrize(
        "text",
        [
            "A {term}`kernel` (a function) runs.", "It is a **{term}`kernel`**.",
            "A {term}`kernel`, a function, runs.", "A {term}`kernel` is a function.",
            "A function called a {term}`kernel` runs.", "{term}`Kernels <kernel>`: functions.",
        ],
    )  # fmt: skip
    def test_a_term_of_a_later_section_is_explained_in_place(self, text: str) -> None:
        later = "\n\n(kernels)=\n## Settled\n\nText."
        assert told(text + later) == []
        bare = "Many a {term}`kernel` ran."
        assert told(bare + later) == ["later"]
        assert told("(kernels)=\n## Settled\n\n" + bare) == []


def test_the_form_is_declared_in_the_front_matter() -> None:
    plain = chapter("Text.")
    new = chapter("Text.", HEAD.replace("---\n\n#", "insidetorch: {form: new}\n---\n\n#"))
    assert [reader_lint.declared(one) for one in (plain, new)] == [False, True]
    with pytest.raises(BookError, match="write `form: new`"):
        reader_lint.declared(
            chapter("", HEAD.replace("---\n\n#", "insidetorch: {form: old}\n---\n\n#"))
        )


def test_the_report_counts_all_and_lists_what_is_held_or_named() -> None:
    plain = chapter(cell("x, y"))
    pairs = [(plain, findings(plain, TERMS))]
    assert "tuple: (x, y)" not in reader_lint.report(pairs)
    assert reader_lint.report(pairs, ["notebooks/a.md"]).endswith("a.md:11: tuple: (x, y)")


def test_chapters_in_the_new_form_keep_the_rules() -> None:
    entries = read_glossary(ROOT / reader_lint.GLOSSARY)
    held = reader_lint.chapters(open_project(ROOT), held=True)
    broken = [line for one in held for line in reader_lint.listed(one, findings(one, entries))]
    assert not broken, "\n" + "\n".join(broken)
