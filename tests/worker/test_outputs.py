from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.worker.outputs import check, flatten
from tests.worker import graphs
from tests.worker.sessions import cpu_session


def floats(*values: float, kind: str = "float32") -> Any:
    return np.array(values, dtype=kind)


class TestCheck:
    def test_counts_what_is_not_finite_over_all_float_outputs(self) -> None:
        looked = check(
            "middle",
            [floats(1, np.nan, np.inf), np.arange(3), floats(-np.inf, 1, kind="float16")],
        )
        assert looked.run == "middle"
        assert looked.nonfinite == 3

    def test_finds_them_behind_the_first_million_values(self) -> None:
        values = np.ones(3_000_000, np.float32)
        values[-1] = np.nan
        values[0] = 2
        assert check("last", [values]).nonfinite == 1

    @pytest.mark.parametrize(
        ("outputs", "constant"),
        [
            ([floats(2, 2, 2)], True),
            ([floats(2, 2, 3)], False),
            ([floats(2, 2), floats(1, 2)], False),
            ([floats(2, 2), np.arange(3)], True),
            ([floats(0, 0, -0.0)], True),
            # One value alone says nothing.
            ([floats(2)], False),
            ([np.float32(2)], False),
            ([floats(2), floats(3, 3)], True),
            ([np.zeros(3, np.int64)], False),
            ([np.zeros((0, 4), np.float32)], False),
            ([floats(np.nan, np.nan)], False),
            ([np.array(["a", "a"], object)], False),
        ],
    )
    def test_constant(self, outputs: list[object], constant: bool) -> None:
        assert check("first", outputs).constant is constant

    def test_norm_and_subnormals(self) -> None:
        looked = check("first", [floats(3, np.nan), floats(4, 1e-40)])
        assert looked.norm == pytest.approx(5.0)
        assert looked.subnormal == 1
        assert check("first", [np.arange(3)]).norm is None
        assert check("first", [floats(1e200, kind="float64")]).norm is None

    def test_complex(self) -> None:
        looked = check("first", [np.array([3 + 4j, complex(0, np.inf)], np.complex64)])
        assert looked.nonfinite == 1
        assert looked.norm == pytest.approx(5.0)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ([floats(1, 2)], [floats(1, 2.0000002)]),
            ([floats(0.0, 1)], [floats(-0.0, 1)]),
            ([floats(1, 2)], [floats(1, 2).reshape(2, 1)]),
            ([floats(1, 2)], [floats(1, 2, kind="float64")]),
            ([floats(1), floats(2)], [floats(2), floats(1)]),
            ([None, floats(1)], [floats(1), None]),
            ([np.array(["ab", "c"], object)], [np.array(["a", "bc"], object)]),
            ([[{"a": 1.0}]], [[{"b": 1.0}]]),
            ([[floats(1), floats(2)]], [[floats(1), floats(3)]]),
        ],
    )
    def test_digest_sees_every_difference(self, one: list[object], other: list[object]) -> None:
        assert check("first", one).digest != check("first", other).digest
        assert check("first", one).digest == check("last", one).digest

    def test_empty_and_non_contiguous(self) -> None:
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        assert check("a", [values.T]).digest == check("a", [values.T.copy()]).digest
        assert check("a", [np.zeros((0, 3), np.float32), np.float32(1)]).nonfinite == 0
        assert check("a", []).norm is None


class TestFlatten:
    @pytest.mark.live
    def test_zip_map_is_a_table_by_sorted_key(self) -> None:
        session = cpu_session(graphs.classifier())
        out = session.run(None, {"x": np.eye(4, dtype=np.float32)})
        label, table = flatten(out, ["label", "z"])
        assert label.values.tolist() == [
            max(row, key=lambda key, row=row: row[key]) for row in out[1]
        ]
        assert table.label == "z"
        assert table.keys == ("a", "b", "c")
        assert table.values.shape == (4, 3)
        assert table.values[2, 1] == out[1][2]["b"]

    def test_order_of_keys_does_not_matter(self) -> None:
        one, other = flatten([[{2: 0.5, 1: 0.25}]]), flatten([[{1: 0.25, 2: 0.5}]])
        assert one[0].keys == other[0].keys == (1, 2)
        assert one[0].values.tolist() == other[0].values.tolist() == [[0.25, 0.5]]

    def test_rows_with_other_keys_stand_alone(self) -> None:
        leaves = flatten([[{"a": 1.0}, {"b": 2.0}]], ["z"])
        assert [(leaf.label, leaf.keys) for leaf in leaves] == [
            ("z[0]", ("a",)),
            ("z[1]", ("b",)),
        ]

    def test_map_sequence_scalar_and_absent(self) -> None:
        leaves = flatten([{"a": 1.0, "b": 2.0}, [floats(1), floats(2, 3)], 4.5, None, "text"])
        assert [leaf.label for leaf in leaves] == ["0", "1[0]", "1[1]", "2", "4"]
        assert leaves[0].values.tolist() == [1.0, 2.0]
        assert leaves[3].values.shape == ()
        assert leaves[4].values.dtype == object

    def test_map_of_arrays(self) -> None:
        leaves = flatten([{"a": floats(1, 2)}], ["m"])
        assert [(leaf.label, leaf.values.tolist()) for leaf in leaves] == [("m['a']", [1.0, 2.0])]

    def test_anything_else_is_unsupported(self) -> None:
        with pytest.raises(WorkerError, match=r"'x' .*'object'") as caught:
            flatten([object()], ["x"])
        assert caught.value.failure.kind == "unsupported"


class TestInputs:
    def test_nan_and_infinity_that_were_fed_are_counted(self) -> None:
        feeds = {
            "x": floats(1, np.nan, np.inf),
            "half": floats(np.nan, 1, kind="float16"),
            "double": floats(-np.inf, kind="float64"),
            "ids": np.arange(3),
            "words": np.array(["nan"], dtype=object),
            "seq": [floats(np.nan), floats(1)],
            "absent": None,
        }
        looked = check("first", [floats(1)], feeds)
        assert (looked.nonfinite, looked.nonfinite_inputs) == (0, 5)

    def test_what_was_not_told_is_none(self) -> None:
        assert check("first", [floats(1)]).nonfinite_inputs == 0
