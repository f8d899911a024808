"""Precisions from the command line to the document and the lines in the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from pytest_ortbench.report.precisions import HEADINGS

from .conftest import QUICK as FAST
from .conftest import told

#: No canary and no plots; the document alone.
QUICK = (*FAST, "--ort-no-results", "--ort-json=run.json")
FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
SUITE = "--pyargs", "pytest_ortbench.suites", "-k", "test_latency or test_accuracy"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ORTBENCH_CACHE", str(folder))
    return folder


@pytest.fixture
def net(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Save two matrix products of width 64; ``quantised``: QDQ around the first, as trained."""

    def make(name: str, *, seed: int = 0, quantised: bool = False, first: float = 1.0) -> Path:
        rng = np.random.default_rng(seed)
        w = [(rng.standard_normal((64, 64)) / 8).astype(np.float32) for _ in range(2)]
        w[0] *= np.float32(first)
        nodes = [
            helper.make_node("MatMul", ["x", "w0"], ["h"], name="mm0"),
            helper.make_node("Relu", ["h"], ["r"], name="relu"),
            helper.make_node("MatMul", ["r", "w1"], ["y"], name="mm1"),
        ]
        tensors = {"w0": w[0], "w1": w[1]}
        if quantised:
            scale = np.float32(np.abs(w[0]).max() / 127)
            tensors["w0q"] = np.round(tensors.pop("w0") / scale).astype(np.int8)
            tensors |= {"ws": scale, "xs": np.float32(8 / 255), "zero": np.uint8(128)}
            nodes[0] = helper.make_node("MatMul", ["xd", "w0d"], ["h"], name="mm0")
            nodes[:0] = [
                helper.make_node("QuantizeLinear", ["x", "xs", "zero"], ["xq"], name="q"),
                helper.make_node("DequantizeLinear", ["xq", "xs", "zero"], ["xd"], name="dq"),
                helper.make_node("DequantizeLinear", ["w0q", "ws"], ["w0d"], name="dqw"),
            ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", FLOAT, ["N", 64])],
            [helper.make_tensor_value_info("y", FLOAT, ["N", 64])],
            [numpy_helper.from_array(np.asarray(value), key) for key, value in tensors.items()],
        )
        path = pytester.path / name
        opset = [helper.make_opsetid("", 13)]
        save(helper.make_model(graph, ir_version=8, opset_imports=opset), str(path))
        return path

    return make


def cases(folder: Path) -> dict[str, dict]:
    """Results by precision; with several models, by model and precision."""
    found = json.loads((folder / "run.json").read_text())["cases"]
    several = len({entry["case"]["model"]["name"] for entry in found}) > 1
    return {
        (entry["case"]["model"]["name"] + "/" if several else "")
        + entry["case"]["variant"]["precision"]: entry
        for entry in found
    }


def flags(case: dict) -> set[str]:
    return {flag["name"] for flag in case["flags"]}


def sqnr(case: dict) -> float:
    return case["accuracy"]["outputs"][0]["sqnr_db"]


def precisions_against(result: pytest.RunResult) -> dict[str, str]:
    """Return the reference of each model's block of precisions."""
    titles = [re.match(r"(\S+): precisions against (\S+) ", line) for line in result.outlines]
    return {title[1]: title[2] for title in titles if title}


def test_every_precision_is_measured_with_recipe_accuracy_and_flags(
    pytester: pytest.Pytester, net: Callable[..., Path], cache: Path
) -> None:
    net("net.onnx")
    command = ("net.onnx", "-k", "test_latency", *QUICK, "--ort-precisions")
    result = pytester.runpytest(*command, "native,fp32,fp16,int8-dynamic,int8-static,int4")
    result.assert_outcomes(passed=6)
    found = cases(pytester.path)
    assert {entry["status"] for entry in found.values()} == {"measured"}

    native, fp32 = found["native"]["case"]["variant"], found["fp32"]["case"]["variant"]
    assert (fp32["path"], fp32["digest"], fp32["recipe"]) == (native["path"], native["digest"], {})

    # Kernels of an x86 CPU compute in float32 whatever the file says.
    assert "EMULATED" in flags(found["fp16"])
    assert found["fp16"]["placement"]["precision_executed"] == "float32"
    assert all("EMULATED" not in flags(found[name]) for name in found if name != "fp16")
    assert sqnr(found["fp16"]) > 40

    dynamic = found["int8-dynamic"]["case"]["variant"]
    assert dynamic["recipe"]["weight_type"] == "uint8"
    assert dynamic["recipe"]["nodes_in_float"] == "0"
    assert dynamic["size_bytes"] < native["size_bytes"] / 3
    assert found["int8-dynamic"]["placement"]["precision_executed"] == "uint8"
    assert found["int8-dynamic"]["accuracy"]["magnitudes"] == [0.1, 1.0, 10.0]
    # Ranges were fixed on inputs of this magnitude.
    assert found["int8-static"]["accuracy"]["magnitudes"] == [1.0]
    assert sqnr(found["int8-static"]) > 15
    assert found["int4"]["case"]["variant"]["recipe"]["block_size"] == "32"

    text = result.stdout.str()
    assert precisions_against(result) == {"net": "fp32"}
    assert re.search(r"fp16 on cpu .*: EMULATED", text)
    assert re.search(r"int8-dynamic: .*nodes_in_float 0", text)

    before = {path: path.stat().st_mtime_ns for path in (cache / "variants").rglob("*.onnx")}
    assert len(before) == 4
    again = pytester.runpytest(*command, "fp16,int4")
    again.assert_outcomes(passed=2)
    assert {
        path: path.stat().st_mtime_ns for path in (cache / "variants").rglob("*.onnx")
    } == before
    assert cases(pytester.path)["int4"]["case"]["variant"] == found["int4"]["case"]["variant"]


def test_a_log_has_the_whole_block_in_what_it_can_write(
    pytester: pytest.Pytester, net: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    net("net.onnx")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.delenv("COLUMNS", raising=False)
    result = pytester.runpytest_subprocess(
        "net.onnx", "-k", "test_latency", *QUICK, "--ort-precisions=fp32,fp16", "-p", "no:xdist"
    )
    result.assert_outcomes(passed=2)
    lines = result.outlines
    title = lines.index(
        "net: precisions against fp32 on the same provider, accuracy on random inputs"
    )
    # All but the flags, which may be many.
    assert tuple(lines[title + 1].split()[:7]) == HEADINGS[:7]
    assert re.search(r" x1\.\d\d smaller ", lines[title + 3])
    assert "\\x" not in result.stdout.str()


def test_a_dry_run_converts_nothing_and_knows_what_can_t_be_made(
    pytester: pytest.Pytester, net: Callable[..., Path], cache: Path
) -> None:
    net("net.onnx")
    net("qat.onnx", quantised=True)
    result = pytester.runpytest(
        "net.onnx", "qat.onnx", "--collect-only", "--ort-precisions=native,fp16,int8-static"
    )
    assert re.findall(r"\d+", told(result)[0])[:2] == ["6", "2"]
    result.stdout.fnmatch_lines(["*net/fp16/cpu/b1*", "*qat/fp16/cpu/b1  refused: *"])
    assert not (cache / "variants").exists()


def test_what_can_t_be_made_is_skipped_with_the_reason_and_the_rest_goes_on(
    pytester: pytest.Pytester, net: Callable[..., Path]
) -> None:
    net("net.onnx")
    pytester.makefile(
        ".toml",
        ortbench="""
        [precisions.heads]
        base = "int8-dynamic"
        nodes_to_exclude = ["mm7"]
        """,
    )
    result = pytester.runpytest(
        "net.onnx", "-k", "test_latency", "--ort-precisions=heads,native", "-rs", *QUICK
    )
    result.assert_outcomes(passed=1, skipped=1)
    failure = cases(pytester.path)["heads"]["failure"]
    assert (failure["kind"], failure["phase"]) == ("unsupported", "convert")
    assert ("'mm7'" in failure["message"], "'mm1'" in failure["hint"]) == (True, True)
    assert failure["message"] in result.stdout.str()


def test_a_recipe_of_the_project_has_its_own_name_settings_and_floor(
    pytester: pytest.Pytester, net: Callable[..., Path]
) -> None:
    net("net.onnx")
    pytester.makefile(
        ".toml",
        pyproject="""
        [tool.ortbench.precisions.heads]
        base = "int8-dynamic"
        nodes_to_exclude = ["mm1"]
        sqnr_floor = 90
        """,
    )
    result = pytester.runpytest(
        "net.onnx", "-k", "test_accuracy", "--ort-precisions=native,heads", *QUICK
    )
    result.assert_outcomes(passed=1, failed=1)
    heads = cases(pytester.path)["heads"]
    assert heads["case"]["variant"]["recipe"]["nodes_to_exclude"] == "mm1"
    assert heads["case"]["variant"]["recipe"]["nodes_in_float"] == "1 (1 MatMul)"
    (flag,) = [flag for flag in heads["flags"] if flag["name"] == "INACCURATE"]
    assert " 90 dB" in flag["detail"]
    # Its latency stays, and is never ranked.
    assert heads["status"] == "measured"
    result.stdout.fnmatch_lines(["net:*heads/cpu/b1: INACCURATE*"])
    # Nor is a line of the suite quoted, which the user did not write.
    result.stdout.no_fnmatch_line("*suites*test_accuracy.py:*")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "int8",
            "*'int8' is not a known precision. Did you mean 'int8-dynamic' or 'int8-static'?*",
        ),
        ("fp61", "*'fp61' is not a known precision. Did you mean 'fp16'?*"),
    ],
)
def test_an_unknown_precision_is_refused_before_anything_runs(
    pytester: pytest.Pytester, net: Callable[..., Path], name: str, says: str
) -> None:
    net("net.onnx")
    result = pytester.runpytest("net.onnx", f"--ort-precisions={name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])


def test_clamped_values_are_in_the_report_and_seen_in_the_outputs(
    pytester: pytest.Pytester,
) -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "x"], ["s"], name="square"),
            helper.make_node("ReduceMean", ["s"], ["m"], name="mean", axes=[-1]),
            helper.make_node("Add", ["m", "eps"], ["v"], name="plus"),
            helper.make_node("Sqrt", ["v"], ["d"], name="root"),
            helper.make_node("Div", ["x", "d"], ["n"], name="norm"),
            helper.make_node("Mul", ["n", "big"], ["y"], name="scale"),
        ],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", FLOAT, ["N", 8])],
        [
            numpy_helper.from_array(np.array(1e-12, np.float32), "eps"),
            numpy_helper.from_array(np.array(1e6, np.float32), "big"),
        ],
    )
    opset = [helper.make_opsetid("", 13)]
    save(
        helper.make_model(graph, ir_version=8, opset_imports=opset),
        str(pytester.path / "norm.onnx"),
    )
    result = pytester.runpytest(
        "norm.onnx", "-k", "test_latency", "--ort-precisions=fp32,fp16", *QUICK
    )
    result.assert_outcomes(passed=2)
    half = cases(pytester.path)["fp16"]
    assert {"EMULATED", "INACCURATE"} <= flags(half)
    # 65504 instead of a million: 1 − 0.0655 of the signal is gone.
    assert sqnr(half) == pytest.approx(-20 * np.log10(1 - 0.065504), abs=0.1)
    assert half["accuracy"]["samples"] == 8
    result.stdout.fnmatch_lines(["*'eps' (*1e-12)*5.96e-08", "*'big' (*1e+06)*65504"])


def test_a_quantised_file_is_not_held_to_60_db_against_itself(
    pytester: pytest.Pytester, net: Callable[..., Path]
) -> None:
    net("qat.onnx", quantised=True)
    result = pytester.runpytest("qat.onnx", "-k", "test_accuracy", *QUICK)
    result.assert_outcomes(passed=1)
    native = cases(pytester.path)["native"]
    assert "INACCURATE" not in flags(native)
    assert native["accuracy"]["magnitudes"] == [1.0]


class TestOwnVariants:
    def configure(self, pytester: pytest.Pytester, text: str) -> None:
        pytester.makefile(".toml", pyproject=text)

    def test_a_quantised_file_is_compared_with_the_reference_that_is_named(
        self, pytester: pytest.Pytester, net: Callable[..., Path]
    ) -> None:
        net("fp32.onnx")
        net("other.onnx", seed=1)
        for name in ("qat.onnx", "wrong.onnx"):
            net(name, quantised=True)
        self.configure(
            pytester,
            """
            [tool.ortbench.models.net]
            file = "qat.onnx"
            reference = "fp32.onnx"

            [tool.ortbench.models.stray]
            file = "wrong.onnx"
            reference = "other.onnx"
            """,
        )
        result = pytester.runpytest("qat.onnx", "wrong.onnx", "-k", "test_accuracy", *QUICK)
        result.assert_outcomes(passed=1, failed=1)
        found = cases(pytester.path)
        native = found["net/native"]
        assert native["case"]["model"]["reference"]["name"] == "fp32.onnx"
        assert native["accuracy"]["reference"].split()[0] == "fp32.onnx"
        assert native["accuracy"]["magnitudes"] == [1.0]
        # Rounding weights and inputs to eight bits leaves this, and no more.
        assert 25 < sqnr(native) < 50
        assert "INACCURATE" not in flags(native)
        assert "INACCURATE" in flags(found["stray/native"])

    def test_variants_are_compared_as_precisions_are(
        self, pytester: pytest.Pytester, net: Callable[..., Path]
    ) -> None:
        net("fp32.onnx")
        net("qat.onnx", quantised=True)
        net("pruned.onnx", first=0.9)
        self.configure(
            pytester,
            """
            [tool.ortbench.models.net]
            reference = "fp32.onnx"
            variants.qat = "qat.onnx"
            variants.pruned = { file = "pruned.onnx", sqnr_floor = 25 }
            """,
        )
        result = pytester.runpytest(*SUITE, "--ort-models=net", *QUICK, "-p", "no:benchmark")
        found = cases(pytester.path)
        assert list(found) == ["native", "qat", "pruned"]
        assert found["qat"]["case"]["variant"]["recipe"] == {"file": "qat.onnx", "holds": "int8"}
        assert 25 < sqnr(found["qat"]) < 50
        # 0.9 of the signal: a tenth is noise, 20 dB.
        assert sqnr(found["pruned"]) == pytest.approx(20, abs=0.1)
        (flag,) = [f for f in found["pruned"]["flags"] if f["name"] == "INACCURATE"]
        assert re.findall(r"([\d.]+) dB", flag["detail"]) == ["20.0", "25"]
        assert precisions_against(result) == {"net": "native"}

    def test_one_variant_can_be_asked_for_by_name(
        self, pytester: pytest.Pytester, net: Callable[..., Path]
    ) -> None:
        for name in ("fp32.onnx", "other.onnx"):
            net(name)
        net("qat.onnx", quantised=True)
        self.configure(
            pytester,
            '[tool.ortbench.models.net]\nreference = "fp32.onnx"\nvariants.qat = "qat.onnx"\n',
        )
        result = pytester.runpytest(
            *SUITE, "--ort-models=net,other.onnx", "--ort-precisions=fp32,qat", "--collect-only"
        )
        assert told(result)[0].startswith("3 cases, ")
        (left_out,) = [text for text in told(result) if text.startswith("left out ")]
        assert "other × qat" in left_out


def test_a_catalogue_groups_files_too(pytester: pytest.Pytester, net: Callable[..., Path]) -> None:
    (pytester.path / "models").mkdir()
    net("models/fp32.onnx")
    net("models/qat.onnx", quantised=True)
    (pytester.path / "models" / "catalogue.toml").write_text(
        """
        [net]
        file = "fp32.onnx"
        dims = { N = 3 }
        variants.qat = "qat.onnx"
        """
    )
    result = pytester.runpytest(*SUITE, *QUICK, "--ort-models=net")
    result.assert_outcomes(passed=4)
    found = cases(pytester.path)
    assert set(found) == {"native", "qat"}
    assert found["qat"]["case"]["variant"]["recipe"]["file"] == "qat.onnx"
    assert found["qat"]["accuracy"]["reference"].split()[0] == "net"
    # In the default set the variant is no model of its own.
    again = pytester.runpytest("--pyargs", "pytest_ortbench.suites", "--collect-only", "-q", *FAST)
    text = again.stdout.str()
    assert "test_latency[net/native/cpu/b1]" in text
    assert "test_latency[net/qat/cpu/b1]" in text
    assert "test_latency[qat/" not in text


def test_an_invalid_file_is_told_once_for_all_precisions(pytester: pytest.Pytester) -> None:
    weight = numpy_helper.from_array(np.eye(8, dtype=np.float32), "w")
    nodes = [
        helper.make_node("Relu", ["x"], ["s"], name="cut"),
        helper.make_node("Relu", ["s"], ["r"], name="cut"),
        helper.make_node("MatMul", ["r", "w"], ["y"], name="mm"),
    ]
    ends = [helper.make_tensor_value_info(name, FLOAT, ["N", 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, str(pytester.path / "two.onnx"))
    names = "native,fp16,int8-static,int8-dynamic"
    result = pytester.runpytest("two.onnx", "-k", "latency", *QUICK, f"--ort-precisions={names}")
    found = json.loads((pytester.path / "run.json").read_text())["cases"]
    failures = {entry["failure"]["message"] for entry in found}
    assert failures == {
        "ONNX Runtime calls the model invalid: 'two nodes with same node name (cut)'"
    }
    assert {(entry["status"], entry["failure"]["phase"]) for entry in found} == {
        ("error", "session")
    }
    lines = [line.strip() for line in result.outlines]
    start = "native, fp16, int8-static, int8-dynamic on cpu: error: "
    assert sum(line.startswith(start) for line in lines) == 1
