from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from pytest_ortbench.cli.models import _count, _facts
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.models.builders.registry import BUILDERS
from pytest_ortbench.models.catalogue import shipped_catalogue
from tests.schema.full_run import MODEL


def save(path: Path) -> Path:
    """A classifier over a table: ids, named sizes, and an output."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"], axis=0),
            helper.make_node("ReduceMean", ["rows"], ["y"], axes=[1], keepdims=0),
        ],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "seq"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor("table", TensorProto.FLOAT, [10, 4], [0.5] * 40)],
    )
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


@pytest.mark.parametrize("words", [("models",), ("models", "list")])
def test_every_named_model_is_listed_with_size_licence_and_dims(tool, words):
    ended = tool(*words)
    assert ended.code == 0
    names = [line.split()[0] for line in ended.out.splitlines()[2:-1]]
    assert {f"builtin:{name}" for name in BUILDERS} == {
        name.rstrip("*") for name in names if name.startswith("builtin:")
    }
    assert [name for name in names if name.startswith("zoo:")] == [
        f"zoo:{name}" for name in shipped_catalogue()
    ]
    assert "builtin:bert_tiny*" in names
    [silero] = [line for line in ended.out.splitlines() if line.startswith("zoo:silero-vad")]
    assert silero.split()[1:5] == ["2.33", "MB", "MIT", "samples:576"]


def test_a_projects_own_models_are_listed_too(tool, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "catalogue.toml").write_text(
        '[mine]\nfile = "mine.onnx"\nlicence = "a licence with a name that is rather long"\n'
    )
    [line] = [each for each in tool("models").out.splitlines() if each.startswith("mine*")]
    assert "a licence with a…" in line


def test_a_broken_catalogue_is_one_line(tool, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "catalogue.toml").write_text("[mine]\nfil = 3\n")
    ended = tool("models")
    assert (ended.code, ended.out) == (2, "")
    assert "'fil'" in ended.error.message
    assert "'file'" in ended.error.hint


@pytest.mark.live
def test_a_model_is_looked_into(tool, tmp_path):
    save(tmp_path / "table.onnx")
    ended = tool("models", "inspect", "table.onnx")
    assert (ended.code, ended.err) == (0, "")
    facts = [line.split(maxsplit=1) for line in ended.out.splitlines()[1:]]
    told = {name: text.split() for name, text in facts}
    assert told["input"] == ["ids:", "tensor(int64)", "[batch,", "seq]"]
    assert told["output"] == ["y:", "tensor(float)", "[batch,", "4]"]
    assert told["weights"] == ["40,", "0", "%", "zeros"]
    assert ["nodes", "2: 1 Gather, 1 ReduceMean"] in facts
    assert told["format"][2:] == ["8;", "operator", "sets:", "ai.onnx", "13"]
    [fed] = [text for name, text in facts if name == "fed"]
    assert fed.startswith("ids [1, ")
    assert "integers" in fed
    assert ["arithmetic", "0 multiply-accumulates"] in facts


@pytest.mark.live
def test_what_a_run_has_to_do_is_counted(tool, tmp_path):
    """1,000 inputs meet 500 outputs; and one operator that nobody can count."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Normalizer", ["h"], ["y"], domain="ai.onnx.ml"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 500])],
        [helper.make_tensor("w", TensorProto.FLOAT, [1000, 500], bytes(2_000_000), raw=True)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "p.onnx")
    lines = tool("models", "inspect", "p.onnx").out.splitlines()
    facts = [line.split(maxsplit=1) for line in lines[1:]]
    told = {name: text.split() for name, text in facts}
    assert told["arithmetic"][:4] == ["at", "least", "500", "k"]
    assert told["uncounted"] == ["1", "ai.onnx.ml::Normalizer"]
    assert any("2.00 MB" in text for _, text in facts)


@pytest.mark.live
def test_one_bad_file_does_not_hide_the_others(tool, tmp_path):
    (tmp_path / "bad.onnx").write_text("text")
    save(tmp_path / "good.onnx")
    ended = tool("models", "inspect", "bad.onnx", "good.onnx")
    assert ended.code == 2
    assert "input" in ended.out
    assert ended.err.startswith("ortbench: ")
    assert "bad.onnx" in ended.err
    assert ended.err.count("\n") == 1


def test_an_unknown_name_gets_the_nearest_one(tool):
    ended = tool("models", "inspect", "zoo:silero")
    assert (ended.code, ended.out) == (2, "")
    assert "'zoo:silero-vad'" in ended.error.hint


def test_a_missing_file_is_said_to_be_missing_where_it_was_typed(tool):
    ended = tool("models", "inspect", "nope.onnx")
    assert ended.code == 2
    assert (ended.error.place, "'nope.onnx'" in ended.error.message) == ("models", True)


def test_offline_it_says_what_it_would_have_fetched(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("ORTBENCH_OFFLINE", "1")
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "cache"))
    ended = tool("models", "fetch", "silero-vad")
    assert (ended.code, ended.out) == (2, "")
    assert "11.3 MB" in ended.err
    assert "ORTBENCH_OFFLINE" in ended.err


def test_a_builtin_model_is_built_into_the_cache(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "cache"))
    ended = tool("models", "fetch", "linear")
    assert ended.code == 0
    source, path = ended.out.split()[:2]
    assert source == "builtin:linear:"
    assert Path(path).is_file()
    assert Path(path).is_relative_to(tmp_path / "cache")


# What is said of models with more to say.


def test_everything_that_a_model_holds_is_told():
    model = replace(
        MODEL,
        source="zoo:silero-vad",
        implied_dims={"seq": 64},
        workloads={"prefill": {"seq": 128}},
        op_types={f"Op{number:02}": 20 - number for number in range(15)},
    )
    facts = list(_facts(model))
    told = dict(facts)
    assert told["size"].split()[:4] == ["123", "kB,", "including", "1"]
    assert told["licence"] == "MIT"
    assert told["dims"] == "seq:128"
    assert "seq:64" in told.values()
    assert told["workload"] == "prefill: seq:128"
    assert told["random"].startswith("Dropout: ")
    assert told["note"].startswith("optimised offline: ")
    assert told["nodes"].split(", ")[-1].split()[:4] == ["9", "Op11", "and", "3"]
    assert [text.split(": ") for name, text in facts if name == "input"] == [
        ["ids", "tensor(int64) [batch, seq]"],
        ["x", "tensor(float) [?, 3] (optional)"],
        ["anything", "seq(tensor(float))"],
    ]


@pytest.mark.parametrize(
    ("shape", "declared", "fed"),
    [
        ((3, 4), "x: tensor(float) [3, 4]", "x [3, 4]: normal"),
        (None, "x: tensor(float) of any rank", "the model does not state how many axes input 'x'"),
        (("n", 2**40), "x: tensor(float) [n, 1099511627776]", "input 'x' of shape [1, 1099"),
    ],
)
def test_what_a_model_is_fed_or_why_it_can_not_be(shape, declared, fed):
    tensor = TensorInfo(name="x", type="tensor(float)", shape=shape)
    told = dict(_facts(replace(MODEL, inputs=(tensor,))))
    assert told["input"] == declared
    assert told["fed"].startswith(fed)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (330, "330"), (25_400, "25.4 k"), (25_557_032, "25.6 M")]
)
def test_counts_are_short(number, text):
    assert _count(number) == text


@pytest.mark.live
def test_a_constant_input_shows_its_value(tool, tmp_path):
    from onnx import TensorProto, helper
    from onnx import save as write

    graph = helper.make_graph(
        [helper.make_node("TopK", ["x", "k"], ["y", "at"])],
        "top",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8]),
            helper.make_tensor_value_info("k", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opset = [helper.make_opsetid("", 13)]
    write(helper.make_model(graph, ir_version=8, opset_imports=opset), tmp_path / "top.onnx")
    ended = tool("models", "inspect", "top.onnx")
    fed = [line.split(maxsplit=1)[1] for line in ended.out.splitlines() if "fed " in line]
    assert fed[0].startswith("x [1, 8]: normal")
    assert fed[1].startswith("k [1]: constant 5, TopK(")
