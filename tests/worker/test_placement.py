from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Placement
from pytest_ortbench.core.placement import (
    is_fallback,
    judge_placement,
    nodes_elsewhere,
    placement_ratio,
    time_ratio,
)
from pytest_ortbench.core.provider_kinds import WEBGPU
from pytest_ortbench.worker.assignment import ENTRY, AssignedNode, Assignment, read_assignment
from pytest_ortbench.worker.placement import read_profile
from tests.worker import graphs
from tests.worker.sessions import CPU, cpu_session

PROFILES = Path(__file__).parent / "profiles"
OPENVINO = "OpenVINOExecutionProvider"


def profiled(model: bytes, feeds: dict[str, object], folder: Path, *, runs: int = 3) -> Placement:
    session = cpu_session(model, profile_prefix=str(folder / "p"), entries=dict([ENTRY]))
    for _ in range(runs):
        session.run(None, feeds)
    return read_profile(Path(session.end_profiling()), CPU, session=session)


def assigned(**ops: str) -> Assignment:
    """``openvino="MatMul ArgMax"`` and so on."""
    names = {"openvino": OPENVINO, "cpu": CPU, "ggml": "ggml"}
    return Assignment(
        nodes=tuple(
            AssignedNode(provider=names[name], op=op)
            for name, text in ops.items()
            for op in text.split()
        )
    )


class TestRealSessions:
    @pytest.mark.live
    def test_shape_nodes_stand_apart(self, tmp_path: Path) -> None:
        feeds: dict[str, object] = {"x": np.ones((1, 3, 8, 8), np.float32)}
        placement = profiled(graphs.shapes(), feeds, tmp_path)
        # Conv, ReorderOutput (put in by ONNX Runtime) and Reshape compute; Shape, Gather and
        # Concat only make the shape.
        assert placement.executed[CPU] in (2, 3)
        assert placement.shape_only == {CPU: 3}
        assert placement.ops_elsewhere == {}
        assert placement.partitions == 0
        assert placement.nodes_on_provider == placement.nodes_total == 5
        assert placement.witness == "agrees"
        assert placement.precision_executed == "float32"
        assert placement.session_providers == (CPU,)
        assert placement.time_ns[CPU] > 0
        assert not is_fallback(placement)

    @pytest.mark.live
    def test_half_precision_on_the_cpu_is_executed_in_single(self, tmp_path: Path) -> None:
        feeds: dict[str, object] = {"x": np.ones((4, 16), np.float16)}
        assert profiled(graphs.half(), feeds, tmp_path).precision_executed == "float32"

    @pytest.mark.live
    def test_eight_bit_matrix_product(self, tmp_path: Path) -> None:
        feeds: dict[str, object] = {"x": np.ones((64, 256), np.float32)}
        placement = profiled(graphs.quantised(), feeds, tmp_path)
        assert placement.precision_executed == "uint8"

    @pytest.mark.live
    def test_text_and_integers_have_no_precision(self, tmp_path: Path) -> None:
        model = graphs.serialised(
            [graphs.helper.make_node("Identity", ["x"], ["y"])],
            [graphs.value("x", graphs.TensorProto.STRING, [3])],
            [graphs.value("y", graphs.TensorProto.STRING, [3])],
        )
        feeds: dict[str, object] = {"x": np.array(["a", "b", "c"], object)}
        placement = profiled(model, feeds, tmp_path)
        assert placement.precision_executed is None
        assert placement.executed == {CPU: 1}

    @pytest.mark.live
    def test_vectors_of_integers_that_are_the_output_are_computed(self, tmp_path: Path) -> None:
        model = graphs.serialised(
            [graphs.helper.make_node("Add", ["x", "x"], ["y"])],
            [graphs.value("x", graphs.TensorProto.INT64, [3])],
            [graphs.value("y", graphs.TensorProto.INT64, [3])],
        )
        placement = profiled(model, {"x": np.arange(3)}, tmp_path)
        assert (placement.executed, placement.shape_only) == ({CPU: 1}, {})
        assert not is_fallback(placement)

    @pytest.mark.live
    def test_bodies_count_instead_of_the_control_flow_around_them(self, tmp_path: Path) -> None:
        feeds: dict[str, object] = {"x": np.ones((4, 16), np.float32), "c": np.array(True)}
        placement = profiled(graphs.loop_and_branch(), feeds, tmp_path)
        # MatMul, Relu and Tanh; the loop's Identity of a condition is shape-only.
        assert placement.executed == {CPU: 3}
        assert placement.shape_only == {CPU: 1}
        assert placement.nodes_total == 7
        assert placement.witness == "agrees"

    @pytest.mark.live
    def test_both_branches_taken_in_different_runs_count(self, tmp_path: Path) -> None:
        session = cpu_session(graphs.loop_and_branch(), profile_prefix=str(tmp_path / "p"))
        for taken in (True, False):
            session.run(None, {"x": np.ones((4, 16), np.float32), "c": np.array(taken)})
        placement = read_profile(Path(session.end_profiling()), CPU)
        assert placement.executed == {CPU: 4}
        assert placement.witness.startswith("no witness: ")
        assert placement.session_providers == ()

    @pytest.mark.live
    def test_without_the_entry_there_is_no_witness(self) -> None:
        assignment = read_assignment(cpu_session(graphs.mlp()))
        assert assignment.nodes == ()
        assert ENTRY[0] in assignment.reason


class TestRecordedProfiles:
    """Profiles of other runtimes, made by running the graphs of this folder there."""

    def test_compiled_partitions_and_what_is_left(self) -> None:
        placement = read_profile(
            PROFILES / "openvino-1.24.1-labels.json",
            OPENVINO,
            assignment=assigned(openvino="MatMul ArgMax Softmax", cpu="LabelEncoder"),
        )
        assert placement.executed == {OPENVINO: 2, CPU: 1}
        assert placement.partitions == 2
        assert placement.ops_elsewhere == {"LabelEncoder": 1}
        assert (placement.nodes_on_provider, placement.nodes_total) == (3, 4)
        assert placement.witness == "agrees"
        assert placement.precision_executed is None
        assert placement_ratio(placement) == 3 / 4
        assert not is_fallback(placement)

    def test_a_partition_that_took_the_shape_nodes_too(self) -> None:
        placement = read_profile(PROFILES / "openvino-1.24.1-shapes.json", OPENVINO)
        assert placement.executed == {OPENVINO: 1}
        assert placement.partitions == 1
        assert placement_ratio(placement) == 1.0
        # The partition read float, but what happens inside is not seen.
        assert placement.precision_executed is None

    def test_plug_in_that_claims_nothing(self) -> None:
        placement = read_profile(PROFILES / "ggml-0.2.0-claims-nothing.json", "ggml")
        assert placement.executed == {CPU: 4}
        assert placement.ops_elsewhere == {
            "ArgMax": 1,
            "LabelEncoder": 1,
            "MatMul": 1,
            "Softmax": 1,
        }
        assert is_fallback(placement)

    def test_plug_in_with_a_partition(self) -> None:
        placement = read_profile(
            PROFILES / "ggml-0.2.0-partial.json",
            "ggml",
            assignment=assigned(ggml="MatMul Softmax", cpu="ArgMax LabelEncoder"),
        )
        assert placement.executed == {"ggml": 1, CPU: 2}
        assert placement.partitions == 1
        assert placement.witness == "agrees"
        assert placement_ratio(placement) == 2 / 4

    def test_the_oldest_runtime(self) -> None:
        shapes = read_profile(PROFILES / "cpu-1.15.1-shapes.json", CPU)
        assert (shapes.executed, shapes.shape_only) == ({CPU: 3}, {CPU: 3})
        half = read_profile(PROFILES / "cpu-1.15.1-half.json", CPU)
        assert half.precision_executed == "float32"
        loop = read_profile(PROFILES / "cpu-1.15.1-loop.json", CPU)
        assert (loop.executed, loop.shape_only) == ({CPU: 3}, {CPU: 1})

    def test_time_of_a_loop_is_that_of_its_body(self) -> None:
        file = PROFILES / "cpu-1.32.0-loop.json"
        placement = read_profile(file, CPU)
        events = [event for event in json.loads(file.read_text()) if event["cat"] == "Node"]
        bodies = [event for event in events if event["args"]["op_name"] not in ("Loop", "If")]
        # Two runs: the first is left out of the times.
        second = bodies[len(bodies) // 2 :]
        assert placement.time_ns == {CPU: 1000 * sum(event["dur"] for event in second)}


def node(
    name: str,
    op: str,
    *,
    provider: str = CPU,
    start: int = 0,
    duration: int = 1,
    reads: list[dict[str, list[int]]] | None = None,
    writes: list[dict[str, list[int]]] | None = None,
) -> dict[str, Any]:
    return {
        "cat": "Node",
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": duration,
        "name": f"{name}_kernel_time",
        "args": {
            "op_name": op,
            "provider": provider,
            "node_index": "0",
            "input_type_shape": [{"float": [2, 2]}] if reads is None else reads,
            "output_type_shape": [{"float": [2, 2]}] if writes is None else writes,
        },
    }


END_OF_RUN = {"cat": "Session", "tid": 1, "ts": 0, "dur": 1, "name": "model_run", "args": {}}


def written(folder: Path, *events: dict[str, Any]) -> Path:
    file = folder / "profile.json"
    file.write_text("[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n")
    return file


class TestReduction:
    def test_copies_are_no_computing_nodes(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("a", "MemcpyFromHost", provider="CUDAExecutionProvider"),
            node("b", "MatMul", provider="CUDAExecutionProvider", reads=[{"float16": [2, 2]}]),
            node("c", "MemcpyToHost", provider="CUDAExecutionProvider"),
            node("d", "NonMaxSuppression"),
            END_OF_RUN,
        )
        placement = read_profile(file, "CUDAExecutionProvider")
        assert placement.copies == 2
        assert placement.executed == {"CUDAExecutionProvider": 1, CPU: 1}
        assert placement.ops_elsewhere == {"NonMaxSuppression": 1}
        assert placement.precision_executed == "float16"
        assert placement.time_ns == {"CUDAExecutionProvider": 3000, CPU: 1000}

    def test_first_run_is_left_out_of_the_times_but_not_of_the_nodes(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("a", "MatMul", duration=500),
            node("only_first", "Relu", duration=500),
            END_OF_RUN,
            node("a", "MatMul", duration=10),
            END_OF_RUN,
            node("a", "MatMul", duration=20),
            END_OF_RUN,
        )
        placement = read_profile(file, CPU)
        assert placement.time_ns == {CPU: 15_000}
        assert placement.executed == {CPU: 2}

    def test_equal_names_in_two_branches_are_two_nodes(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("Add_0", "Add", start=12),
            node("if_1", "If", start=10, duration=4),
            node("Add_0", "Add", start=22),
            node("if_2", "If", start=20, duration=4),
            END_OF_RUN,
        )
        placement = read_profile(file, CPU)
        assert placement.executed == {CPU: 2}
        assert placement.time_ns == {CPU: 2000}

    def test_a_node_before_a_loop_is_not_inside_it(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("before", "Relu", start=1, duration=9),
            node("inside", "MatMul", start=12, duration=3),
            node("loop", "Loop", start=10, duration=8),
            END_OF_RUN,
        )
        assert read_profile(file, CPU).time_ns == {CPU: 12_000}

    def test_search_counts_for_what_it_does_besides_its_decoder(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("inside", "MatMul", provider="CUDAExecutionProvider", start=2, duration=3),
            node("search", "BeamSearch", start=1, duration=10),
            END_OF_RUN,
        )
        placement = read_profile(file, "CUDAExecutionProvider")
        assert placement.executed == {"CUDAExecutionProvider": 1, CPU: 1}
        assert placement.time_ns == {"CUDAExecutionProvider": 3000, CPU: 7000}

    @pytest.mark.parametrize(
        ("values", "shape_only"),
        [
            ([{"int64": [4]}], True),
            ([{"bool": []}], True),
            ([{"int64": [4]}, {"int64": [2, 2]}], False),
            ([{"int64": [4]}, {"float": [1]}], False),
            ([], False),
        ],
    )
    def test_shape_only_is_a_matter_of_all_values(
        self, values: list[dict[str, list[int]]], shape_only: bool, tmp_path: Path
    ) -> None:
        file = written(tmp_path, node("a", "Concat", reads=values, writes=[]), END_OF_RUN)
        placement = read_profile(file, CPU)
        assert bool(placement.shape_only) is shape_only
        assert bool(placement.executed) is not shape_only

    def test_witness_says_how_it_differs(self, tmp_path: Path) -> None:
        file = written(tmp_path, node("a", "FusedConv"), node("b", "ReorderOutput"), END_OF_RUN)
        placement = read_profile(
            file, OPENVINO, assignment=assigned(openvino="MatMul", cpu="Conv Relu")
        )
        assert re.findall(r": ([^;]+)", placement.witness) == ["FusedConv", "Conv, Relu"]

    def test_empty_assignment_is_no_witness(self) -> None:
        class Silent:
            def get_provider_graph_assignment_info(self) -> list[object]:
                return []

        silent, without = read_assignment(Silent()).reason, read_assignment(object()).reason
        assert silent.startswith("no witness: ")
        assert without.startswith("no witness: ")
        assert silent != without

    def test_a_name_that_is_no_utf_8_costs_no_witness(self) -> None:
        class Node:
            op_type, domain = "Gemm", ""

            @property
            def name(self) -> str:
                return b"\xff\xfeQ".decode("utf-8")

        class Subgraph:
            ep_name = CPU

            def get_nodes(self) -> list[Node]:
                return [Node()]

        class Told:
            def get_provider_graph_assignment_info(self) -> list[Subgraph]:
                return [Subgraph()]

        [named] = read_assignment(Told()).nodes
        assert (named.provider, named.op, named.name) == (CPU, "Gemm", "\ufffd\ufffdQ")


class TestDamagedProfiles:
    @pytest.mark.parametrize("share", [0.55, 0.75, 0.9, 0.99])
    def test_truncated_gives_its_complete_runs(self, share: float, tmp_path: Path) -> None:
        text = (PROFILES / "ggml-0.2.0-claims-nothing.json").read_text()
        file = tmp_path / "cut.json"
        file.write_text(text[: int(len(text) * share)])
        placement = read_profile(file, "ggml")
        assert placement.executed == {CPU: 4}
        assert placement.time_ns[CPU] > 0
        assert placement.cut_after is None

    def test_truncated_in_the_first_run_gives_what_there_is(self, tmp_path: Path) -> None:
        lines = (PROFILES / "openvino-1.24.1-labels.json").read_text().splitlines()
        file = tmp_path / "cut.json"
        file.write_text("\n".join(lines[:4]) + "\n" + lines[4][:40])
        placement = read_profile(file, OPENVINO)
        assert placement.seen == {OPENVINO: 1}
        assert placement.cut_after == 3
        assert judge_placement(placement).is_unjudged

    @pytest.mark.parametrize("content", ["", "[]", "not a profile", "\x00\xff"])
    def test_no_profile_at_all(self, content: str, tmp_path: Path) -> None:
        file = tmp_path / "p.json"
        file.write_text(content)
        with pytest.raises(WorkerError, match="event") as caught:
            read_profile(file, CPU)
        assert caught.value.failure.phase == "profile"

    def test_absent(self, tmp_path: Path) -> None:
        with pytest.raises(WorkerError, match="is missing"):
            read_profile(tmp_path / "absent.json", CPU)

    @pytest.mark.parametrize("mark", [True, False])
    def test_a_profiler_that_stopped_within_the_first_run(self, mark: bool, tmp_path: Path) -> None:
        """What an ONNX Runtime writes whose profiler is full; older ones write no mark."""
        said = {"cat": "Session", "name": "profile_truncated", "args": {"max_num_events": "3"}}
        file = written(
            tmp_path,
            {"cat": "Session", "name": "session_initialization", "tid": 1, "ts": 0, "dur": 1},
            node("a", "MatMul"),
            node("b", "Relu"),
            *([said] if mark else []),
        )
        placement = read_profile(file, CPU, assignment=assigned(cpu="MatMul Relu Softmax"))
        assert placement.cut_after == 3
        assert placement.seen == {CPU: 2}
        assert placement.executed == placement.shape_only == placement.time_ns == {}
        assert (placement.nodes_on_provider, placement.nodes_total) == (None, None)
        assert placement.precision_executed is None
        assert placement.witness.startswith("no witness: ")
        assert placement_ratio(placement) is None
        assert time_ratio(placement) is None
        assert judge_placement(placement).is_unjudged

    def test_of_webgpu_the_transpositions_that_are_named_prove_nothing(
        self, tmp_path: Path
    ) -> None:
        nodes = [
            node(name, op, provider=WEBGPU)
            for name, op in (("t", "Transpose"), ("c", "Conv"), ("u", "Transpose"))
        ]
        named = Assignment(
            nodes=tuple(AssignedNode(provider=WEBGPU, op="Transpose") for _ in range(2))
        )
        placement = read_profile(written(tmp_path, *nodes, END_OF_RUN), WEBGPU, assignment=named)
        assert placement.executed == {WEBGPU: 3}
        assert (placement.nodes_on_provider, placement.nodes_total) == (None, None)
        assert placement.witness.startswith("no witness: ")

    def test_nodes_of_another_provider_in_front_of_the_cut_are_no_fallback(
        self, tmp_path: Path
    ) -> None:
        placement = read_profile(written(tmp_path, node("a", "MatMul")), OPENVINO)
        assert placement.seen == {CPU: 1}
        assert nodes_elsewhere(placement) == 1
        assert not is_fallback(placement)

    def test_a_profiler_that_stopped_behind_a_whole_run(self, tmp_path: Path) -> None:
        file = written(
            tmp_path, node("a", "MatMul"), node("b", "Relu"), END_OF_RUN, node("a", "MatMul")
        )
        placement = read_profile(file, CPU)
        assert (placement.executed, placement.cut_after) == ({CPU: 2}, None)
        assert judge_placement(placement).is_good

    def test_a_damaged_run_counts_only_as_long_as_there_is_no_better_one(
        self, tmp_path: Path
    ) -> None:
        damaged = [json.dumps(node("a", "MatMul")), '{"cat": "Node", "na', json.dumps(END_OF_RUN)]
        whole = [*map(json.dumps, (node("a", "MatMul"), node("b", "Relu"), END_OF_RUN))]
        file = tmp_path / "p.json"
        file.write_text("[\n" + ",\n".join(damaged) + "\n]\n")
        assert read_profile(file, CPU).cut_after == 2
        file.write_text("[\n" + ",\n".join([*damaged, *whole]) + "\n]\n")
        placement = read_profile(file, CPU)
        assert (placement.executed, placement.cut_after) == ({CPU: 2}, None)

    @pytest.mark.parametrize("name", ['say "hi"', "block\\conv", '"', '","args" : {"'])
    def test_names_that_the_profiler_does_not_escape(self, name: str, tmp_path: Path) -> None:
        """ONNX Runtime 1.24 writes them as they are."""
        text = json.dumps([node("NAME", "MatMul"), END_OF_RUN]).replace("}, {", "},\n{")
        file = tmp_path / "p.json"
        file.write_text(text.replace("NAME", name).replace("[{", "[\n{", 1))
        placement = read_profile(file, CPU)
        assert (placement.executed, placement.cut_after) == ({CPU: 1}, None)

    def test_no_node_at_all_proves_nothing(self, tmp_path: Path) -> None:
        placement = read_profile(written(tmp_path, END_OF_RUN), CPU)
        assert (placement.executed, placement.cut_after) == ({}, None)
        assert judge_placement(placement).is_unjudged
        assert not is_fallback(placement)
