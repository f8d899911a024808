"""Models that tests make while they run: ``ortbench.measure``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plugin.conftest import QUICK, failed_tests, properties, told

#: What the tests inside the runs share: a small network.
BUILDER = """
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save


def network(scale=1.0, ops=("Relu",), **rest):
    weight = np.arange(64, dtype=np.float32).reshape(8, 8) / 64 * scale - 0.5
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h0"])]
    nodes += [helper.make_node(op, [f"h{n}"], [f"h{n + 1}"]) for n, op in enumerate(ops)]
    nodes.append(helper.make_node("Identity", [f"h{len(ops)}"], ["y"]))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 8]) for n in "xy"]
    graph = helper.make_graph(
        nodes, "net", ends[:1], ends[1:], [numpy_helper.from_array(weight, "w")]
    )
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets, **rest)
"""


@pytest.fixture
def run(run_for_real: Any, drawn_numbers: None) -> Any:
    """As that, with drawn numbers."""
    return run_for_real


@pytest.fixture
def run_for_real(pytester: pytest.Pytester) -> Any:
    """Run tests that begin with the builder; the document is in ``run.json``."""

    def run(tests: str, *arguments: str, **files: str) -> pytest.RunResult:
        pytester.makeini("[pytest]")
        pytester.makepyfile(builder=BUILDER, test_made=f"from builder import *\n{tests}", **files)
        # The module of an earlier run has another content.
        pytester.syspathinsert()
        return pytester.runpytest(
            *QUICK, "--ort-no-results", "--ort-json=run.json", "-rfEs", *arguments
        )

    return run


def cases(folder: Path = Path()) -> list[dict[str, Any]]:
    """Return the cases of the document."""
    return json.loads((folder / "run.json").read_text())["cases"]


def names() -> list[str]:
    return [case["case"]["model"]["name"] for case in cases()]


def test_a_path_bytes_and_a_message_are_measured_under_the_name_of_the_test(run: Any) -> None:
    result = run(
        """
        import os
        class TestKinds:
            def test_path(self, ortbench, tmp_path, monkeypatch):
                save(network(), tmp_path / "m.onnx")
                monkeypatch.chdir(tmp_path)
                measured = ortbench.measure("m.onnx")
                assert measured.status == "measured" and measured.failure is None
                assert 0 < measured.latency().p50 <= measured.latency().p90
                assert measured.memory().model_size == os.path.getsize("m.onnx")
                assert measured.throughput() > 0 and measured.accuracy().max_abs < 1
                assert measured.flags == ()
                assert measured.row["latency_p50_s"] == measured.latency().p50.value
                assert measured.row["case_id"] == measured.name == measured.case.case_id

        @pytest.mark.parametrize("scale", [1, 2])
        def test_others(ortbench, scale):
            ortbench.measure(network(scale).SerializeToString(), name="bytes")
            ortbench.measure(network(scale), name="message")
        """.replace("\n        ", "\n"),
    )
    result.assert_outcomes(passed=3)
    assert names() == [
        "test_made.py/TestKinds/test_path",
        "test_made.py/test_others/1/bytes",
        "test_made.py/test_others/1/message",
        "test_made.py/test_others/2/bytes",
        "test_made.py/test_others/2/message",
    ]
    assert {case["case"]["model"]["source"].partition(":")[0] for case in cases()} == {"test"}
    assert any(text.startswith("3 tests") for text in told(result))


def test_keywords_go_before_the_marker_and_this_before_options(run: Any) -> None:
    result = run(
        """
@pytest.mark.ortbench(batch_sizes=[2, 3], threads=1)
def test_sizes(ortbench):
    assert [case.case.batch for case in ortbench.measure(network(), name="a").cases] == [2, 3]
    one = ortbench.measure(network(), name="b", batch_sizes=4)
    assert one.case.batch == 4 and one.case.session.intra_op_num_threads == 1
""",
        "--ort-batch-sizes=7",
    )
    result.assert_outcomes(passed=1)


def test_a_number_of_several_cases_is_no_number(run: Any) -> None:
    result = run(
        """
def test_sizes(ortbench):
    ortbench.measure(network()).latency().p50
""",
        "--ort-batch-sizes=1,2",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*/b1, */b2)*measured.cases*"])


def test_limits_of_call_marker_and_option_fail_the_test_when_its_body_is_done(run: Any) -> None:
    result = run(
        """
def test_call(ortbench):
    ortbench.measure(network(), limits=["latency_p50 <= 1 ns"])
    print("went-on")

@pytest.mark.ortbench(limits=["peak_rss <= 1 B"])
def test_marker(ortbench):
    ortbench.measure(network())

def test_neither(ortbench):
    ortbench.measure(network())
""",
        "--ort-limits=test_call@latency_p90:1ns",
        "--junitxml=report.xml",
    )
    result.assert_outcomes(failed=2, passed=1)
    assert failed_tests(result) == ["test_call", "test_marker"]
    failure = result.stdout.str()
    assert "went-on" in failure
    assert failure.count("limits exceeded") >= 3
    assert float(properties(Path("report.xml"))["ortbench.latency_p50_s"]) > 0


def test_a_limit_that_no_case_fits_fails_the_run(run: Any) -> None:
    tests = "def test_it(ortbench): ortbench.measure(network())"
    result = run(tests, "--ort-limits=another@latency_p50:1s")
    assert result.ret == 1
    assert told(result)[-1].startswith("--ort-limits: 'another'")


def test_what_can_not_be_measured_fails_unless_the_test_looks_itself(run_for_real: Any) -> None:
    result = run_for_real(
        """
def broken():
    model = network(ops=("Relu", "NoSuchOperator"))
    return model

def test_skips(ortbench):
    ortbench.measure(broken())
    assert False, "not reached"

def test_fails(ortbench):
    ortbench.measure(b"no model")
    assert False, "not reached"

def test_looks(ortbench):
    measured = ortbench.measure(broken(), check=False)
    assert measured.status == "unsupported" and measured.failure.message

def test_no_model(ortbench, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"no model")
    assert ortbench.measure(tmp_path / "m.onnx", check=False).status == "error"
""",
    )
    result.assert_outcomes(failed=1, skipped=1, passed=2)
    result.stdout.no_fnmatch_line("*not reached*")


def test_files_that_a_call_names_start_where_the_test_is_or_at_the_root(run: Any) -> None:
    result = run(
        """
from pathlib import Path

class Written:
    def __fspath__(self): return b"net.onnx"

def write(folder, batch):
    save(network(), folder / "net.onnx")
    np.savez(folder / "in.npz", x=np.ones((batch, 8), np.float32))

@pytest.mark.parametrize("model", ["net.onnx", Written()], ids=["text", "bytes"])
def test_root(ortbench, model, tmp_path, monkeypatch):
    write(Path(__file__).parent, 3)
    monkeypatch.chdir(tmp_path)
    assert ortbench.measure(model, inputs="in.npz").case.batch == 3

def test_here(ortbench, tmp_path, monkeypatch):
    write(Path(__file__).parent, 3)
    write(tmp_path, 4)
    monkeypatch.chdir(tmp_path)
    assert ortbench.measure("net.onnx", inputs=Path("in.npz")).case.batch == 4

@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_held(ortbench, kind):
    ortbench.measure(kind(network().SerializeToString()))
""",
    )
    result.assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("measure(network()); ortbench.measure(network())", "a model without a name"),
        ("measure(network(), models='m.onnx')", "Leave models= out"),
        ("measure(network(), batches=1)", "there is no keyword 'batches'"),
        ("measure(3)", "type int"),
        ("measure('absent.onnx')", "absent.onnx' is not a file"),
        ("measure(network(), limits=['speed <= 1'])", "speed"),
        ("latency().p50, ortbench.measure", "has no case of its own"),
        ("measure", "did not call ortbench.measure"),
    ],
)
def test_a_wrong_call_fails_the_test_with_its_reason(run: Any, call: str, message: str) -> None:
    result = run(f"def test_it(ortbench):\n    ortbench.{call}\n")
    result.assert_outcomes(failed=1)
    assert message in result.stdout.str()
    result.stdout.no_fnmatch_line("*During handling*")


def test_what_a_call_names_is_told_as_of_the_call(run: Any) -> None:
    result = run(
        "def test_model(ortbench): ortbench.measure('absent.onnx')\n"
        "def test_sizes(ortbench): ortbench.measure(network(), dims={'K': 3})\n"
        "def test_provider(ortbench): ortbench.measure(network(), providers=['cpuu'])\n"
        "@pytest.mark.ortbench(providers=['cpuu'])\n"
        "def test_marker(ortbench): ortbench.measure(network())\n"
    )
    result.assert_outcomes(failed=4)
    places = {line.partition(": ")[0].removeprefix("E   ") for line in result.outlines}
    assert places >= {
        "test_made.py::test_model, ortbench.measure",
        "test_made.py::test_sizes, ortbench.measure, dims",
        "test_made.py::test_provider, ortbench.measure, providers",
    }
    assert not places & {"--ort-models", "--ort-dims", "--ort-providers"}


def test_more_than_a_message_holds_is_refused(run: Any) -> None:
    result = run(
        """
class Large(bytes):
    def __len__(self):
        return 2**31

class Model:
    def SerializeToString(self):
        raise ValueError("message too large")
    def ByteSize(self):
        return 2**31 + 5

@pytest.mark.parametrize("model", [Large(b""), Model()], ids=["bytes", "message"])
def test_it(ortbench, model):
    ortbench.measure(model)
""",
    )
    result.assert_outcomes(failed=2)
    assert result.stdout.str().count("save_as_external_data=True") >= 2


def test_external_data_beside_the_path_is_read_there(run_for_real: Any) -> None:
    result = run_for_real(
        """
def test_it(ortbench, tmp_path):
    save(
        network(), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0,
        location="weights.bin",
    )
    measured = ortbench.measure(tmp_path / "m.onnx")
    assert measured.case.model.external_files == ("weights.bin",)
    assert measured.accuracy().max_abs == 0
""",
    )
    result.assert_outcomes(passed=1)


def test_expected_outputs_fail_the_test_that_does_not_give_them(run_for_real: Any) -> None:
    result = run_for_real(
        """
x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
weight = np.arange(64, dtype=np.float32).reshape(8, 8) / 64 - 0.5
right = np.maximum(x.astype(float) @ weight, 0)

def test_right(ortbench):
    measured = ortbench.measure(network(), inputs={"x": x, "y": right})
    assert measured.case.batch == 3
    assert measured.accuracy_facts().reference == "outputs expected in inputs.npz"

def test_wrong(ortbench, tmp_path):
    np.savez(tmp_path / "data.npz", x=x, y=right[:, :4])
    ortbench.measure(network(), inputs=tmp_path / "data.npz")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    assert failed_tests(result) == ["test_wrong"]
    result.stdout.fnmatch_lines(["*data.npz*", "  y *", "*shape*"])


def test_wrong_inputs_are_those_of_the_call(run: Any) -> None:
    result = run(
        "def test_name(ortbench): ortbench.measure(network(), inputs={'z': [1.0]})\n"
        "def test_size(ortbench):\n"
        "    ortbench.measure(network(), inputs={'x': np.ones((1, 9), np.float32)})\n"
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*, ortbench.measure, inputs: *'z'*", "*, ortbench.measure, inputs: * 9]*"]
    )
    result.stdout.no_fnmatch_line("*--ort-inputs*")
    result.stdout.no_fnmatch_line("*inputs.npz*")


def test_expected_outputs_on_the_command_line_fail_the_case_once(
    pytester: pytest.Pytester, model_file: Any
) -> None:
    np.savez("data.npz", x=np.ones((2, 8), np.float32), y=np.full((2, 8), 9, np.float32))
    model_file()
    result = pytester.runpytest(
        *QUICK, "mlp.onnx", "--ort-inputs=data.npz", "--ort-no-results", "-k", "latency or memory"
    )
    assert result.parseoutcomes()["failed"] == 1


def test_a_fixture_or_a_function_may_measure(run: Any) -> None:
    result = run(
        """
from helper import measured_by

@pytest.fixture
def measured(ortbench):
    return ortbench.measure(network(), name="fixture")

def test_fixture(measured, ortbench):
    assert measured.latency().p50 > 0

def test_function(ortbench):
    assert measured_by(ortbench, network()).status == "measured"
""",
        helper="def measured_by(bench, model): return bench.measure(model)",
    )
    result.assert_outcomes(passed=2)
    assert names() == ["test_made.py/test_fixture/fixture", "test_made.py/test_function"]


def test_a_test_of_drawn_values_measures(run: Any) -> None:
    result = run(
        """
from hypothesis import HealthCheck, given, settings, strategies

@settings(max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(scale=strategies.sampled_from([1, 2]))
def test_drawn(ortbench, scale):
    ortbench.measure(network(scale), name=str(scale))

@settings(max_examples=1, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(scale=strategies.just(1))
@pytest.mark.ortbench(providers=["cpu"])
def test_helped(ortbench, scale):
    measured_by(ortbench, network(scale))

def measured_by(bench, model): return bench.measure(model)
""",
    )
    result.assert_outcomes(passed=2)
    assert names()[-1] == "test_made.py/test_helped"


#: Ways in which a test measures what it makes, without naming the call.
CALLS = (
    "Runner(ortbench).go(network())",
    "runner.go(network())",
    "Special(ortbench).go(network())",
    "self.go(ortbench)",
    "Called(ortbench)(network())",
    "makers.measured_by(ortbench, network())",
    "from helper import measured_by; measured_by(ortbench, network())",
    "[by(ortbench, network()) for _ in range(1)]",
    "measured_again(ortbench, network())",
    "SHARED.go_with(ortbench, network())",
    "Runner(ortbench).measured",
)
READERS = ("assert ortbench.latency().p50 > 0", "Runner(ortbench).idle()", "Runner(ortbench)")
WAYS = """
import helper as makers
from builder import *
from helper import SHARED, Called, Runner, measured_again
from helper import measured_by as by

class Special(Runner): pass

@pytest.fixture
def runner(ortbench): return Runner(ortbench)

class TestIt:
    def go(self, bench): return bench.measure(network())
"""
HELPER = """
import functools
from builder import network

def measured_by(bench, model): return bench.measure(model)

def again(function):
    @functools.wraps(function)
    def wrapper(*arguments): return function(*arguments)
    return wrapper

@again
def measured_again(bench, model): return measured_by(bench, model)

class Runner:
    def __init__(self, bench=None): self.bench = bench
    def go(self, model): return self._inner(model)
    def go_with(self, bench, model): return measured_by(bench, model)
    def _inner(self, model): return self.bench.measure(model)
    def idle(self): return 1
    @property
    def measured(self): return self._inner(network())

class Called(Runner):
    def __call__(self, model): return self.go(model)

SHARED = Runner()
"""


def test_whatever_measures_for_a_test_makes_it_one_item(
    pytester: pytest.Pytester, model_file: Any
) -> None:
    model_file()
    bodies = [
        f"test_makes_{number}(self, ortbench, {{}}): {call}" for number, call in enumerate(CALLS)
    ]
    bodies = [body.format("runner" if "runner" in body else "tmp_path") for body in bodies]
    bodies += [
        f"test_reads_{number}(self, ortbench): {body}" for number, body in enumerate(READERS)
    ]
    tests = "".join(f"    def {body}\n" for body in bodies)
    pytester.makepyfile(builder=BUILDER, helper=HELPER, test_made=WAYS + tests)
    pytester.makeini("[pytest]\nort_models = mlp.onnx")
    result = pytester.runpytest("--collect-only", "-q", "--ort-providers=cpu")
    items = [line.rpartition("::")[2] for line in result.outlines if "::test_" in line]
    made = [f"test_makes_{number}" for number in range(len(CALLS))]
    assert items == [*made, *(f"test_reads_{n}[mlp/native/cpu/b1]" for n in range(len(READERS)))]


def test_a_method_of_a_helper_measures(run: Any) -> None:
    tests = "from helper import Runner\ndef test_it(ortbench): Runner(ortbench).go(network())"
    result = run(tests, helper=HELPER)
    result.assert_outcomes(passed=1)
    assert names() == ["test_made.py/test_it"]


def test_a_call_that_is_not_seen_is_told(run: Any, model_file: Any) -> None:
    model_file()
    body = 'getattr(ortbench, "mea" + "sure")(network())'
    result = run(f"def test_it(ortbench): {body}", "--ort-models=mlp.onnx")
    result.assert_outcomes(passed=1)
    assert names() == ["test_made.py/test_it/mlp/native/cpu/b1", "mlp"]
    (remark,) = [line for line in told(result) if "test_made.py::test_it" in line]
    assert "helper(ortbench.measure" in remark
    named = run(f"M = pytest.mark.ortbench(models='mlp.onnx')\n@M\ndef test_it(ortbench): {body}")
    assert not [line for line in told(named) if "test_made.py::test_it" in line]


def test_a_marker_that_names_models_gives_items_besides(run: Any, model_file: Any) -> None:
    model_file()
    result = run(
        """
@pytest.mark.ortbench(models="mlp.onnx")
def test_both(ortbench):
    made = ortbench.measure(network())
    assert made.case.model.name != ortbench.case.model.name == "mlp"
""",
    )
    result.assert_outcomes(passed=1)
    assert names() == ["test_made.py/test_both/mlp/native/cpu/b1", "mlp"]


def test_the_baseline_is_the_stored_case_of_the_same_name(
    run: Any, pytester: pytest.Pytester
) -> None:
    tests = """
import os
def test_it(ortbench):
    ortbench.measure(network(scale=float(os.environ.get("SCALE", "1"))))
def test_other(ortbench):
    ortbench.measure(network())
"""
    run(tests).assert_outcomes(passed=2)
    Path("run.json").rename("base.json")
    result = run(tests, "--ort-baseline=base.json", "--ort-gate=latency:90%")
    result.assert_outcomes(passed=2)
    gate = json.loads(Path("run.json").read_text())["gate"]
    assert [entry["case_id"].split("/")[1] for entry in gate] == ["test_it", "test_other"]
    assert {entry["model_relation"] for entry in gate} == {"same"}
    assert not any(entry["failures"] for entry in gate)
    result = run(tests, "--ort-baseline=base.json", "--ort-gate=latency:90%", "-k", "it")
    assert [note for note in told(result, "gate") if "test_other/" in note]


def test_the_other_side_stands_against_what_the_test_made(run: Any) -> None:
    result = run(
        """
save(network(), "old.onnx")
def test_it(ortbench): ortbench.measure(network())
""",
        "--ort-against=model:old.onnx",
    )
    result.assert_outcomes(passed=1)
    (judged,) = json.loads(Path("run.json").read_text())["gate"]
    assert judged["case_id"] == "test_made.py/test_it/native/cpu/b1"
    assert judged["identical"]


def test_an_interrupted_run_goes_on_with_the_models_that_are_the_same(
    run: Any, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = """
import os
@pytest.mark.parametrize("number", [1, 2, 3])
def test_it(ortbench, number):
    if number == 3 and "STOP" in os.environ:
        pytest.exit("stop")
    changed = number == 2 and "STOP" not in os.environ
    inputs = {"x": np.full((1, 8), number, np.float32)}
    ortbench.measure(network(scale=9.0 if changed else 1.0), inputs=inputs)
"""
    pytester.makepyfile(builder=BUILDER, test_made=f"from builder import *\n{tests}")
    arguments = [*QUICK, "--ort-results=kept", "--ort-resume"]
    monkeypatch.setenv("STOP", "1")
    pytester.runpytest(*arguments)
    monkeypatch.delenv("STOP")
    pytester.runpytest(*arguments).assert_outcomes(passed=3)
    runs = [json.loads(path.read_text()) for path in pytester.path.glob("kept/*/run.json")]
    first, second = sorted(runs, key=lambda entry: entry["resumed"])
    assert first["finished_at"] is None
    assert len(first["cases"]) == 2
    assert second["resumed"] == 1
    assert second["expected"] == len(second["cases"]) == 3
    assert first["plan"] == second["plan"]


def test_under_xdist_they_are_measured_when_the_workers_have_ended(run: Any) -> None:
    result = run("def test_it(ortbench): ortbench.measure(network())", "-n", "1")
    result.assert_outcomes(passed=1)
    assert names() == ["test_made.py/test_it"]
