"""Locating definitions: everything that works on text alone."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from insidetorch.errors import BookError
from insidetorch.locate import cpp_symbols as cpp
from insidetorch.locate import headers, python, yamls
from insidetorch.locate.definition import Definition
from insidetorch.locate.normalise import digest, normalise
from insidetorch.locate.paths import absence, permalink, upstream
from insidetorch.locate.select import Row, choose


def cpp_names(text: str) -> dict[str, cpp.Symbol]:
    return {s.name: s for s in cpp.symbols(textwrap.dedent(text).encode()) if s.body}


def numbered(first: int, text: str, language: str = "cpp", **more: object) -> Definition:
    lines = tuple(textwrap.dedent(text).strip("\n").split("\n"))
    return Definition("f", "f.h", language, first, lines, "f", **more)  # type: ignore[arg-type]


def outline(rows: list[Row]) -> list[int | str]:
    return [f"+{row.gap}" if row.gap else row.number for row in rows]


class TestNormalise:
    def test_cpp_comments_layout_and_breaks_do_not_count(self) -> None:
        one = 'int f(int a) { // adds\n  return a + 1; /* one\n more */\n}\nauto s = "// kept";'
        two = 'int f( int a )\n{ return a+1; }\n\nauto s="// kept";'
        assert normalise(one, "cpp") == normalise(two, "cpp")
        assert "// kept" in normalise(one, "cpp")

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("return a + 1;", "return a + 2;"),
            ('x("a b");', 'x("ab");'),
            ("int ab;", "int a b;"),
            ("1'000", "1000"),
            ('R"(// a)"', 'R"(// b)"'),
            ("'a'", "'b'"),
        ],
    )
    def test_cpp_tokens_count(self, before: str, after: str) -> None:
        assert digest(before, "cpp") != digest(after, "cpp")

    def test_python_docstrings_comments_and_indentation_do_not_count(self) -> None:
        one = '    def f(a):\n        """Old."""\n        return a  # same\n'
        two = 'def f( a ):\n  """New."""\n\n  return (a)\n'
        assert digest(one, "python") == digest(two, "python")
        assert digest(one, "python") != digest("def f(a):\n    return -a\n", "python")

    def test_python_form_has_no_empty_fields_that_only_some_releases_write(self) -> None:
        form = normalise("def f(): pass", "python")
        assert form == ("Module(body=[FunctionDef(name='f', args=arguments(), body=[Pass()])])"), (
            form
        )

    def test_a_string_in_the_body_is_no_docstring(self) -> None:
        assert digest("def f():\n    x\n    'a'", "python") != digest("def f():\n    x", "python")

    def test_yaml_comments_and_order_of_keys_do_not_count(self) -> None:
        one = "- func: f(Tensor a) -> Tensor  # why\n  variants: method\n  tags: core"
        two = "- func: f(Tensor a) -> Tensor\n  tags: core\n  variants: method"
        assert digest(one, "yaml") == digest(two, "yaml")
        assert digest(one, "yaml") != digest(one.replace("method", "function"), "yaml")

    @given(
        st.lists(st.sampled_from(["a", "b1", "+", "(", ")", "{", "}", ";", '"s t"', "::", "0x1F"]))
    )
    def test_cpp_form_does_not_depend_on_space(self, tokens: list[str]) -> None:
        assert normalise(" ".join(tokens), "cpp") == normalise(" \n\t ".join(tokens), "cpp")


class TestBlanking:
    SOURCE = textwrap.dedent(
        """\
        #ifdef _WIN32
        struct A : B {
        #else
        struct TORCH_API A : B {
        #endif
          C10_DEPRECATED_MESSAGE("use g(), not (f)")
          int f(Opt o = {}, Two t = {0, 1}) const;
        };
        HIDDEN_NAMESPACE_BEGIN(torch, headeronly)
        class C10_EXPORT D final {};
        HIDDEN_NAMESPACE_END(torch, headeronly)
        """
    ).encode()

    @pytest.mark.parametrize(
        "change", [cpp.blank_macros, cpp.choose_branches, cpp.keep_all_branches]
    )
    def test_length_and_lines_survive(self, change: object) -> None:
        changed = change(self.SOURCE)  # type: ignore[operator]
        assert len(changed) == len(self.SOURCE)
        assert [i for i, c in enumerate(changed) if c == 10] == [
            i for i, c in enumerate(self.SOURCE) if c == 10
        ]
        assert changed != self.SOURCE

    @given(st.text(alphabet="#ifdeflse _WIN32\n{};\\A", max_size=200))
    def test_any_text_keeps_its_lines(self, text: str) -> None:
        source = text.encode()
        for change in (cpp.blank_macros, cpp.choose_branches, cpp.keep_all_branches):
            assert len(change(source)) == len(source)
            assert change(source).count(b"\n") == source.count(b"\n")

    def test_the_branch_of_this_platform_is_read(self) -> None:
        found = cpp_names(self.SOURCE.decode())
        assert (found["A"].first, found["A"].last) == (4, 8)
        assert (found["torch::headeronly::D"].first, found["torch::headeronly::D"].kind) == (
            10,
            "class",
        )

    def test_a_name_in_another_branch_is_found_with_all_branches(self) -> None:
        text = b"#ifdef _WIN32\nint only_there() { return 1; }\n#endif\n"
        assert not cpp.symbols(text)
        assert [s.name for s in cpp.symbols(text, all_branches=True)] == ["only_there"]


class TestCpp:
    def test_kinds_and_lines(self) -> None:
        found = cpp_names(
            """\
            namespace a::b { inline namespace c { namespace {
            template <typename T>
            struct S : Base<T> {
              S() = default;
              bool operator()(int x) const { return x; }
              bool operator<(S o) const { return true; }
              operator bool() const { return true; }
              int field_{0};
              enum class E { X, Y };
            };
            template <> struct S<float> { int g(); };
            }}}
            int a::b::S<float>::g() { return 1; }
            using Alias = int;
            #define TWICE(x) \\
              ((x) + (x))
            """
        )
        inner = "a::b::c::(anonymous)::"
        assert (found[f"{inner}S"].first, found[f"{inner}S"].last) == (2, 10)
        assert found[f"{inner}S"].optional == {2, 3}
        expected = {
            f"{inner}S::operator()": ("function", 5),
            f"{inner}S::operator<": ("function", 6),
            f"{inner}S::operator bool": ("function", 7),
            f"{inner}S::field_": ("variable", 8),
            f"{inner}S::E": ("enum", 9),
            f"{inner}S::E::Y": ("enumerator", 9),
            f"{inner}S<float>": ("struct", 11),
            "a::b::S<float>::g": ("function", 13),
            "Alias": ("alias", 14),
            "TWICE": ("macro", 15),
        }
        assert {name: (found[name].kind, found[name].first) for name in expected} == expected
        assert found["TWICE"].last == 16
        assert found["TWICE"].signature == "#define TWICE(x)"

    @pytest.mark.parametrize(
        ("name", "parts"),
        [
            ("a::b::C", ("a", "b", "C")),
            ("::a", ("a",)),
            ("V<std::vector< int >>::f", ("V<std::vector<int>>", "f")),
            ("N::operator()", ("N", "operator()")),
            ("N::operator<", ("N", "operator<")),
            ("N::operator bool", ("N", "operator bool")),
            ("", ()),
        ],
    )
    def test_split_name(self, name: str, parts: tuple[str, ...]) -> None:
        assert cpp.split_name(name) == parts

    def test_the_line_that_packaging_adds_is_dropped(self) -> None:
        body = b"#pragma once\nint a;\n"
        guard = b"#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
        tail = b'\n#else\n#error "no"\n#endif  // !defined(TORCH_STABLE_ONLY)\n'
        assert headers.without_guard(guard + body + tail).strip() == body.strip()
        assert headers.without_guard(body) == body


class TestPaths:
    @pytest.mark.parametrize(
        ("file", "expected"),
        [
            ("torch/include/c10/core/TensorImpl.h", "c10/core/TensorImpl.h"),
            ("torch/include/ATen/TensorIterator.h", "aten/src/ATen/TensorIterator.h"),
            ("torch/include/torch/csrc/autograd/node.h", "torch/csrc/autograd/node.h"),
            ("torch/include/torch/headeronly/util/Half.h", "torch/headeronly/util/Half.h"),
            ("torch/include/torch/library.h", "torch/library.h"),
            ("torch/autograd/__init__.py", "torch/autograd/__init__.py"),
            ("torch/_VF.py", "torch/_VF.py"),
            (yamls.FILES["derivatives.yaml"], "tools/autograd/derivatives.yaml"),
            (
                yamls.FILES["native_functions.yaml"],
                "aten/src/ATen/native/native_functions.yaml",
            ),
            ("torchgen/packaged/ATen/templates/Function.h", "aten/src/ATen/templates/Function.h"),
            ("torchgen/model.py", "torchgen/model.py"),
            ("torch/csrc/autograd/engine.cpp", "torch/csrc/autograd/engine.cpp"),
            ("aten/src/ATen/native/Linear.cpp", "aten/src/ATen/native/Linear.cpp"),
        ],
    )
    def test_upstream(self, file: str, expected: str) -> None:
        assert upstream(file) == expected
        assert absence(file) == ""

    @pytest.mark.parametrize(
        ("file", "why"),
        [
            ("torch/include/ATen/ops/mul.h", "generated"),
            ("torch/include/ATen/core/TensorBody.h", "generated"),
            ("torch/include/torch/csrc/autograd/generated/Functions.h", "generated"),
            ("torch/version.py", "generated"),
            ("torch/_C/__init__.pyi", "generated"),
            ("torch/include/pybind11/cast.h", "library"),
            ("miniatures/autograd_engine/engine.py", "this book"),
            ("numpy/linalg/_linalg.py", "not part of PyTorch"),
        ],
    )
    def test_no_page_upstream(self, file: str, why: str) -> None:
        assert upstream(file) is None
        assert why in absence(file)

    def test_permalink(self) -> None:
        base = "https://github.com/pytorch/pytorch/blob/abc/c10/a.h"
        assert permalink("c10/a.h", "abc") == base
        assert permalink("c10/a.h", "abc", 7, 7) == f"{base}#L7"
        assert permalink("c10/a.h", "abc", 7, 9) == f"{base}#L7-L9"


class TestChoose:
    CODE = """
        struct S {
          int a;
          void f(
              int x) {
            go();
          }
          int b;
          int c;
        };
        """

    def test_everything_by_default(self) -> None:
        assert outline(choose(numbered(11, self.CODE))) == [11, 12, 13, 14, 15, 16, 17, 18, 19]

    def test_only_keeps_opening_statements_and_closing(self) -> None:
        rows = choose(numbered(11, self.CODE), only=["void f(", "int c;"])
        assert outline(rows) == [11, "+1", 13, 14, 15, 16, "+1", 18, 19]

    def test_only_takes_a_pair(self) -> None:
        rows = choose(numbered(11, self.CODE), only=[("int a", "int x")])
        assert outline(rows) == [11, 12, 13, 14, "+4", 19]

    def test_elide_hides_what_lies_between(self) -> None:
        rows = choose(numbered(11, self.CODE), elide=[("void f(", "int b")])
        assert outline(rows) == [11, 12, 13, "+3", 17, 18, 19]
        assert rows[3].number == 14

    def test_start_and_end(self) -> None:
        rows = choose(numbered(11, self.CODE), start="go()", end="int b")
        assert outline(rows) == [15, 16, 17]

    def test_lines(self) -> None:
        assert outline(choose(numbered(11, self.CODE), lines=(12, 13))) == [12, 13]
        assert outline(choose(numbered(11, self.CODE), lines=[(12, 13), (17, 17)])) == [
            12,
            13,
            "+3",
            17,
        ]

    @pytest.mark.parametrize("lines", [(1, 5), (12, 40), (14, 12)])
    def test_lines_outside_are_refused(self, lines: tuple[int, int]) -> None:
        with pytest.raises(BookError, match=r"not within f, which is lines 11 to 19 of f\.h"):
            choose(numbered(11, self.CODE), lines=lines)

    @pytest.mark.parametrize("lines", [(1, 2, 3), [1], ["a"], [(1, 2, 3)]])
    def test_lines_of_another_shape_are_refused(self, lines: object) -> None:
        with pytest.raises(BookError, match="is not a range"):
            choose(numbered(11, self.CODE), lines=lines)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "choice",
        [
            {"start": "gone"},
            {"end": "gone"},
            {"only": ["gone"]},
            {"elide": [("int a", "gone")]},
            {"start": "int b", "end": "int a"},
            {"elide": [("int b", "int a")]},
        ],
    )
    def test_a_text_that_is_gone_is_an_error(self, choice: dict[str, object]) -> None:
        with pytest.raises(BookError, match="the source may have changed"):
            choose(numbered(11, self.CODE), **choice)  # type: ignore[arg-type]

    def test_python_statements_bring_their_block(self) -> None:
        code = """
            def f(
                a,
            ):
                x = 1
                if a:
                    y()

                    z()
                return x
            """
        rows = choose(numbered(1, code, "python"), only=["if a"])
        assert outline(rows) == [1, 2, 3, "+1", 5, 6, 7, 8, 9]

    @given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1))
    def test_gaps_and_lines_add_up(self, pairs: list[tuple[int, int]]) -> None:
        ranges = [(min(p), max(p)) for p in pairs]
        rows = choose(numbered(1, "\n".join(f"l{n}" for n in range(1, 31))), lines=ranges)
        at = rows[0].number
        for row in rows:
            assert row.number == at
            at += row.gap or 1
            assert row.gap or row.text == f"l{row.number}"
        assert at - 1 == max(b for _, b in ranges)


class TestPython:
    SOURCE = textwrap.dedent(
        '''\
        from typing import overload

        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        @decorated
        def f(a):
            """One.

            Two.
            Three.
            Four.
            """
            return a

        try:
            class A:
                @property
                def p(self): return 1
                @p.setter
                def p(self, value): pass
        except ImportError:
            LIMIT = 3
        '''
    )

    def test_overloads_give_way_to_the_function(self) -> None:
        (found,) = python.find("m.py", self.SOURCE, "f")
        assert (found.first, found.last, found.signature) == (7, 15, "def f(a):")
        assert outline(choose(found)) == [7, 8, 9, "+4", 14, 15]
        assert outline(choose(found, docstring=True)) == [*range(7, 16)]

    def test_inside_try_and_property(self) -> None:
        (found,) = python.find("m.py", self.SOURCE, "A.p")
        assert (found.first, found.last) == (19, 20)
        assert python.find("m.py", self.SOURCE, "LIMIT")[0].lines == ("    LIMIT = 3",)

    def test_unknown_names_the_nearest(self) -> None:
        with pytest.raises(BookError, match=r"A\.q is not in m\.py; did you mean .*A\.p"):
            python.find("m.py", self.SOURCE, "A.q")


class TestYaml:
    LINES = (
        "# head",
        "- func: add.Tensor(Tensor a) -> Tensor",
        "  dispatch:",
        "    CPU: add",
        "",
        "# about the next",
        "- func: add.out(Tensor a) -> Tensor",
        "- func: sub(Tensor a) -> Tensor",
        "  variants: method",
    )

    def test_an_entry_ends_where_it_ends(self) -> None:
        (found,) = yamls.find("f.yaml", self.LINES, "add.Tensor")
        assert (found.first, found.last) == (2, 4)
        assert found.signature == "add.Tensor(Tensor a) -> Tensor"
        assert yamls.find("f.yaml", self.LINES, "sub")[0].last == 9

    def test_without_its_overload_the_overloads_are_named(self) -> None:
        with pytest.raises(BookError, match=r"did you mean add\.Tensor, add\.out\?"):
            yamls.find("f.yaml", self.LINES, "add")
