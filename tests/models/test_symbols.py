"""Names and arithmetic of symbolic dimensions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.models.symbols import (
    UnknownSymbolError,
    derived,
    evaluate,
    free_symbols,
    named_shapes,
    parse,
    quote,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("P", 128),
        ("P+S", 135),
        ("P + S + 1", 136),
        ("P - S", 121),
        ("2*S", 14),
        ("S//2", 3),
        ("(P + S) * 2", 270),
        ("2 + 3 * 4", 14),
        ("10 - 3 - 2", 5),
        ("floor(S/2)", 3),
        ("floor(S/2 - 1/2) + 1", 4),
        ("ceil(S / 2)", 4),
        ("min(P, S)", 7),
        ("Max(P, S, 200)", 200),
        ("-S + 10", 3),
        ("past.len + 1", 6),
        ("`odd-name` * 2", 18),
        ("512", 512),
    ],
)
def test_arithmetic(text: str, size: int) -> None:
    assert evaluate(text, {"P": 128, "S": 7, "past.len": 5, "odd-name": 9}) == size


def test_whole_name_wins_over_arithmetic() -> None:
    assert evaluate("seq-len", {"seq-len": 3, "seq": 100, "len": 1}) == 3


@pytest.mark.parametrize("text", ["S/2", "S // 0", "1 / 0"])
def test_no_whole_number(text: str) -> None:
    with pytest.raises(ArithmeticError):
        evaluate(text, {"S": 7})


@pytest.mark.parametrize("text", ["Q", "S + Q", "batch size", "a b + 1"])
def test_unknown_symbol(text: str) -> None:
    with pytest.raises(UnknownSymbolError):
        evaluate(text, {"S": 7})


@pytest.mark.parametrize("text", ["", "S +", "(S", "S)", "a b", "min(", "é(", "1 2", "S ** 2", "%"])
def test_no_arithmetic(text: str) -> None:
    assert parse(text) is None


def test_hyphens_are_names_unless_their_parts_are_symbols() -> None:
    assert derived("seq-len", {"batch"}) is None
    expression = derived("seq-len", {"seq"})
    assert expression is not None
    assert expression.names() == ("seq", "len")


def info(name: str, *shape: int | str | None) -> TensorInfo:
    return TensorInfo(name=name, type="tensor(float)", shape=shape)


def test_unset_axes_get_names_of_their_own() -> None:
    shapes = named_shapes([info("x", None, 3, None), info("a/b:0", None), info("y", "x_dim_0")])
    assert shapes == (("x_dim_0_", 3, "x_dim_2"), ("a_b_0_dim_0",), ("x_dim_0",))


def test_expressions_count_as_their_symbols() -> None:
    shapes = named_shapes([info("ids", "B", "S"), info("mask", "B", "P+S"), info("z", "2*K")])
    assert free_symbols(shapes) == ("B", "S", "P", "K")


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-+ ]{0,8}", fullmatch=True)


@given(st.dictionaries(names, st.integers(0, 1000), min_size=1, max_size=4))
def test_quoted_symbols_keep_their_size(sizes: dict[str, int]) -> None:
    """Whatever a symbol is called, it can stand inside an expression."""
    for name, size in sizes.items():
        if parse(name) is None or name.isidentifier():
            assert evaluate(f"{quote(name)} + 1", sizes) == size + 1


@given(st.text(max_size=20))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    expression = parse(text)
    if expression is not None:
        assert all(isinstance(name, str) for name in expression.names())


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_agrees_with_python(p: int, s: int, k: int) -> None:
    sizes = {"p": p, "s": s, "k": k}
    text = "p * s + k // s - (p - k) * 2"
    assert evaluate(text, sizes) == p * s + k // s - (p - k) * 2
