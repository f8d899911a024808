"""What the command line asks of requests, where no case of a run is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper, save

from tests.generation.folders import write_folder
from tests.generation.splitting import FIRST, LATER, split_decoder

LATENCY = ("--collect-only", "-k", "latency")


@pytest.fixture
def plain(pytester: pytest.Pytester) -> str:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
    )
    path: Path = pytester.path / "plain.onnx"
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path.name


@pytest.mark.parametrize(
    "option", ["--ort-prompt-tokens=16", "--ort-new-tokens=4", "--ort-depth=9", "--ort-engines=all"]
)
def test_lengths_of_requests_that_no_case_is_are_refused(
    pytester: pytest.Pytester, plain: str, option: str
) -> None:
    result = pytester.runpytest(plain, option, *LATENCY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line]
    assert line.startswith(f"ERROR: {option.partition('=')[0]}: ")


@pytest.mark.parametrize(
    ("options", "step"),
    [
        (("--ort-prompt-tokens=16", "--ort-generate=off"), "or --ort-generate=off"),
        (("--ort-prompt-tokens=16",), "--ort-generate=only"),
        (("--ort-text=text.txt", "--ort-generate=off"), "or --ort-generate=off"),
        (("--ort-text=text.txt",), "Leave --ort-text out"),
        (("--ort-text=.",), "is a folder"),
    ],
)
def test_the_option_that_keeps_another_one_from_working_is_named(
    pytester: pytest.Pytester, plain: str, options: tuple[str, ...], step: str
) -> None:
    pytester.makefile(".txt", text="some text")
    result = pytester.runpytest(plain, *options, *LATENCY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert step in "\n".join(result.errlines)


def test_a_half_of_a_decoder_asks_for_the_other_one_only_where_that_is_not_named(
    pytester: pytest.Pytester,
) -> None:
    split_decoder(pytester.path)
    alone = pytester.runpytest(FIRST, *LATENCY)
    both = pytester.runpytest(FIRST, LATER, *LATENCY)
    told = f"ortbench: {FIRST.removesuffix('.onnx')}: "
    assert [line for line in alone.outlines if line.startswith(told)]
    assert not [line for line in both.outlines if line.startswith(told)]


def test_one_request_among_the_cases_is_enough(pytester: pytest.Pytester, plain: str) -> None:
    write_folder(pytester.path / "llm")
    result = pytester.runpytest(plain, "llm", "--ort-prompt-tokens=16", *LATENCY)
    assert result.ret == pytest.ExitCode.OK


def test_what_a_project_sets_for_all_its_runs_is_not_refused(
    pytester: pytest.Pytester, plain: str
) -> None:
    pytester.makeini("[pytest]\nort_prompt_tokens = 16")
    assert pytester.runpytest(plain, *LATENCY).ret == pytest.ExitCode.OK
