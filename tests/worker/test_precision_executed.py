from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.worker.placement import read_profile
from tests.worker import graphs
from tests.worker.sessions import CPU
from tests.worker.test_placement import END_OF_RUN, node, profiled, written


class TestPrecisionExecuted:
    @pytest.mark.live
    @pytest.mark.parametrize("rows", [1, 64, 2048])
    def test_of_a_real_graph_at_any_batch(self, rows: int, tmp_path: Path) -> None:
        # On an x86 CPU the product runs in single, most nodes around it in half precision.
        helper, half = graphs.helper, graphs.TensorProto.FLOAT16
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t0"], name="mm")]
        nodes += [
            helper.make_node("Transpose", [f"t{i}"], [f"t{i + 1}"], name=f"move{i}", perm=[1, 0])
            for i in range(2)
        ]
        nodes.append(helper.make_node("Concat", ["t2", "t2"], ["y"], name="cat", axis=1))
        model = graphs.serialised(
            nodes,
            [graphs.value("x", half, ["N", 16])],
            [graphs.value("y", half, ["N", 16])],
            {"w": graphs.weights(16, 8, dtype="float16")},
        )
        feeds: dict[str, object] = {"x": np.ones((rows, 16), np.float16)}
        assert profiled(model, feeds, tmp_path).precision_executed == "float32"

    def test_precision_is_that_of_what_multiplies(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("a", "Cast", duration=900, reads=[{"bfloat16": [2]}]),
            node("b", "Relu", duration=500, reads=[{"float": [2]}]),
            node("c", "Relu", duration=500, reads=[{"float": [2]}]),
            node("d", "MatMul", duration=1, reads=[{"float16": [2, 2]}]),
            END_OF_RUN,
        )
        assert read_profile(file, CPU).precision_executed == "float16"

    @pytest.mark.parametrize("shape", [[1, 8], [64, 8]])
    @pytest.mark.parametrize(("single_us", "half_us"), [(1, 900), (900, 1), (0, 0)])
    def test_neither_time_nor_batch_decides_the_precision(
        self, single_us: int, half_us: int, shape: list[int], tmp_path: Path
    ) -> None:
        # As a CPU runs half precision: products in single, moves and norms in half.
        events = [
            *(node(f"m{i}", "MatMul", duration=single_us, reads=[{"float": shape}]) for i in "ab"),
            *(
                node(f"n{i}", "LayerNormalization", duration=half_us, reads=[{"float16": shape}])
                for i in "abcdef"
            ),
        ]
        file = written(tmp_path, *events, END_OF_RUN, *events, END_OF_RUN)
        assert read_profile(file, CPU).precision_executed == "float32"

    def test_of_equal_counts_the_widest_is_claimed(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("a", "MatMul", duration=1, reads=[{"float": [2, 2]}]),
            node("b", "MatMul", duration=9, reads=[{"float16": [2, 2]}]),
            END_OF_RUN,
        )
        assert read_profile(file, CPU).precision_executed == "float32"

    def test_a_loop_does_not_count_its_body_more_than_once(self, tmp_path: Path) -> None:
        turns = [
            node("body", "MatMul", start=1 + turn, reads=[{"float16": [2, 2]}]) for turn in range(9)
        ]
        file = written(
            tmp_path,
            *turns,
            node("loop", "Loop", start=0, duration=20),
            node("after", "MatMul", start=30),
            node("last", "Conv", start=31),
            END_OF_RUN,
        )
        assert read_profile(file, CPU).precision_executed == "float32"

    def test_all_products_are_counted_by_what_they_read(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("a", "MatMul", reads=[{"float": [2, 2]}]),
            node("b", "QLinearConv", reads=[{"uint8": [2, 2]}]),
            node("c", "Conv", reads=[{"float": [2, 2]}]),
            node("d", "Relu", reads=[{"float16": [2]}]),
            node("e", "DequantizeLinear", reads=[{"int8": [2]}]),
            node("f", "MatMul", provider="WebGpuExecutionProvider", reads=[{"float16": [2, 2]}]),
            END_OF_RUN,
        )
        assert read_profile(file, CPU).products == {"float32": 2, "uint8": 1}

    def test_what_a_partition_computes_in_is_not_seen(self, tmp_path: Path) -> None:
        file = written(
            tmp_path,
            node("ggml_part_0", "part", provider="ggml", duration=1),
            node("b", "MatMul", provider="ggml", duration=900),
            END_OF_RUN,
        )
        placement = read_profile(file, "ggml")
        assert (placement.precision_executed, placement.products) == (None, {})

    @pytest.mark.parametrize(
        ("op", "reads", "precision"),
        [
            ("DynamicQuantizeMatMul", [{"float": [2, 2]}], "int8"),
            ("MatMulNBits", [{"float": [2, 2]}, {"uint8": [2, 2, 2]}], "int4"),
            ("QLinearConv", [{"int8": [2, 2]}, {"float": [1]}], "int8"),
            ("Gather", [{"float": [9, 2]}, {"int64": [1, 2]}], "float32"),
            ("Add", [{"double": [2]}], "float64"),
        ],
    )
    def test_precision_of_an_operator(
        self, op: str, reads: list[dict[str, list[int]]], precision: str, tmp_path: Path
    ) -> None:
        file = written(tmp_path, node("a", op, reads=reads), END_OF_RUN)
        assert read_profile(file, CPU).precision_executed == precision
