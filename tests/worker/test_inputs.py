from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from pytest_ortbench.core.case import InputSpec, SymbolSize
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.worker.inputs import SEQUENCE_LENGTH, make_feeds, scales, varies
from pytest_ortbench.worker.outputs import digest, flatten
from tests.worker import graphs
from tests.worker.sessions import cpu_session

NORMAL = ValueHint(kind="normal")


def spec(
    name: str = "x",
    kind: str = "tensor(float)",
    shape: tuple[int, ...] = (2, 3),
    hint: ValueHint = NORMAL,
    *,
    path: Path | str = "",
    member: str = "",
) -> InputSpec:
    return InputSpec(name=name, type=kind, shape=shape, hint=hint, path=str(path), member=member)


def one(made: InputSpec, *, seed: int = 0, **how: Any) -> Any:
    return make_feeds([made], seed=seed, **how)[made.name]


def integers(low: float, high: float) -> ValueHint:
    return ValueHint(kind="integers", low=low, high=high)


class TestDrawing:
    def test_the_bits_are_fixed(self) -> None:
        # The same on numpy 1.23, 1.26 and 2.4; another value makes every stored seed a lie.
        specs = [
            spec("x", shape=(3, 1000)),
            spec("h", "tensor(float16)", (3, 100)),
            spec("u", "tensor(double)", (100,), ValueHint(kind="uniform", low=-1, high=3)),
            spec("i", "tensor(int64)", (5, 7), integers(0, 9)),
            spec("b", "tensor(bool)", (5, 7), integers(0, 1)),
            spec("s", "tensor(string)", (5, 1), ValueHint(kind="choice", choices=("cat", "dog"))),
            spec("q", "tensor(uint64)", (5, 1), integers(0, 2.0**64)),
        ]
        feeds = make_feeds(specs, seed=7, magnitude=0.1, sample=1)
        assert digest(flatten(list(feeds.values()))) == (
            "810b1f113ca33c6fa7a5e1a94d113cea941e9a3a6355f0512369b068a2efa386"
        )

    def test_normal_has_mean_0_and_deviation_1(self) -> None:
        values = one(spec(shape=(1000, 1000)))
        # A million draws: the standard error of the mean is 0.001.
        assert abs(values.mean(dtype="float64")) < 0.005
        assert abs(values.std(dtype="float64") - 1) < 0.005
        assert np.abs(values).max() < 3.5

    def test_large_inputs_have_no_seams(self) -> None:
        whole = one(spec(shape=(600_000,)))
        assert np.array_equal(one(spec(shape=(10,))), whole[:10])
        assert len(np.unique(whole)) > 100_000

    def test_seed_name_and_sample_each_change_the_values(self) -> None:
        base = one(spec())
        assert np.array_equal(base, one(spec()))
        assert not np.array_equal(base, one(spec(), seed=1))
        assert not np.array_equal(base, one(spec(), sample=1))
        assert not np.array_equal(base, one(spec("y")))

    def test_other_inputs_and_their_order_do_not_matter(self) -> None:
        pair = make_feeds([spec("y"), spec("x")], seed=0)
        assert np.array_equal(pair["x"], one(spec("x")))  # type: ignore[arg-type]
        assert list(pair) == ["y", "x"]

    def test_magnitude_scales_normal_values_only(self) -> None:
        uniform = spec(hint=ValueHint(kind="uniform", low=0, high=1))
        counted = spec(kind="tensor(int64)", hint=integers(0, 9))
        assert np.allclose(one(spec(), magnitude=10.0), 10 * one(spec()), rtol=1e-6)
        assert np.array_equal(one(uniform, magnitude=10.0), one(uniform))
        assert np.array_equal(one(counted, magnitude=10.0), one(counted))

    def test_no_subnormal_half_and_no_zero(self) -> None:
        values = one(spec(kind="tensor(float16)", shape=(100_000,)), magnitude=1e-3)
        assert np.abs(values).min() == np.finfo(np.float16).tiny
        assert (values < 0).any()

    @settings(max_examples=50)
    @given(
        low=st.integers(-(2**63), 2**63 - 1),
        span=st.integers(0, 2**64),
        kind=st.sampled_from(["int8", "int32", "int64", "uint8", "uint64"]),
    )
    def test_integers_stay_within_bounds_and_type(self, low: int, span: int, kind: str) -> None:
        info = np.iinfo(kind)
        # Through float, as a hint holds them.
        wanted = integers(float(low), float(low + span))
        values = one(spec(kind=f"tensor({kind})", shape=(50,), hint=wanted))
        assert values.dtype == kind
        least = min(max(int(float(low)), int(info.min)), int(info.max))
        most = min(max(int(float(low + span)), least), int(info.max))
        assert least <= int(values.min())
        assert int(values.max()) <= most

    def test_both_ends_of_integers_occur(self) -> None:
        values = one(spec(kind="tensor(int32)", shape=(200,), hint=integers(-1, 2)))
        assert sorted(set(values.tolist())) == [-1, 0, 1, 2]

    def test_integers_of_a_float_input_are_whole(self) -> None:
        values = one(spec(shape=(100,), hint=integers(1, 5)), magnitude=10.0)
        assert sorted(set(values.tolist())) == [1.0, 2.0, 3.0, 4.0, 5.0]

    @pytest.mark.parametrize("seed", range(40))
    def test_small_integer_draws_are_not_all_zero(self, seed: int) -> None:
        made = spec(kind="tensor(int64)", shape=(2,), hint=integers(0, 1))
        assert one(made, seed=seed).any()

    @pytest.mark.parametrize("seed", range(10))
    def test_a_mask_never_masks_a_whole_row(self, seed: int) -> None:
        mask = one(spec(kind="tensor(bool)", shape=(50, 3)), seed=seed)
        assert mask.any(axis=1).all()
        assert not mask.all()

    def test_uniform_fills_its_range(self) -> None:
        values = one(spec(shape=(10_000,), hint=ValueHint(kind="uniform", low=-2, high=4)))
        assert -2 <= values.min() < -1.9
        assert 3.9 < values.max() <= 4

    @pytest.mark.parametrize(
        ("kind", "shape", "hint", "values"),
        [
            ("tensor(int64)", (2, 3), ValueHint(kind="ones"), [[1, 1, 1], [1, 1, 1]]),
            ("tensor(float)", (2,), ValueHint(kind="zeros"), [0.0, 0.0]),
            ("tensor(bool)", (2,), ValueHint(kind="ones"), [True, True]),
            ("tensor(int64)", (2, 3), ValueHint(kind="arange"), [[0, 1, 2], [0, 1, 2]]),
            ("tensor(int64)", (), ValueHint(kind="arange"), 0),
            ("tensor(int64)", (), ValueHint(kind="constant", choices=("16000",)), 16000),
            (
                "tensor(int64)",
                (3,),
                ValueHint(kind="constant", choices=("9007199254740993", "-1")),
                [9007199254740993, -1, 9007199254740993],
            ),
            ("tensor(float)", (2,), ValueHint(kind="constant", choices=("0.5", "2")), [0.5, 2.0]),
            ("tensor(string)", (1, 1), ValueHint(kind="choice", choices=("cat",)), [["cat"]]),
            ("tensor(string)", (2,), ValueHint(kind="constant", choices=("u", "v")), ["u", "v"]),
            ("tensor(int64)", (0, 3), integers(0, 9), []),
            ("tensor(float)", (0,), NORMAL, []),
        ],
    )
    def test_kinds(
        self, kind: str, shape: tuple[int, ...], hint: ValueHint, values: object
    ) -> None:
        made = one(spec(kind=kind, shape=shape, hint=hint))
        assert made.shape == shape
        assert made.tolist() == values

    def test_choices_are_all_drawn(self) -> None:
        hint = ValueHint(kind="choice", choices=("cat", "dog"))
        assert set(one(spec(kind="tensor(string)", shape=(50,), hint=hint))) == {"cat", "dog"}
        floats = ValueHint(kind="choice", choices=("0.5", "1"))
        assert set(one(spec(shape=(50,), hint=floats)).tolist()) == {0.5, 1.0}

    def test_what_varies_and_what_scales(self) -> None:
        fixed = [spec(hint=ValueHint(kind="ones")), spec(path="x.npy")]
        counted = [*fixed, spec(kind="tensor(int64)", hint=integers(0, 9))]
        assert (varies(fixed), scales(fixed)) == (False, False)
        assert (varies(counted), scales(counted)) == (True, False)
        assert (varies([spec()]), scales([spec()])) == (True, True)
        assert scales([spec(kind="seq(tensor(float))")])
        assert not scales([spec(hint=ValueHint(kind="uniform"))])


class TestTypes:
    @pytest.mark.live
    def test_onnx_runtime_takes_every_type(self) -> None:
        session = cpu_session(graphs.every_type())
        specs = [spec(i.name, i.type, tuple(i.shape)) for i in session.get_inputs()]
        feeds = make_feeds(specs, seed=0)
        out = session.run(None, feeds)
        for fed, came in zip(feeds.values(), out, strict=True):
            assert came.dtype == fed.dtype  # type: ignore[attr-defined]
            assert np.array_equal(came, fed)  # type: ignore[arg-type]
        assert {s.name: s.shape for s in specs}["rate"] == ()

    @pytest.mark.live
    def test_onnx_runtime_takes_a_sequence(self) -> None:
        made = spec("s", "seq(tensor(float))", (2, 3))
        feeds = make_feeds([made], seed=0)
        rows = cpu_session(graphs.sequence()).run(None, feeds)[0]
        fed: Any = feeds["s"]
        assert len(fed) == SEQUENCE_LENGTH
        assert not np.array_equal(fed[0], fed[1])
        assert np.array_equal(np.concatenate(rows), np.concatenate(fed))

    @pytest.mark.live
    def test_onnx_runtime_takes_a_map(self) -> None:
        keys = ValueHint(kind="choice", choices=("a", "c"))
        made = spec("m", "map(string,tensor(float))", (), keys)
        feeds = make_feeds([made], seed=0)
        fed: Any = feeds["m"]
        assert list(fed) == ["a", "c"]
        out = cpu_session(graphs.vectorizer()).run(None, feeds)[0]
        assert out.tolist() == [[fed["a"], 0.0, fed["c"]]]

    def test_map_with_integer_keys(self) -> None:
        value = one(spec(kind="map(int64,tensor(float))", shape=(4,)))
        assert list(value) == [0, 1, 2, 3]
        assert all(isinstance(number, float) for number in value.values())

    @pytest.mark.live
    def test_onnx_runtime_takes_an_optional(self) -> None:
        feeds = make_feeds([spec("o", "optional(tensor(float))", (2, 3))], seed=0)
        out = cpu_session(graphs.optional()).run(None, feeds)[0]
        assert np.array_equal(out, feeds["o"])  # type: ignore[arg-type]

    def test_sequence_of_maps(self) -> None:
        value = one(spec(kind="seq(map(int64,tensor(float)))", shape=(2,)))
        assert [list(row) for row in value] == [[0, 1], [0, 1]]

    @pytest.mark.parametrize(
        "kind",
        [
            "tensor(float6e2m3)",
            "tensor(unheard)",
            "sparse_tensor(float)",
            "opaque(x)",
            "",
        ],
    )
    def test_what_can_not_be_fed_is_unsupported(self, kind: str) -> None:
        with pytest.raises(WorkerError, match="'x'") as caught:
            one(spec(kind=kind))
        assert caught.value.failure.kind == "unsupported"
        assert caught.value.failure.phase == "inputs"


def saved(folder: Path, tensor: onnx.TensorProto, name: str = "input_0.pb") -> Path:
    file = folder / name
    file.write_bytes(tensor.SerializeToString())
    return file


class TestFiles:
    def test_npy(self, tmp_path: Path) -> None:
        file = tmp_path / "x.npy"
        np.save(file, np.arange(6, dtype=np.float32).reshape(2, 3))
        values = one(spec(path=file), seed=3, magnitude=10.0, sample=2)
        assert values.tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_npz_member_text_and_foreign_byte_order(self, tmp_path: Path) -> None:
        file = tmp_path / "feeds.npz"
        np.savez(
            file,
            a=np.arange(3, dtype=">f4"),
            t=np.array(["chat\u00e9", ""]),
            b=np.array([b"x", b"yz"]),
            n=np.array(5, np.int64),
        )
        assert one(spec(shape=(3,), path=file, member="a")).tolist() == [0, 1, 2]
        text = one(spec(kind="tensor(string)", shape=(2,), path=file, member="t"))
        assert text.dtype == object
        assert text.tolist() == ["chat\u00e9", ""]
        binary = one(spec(kind="tensor(string)", shape=(2,), path=file, member="b"))
        assert binary.tolist() == ["x", "yz"]
        assert one(spec(kind="tensor(int64)", shape=(), path=file, member="n")).shape == ()

    def test_member_defaults_to_the_name_of_the_input(self, tmp_path: Path) -> None:
        file = tmp_path / "feeds.npz"
        np.savez(file, x=np.ones((2, 3), np.float32))
        assert one(spec(path=file)).sum() == 6

    @pytest.mark.parametrize(
        "array",
        [
            np.array([[1.5, -2], [0, np.inf]], np.float32),
            np.array([1.5, -2], np.float16),
            np.array([1e300], np.float64),
            np.array([[-(2**63), 2**63 - 1]], np.int64),
            np.array([-5, 7], np.int32),
            np.array([-5, 7], np.int8),
            np.array([200, 7], np.uint8),
            np.array([2**64 - 1], np.uint64),
            np.array([2**32 - 1], np.uint32),
            np.array([True, False]),
            np.array([1 + 2j], np.complex64),
            np.array(3, np.int64),
            np.zeros((0, 4), np.float32),
            np.array(["cat", "d\u00f6g"], object),
        ],
        ids=lambda array: f"{array.dtype}{list(array.shape)}",
    )
    @pytest.mark.parametrize("raw", [True, False])
    def test_tensor_proto(self, array: NDArray[Any], raw: bool, tmp_path: Path) -> None:
        from pytest_ortbench.worker.tensor_proto import read_tensor

        if raw or array.dtype == object:
            tensor = numpy_helper.from_array(array, "x")
        else:
            tensor = onnx.helper.make_tensor(
                "x",
                onnx.helper.np_dtype_to_tensor_dtype(array.dtype),
                array.shape,
                array.reshape(-1).tolist(),
            )
        read = read_tensor(saved(tmp_path, tensor))
        assert read.dtype == array.dtype
        assert read.shape == array.shape
        assert np.array_equal(read, array)

    def test_tensor_proto_as_an_input(self, tmp_path: Path) -> None:
        file = saved(tmp_path, numpy_helper.from_array(np.eye(3, dtype=np.float32), "other name"))
        assert np.array_equal(one(spec(shape=(3, 3), path=file)), np.eye(3))

    def test_sequence_proto(self, tmp_path: Path) -> None:
        parts = [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)]
        file = tmp_path / "input_0.pb"
        file.write_bytes(numpy_helper.from_list(parts, "s").SerializeToString())
        values = one(spec(kind="seq(tensor(float))", shape=(2, 3), path=file))
        assert [part.shape for part in values] == [(2, 3), (1, 3)]

    def test_wrong_shape_names_both(self, tmp_path: Path) -> None:
        file = tmp_path / "x.npy"
        np.save(file, np.zeros((2, 4), np.float32))
        with pytest.raises(WorkerError) as caught:
            one(spec(path=file))
        assert "[2, 3]" in caught.value.failure.message
        assert "[2, 4]" in caught.value.failure.message
        assert str(file) in caught.value.failure.message
        assert caught.value.failure.kind == "error"

    @pytest.mark.parametrize(
        ("sizes", "held", "told"),
        [
            ([("seq", 3, "default")], (2, 4), "--ort-dims=seq:4"),
            (
                [("n", 2, "batch"), ("seq", 3, "dims")],
                (5, 7),
                "--ort-batch-sizes=5 --ort-dims=seq:7",
            ),
            # What is fixed or computed can't be set, and a shape of other axes neither.
            ([], (2, 4), "[2, 3]"),
            ([("a+b", 3, "computed")], (2, 4), "[2, 3]"),
            ([("seq", 3, "default")], (2, 3, 1), "[2, 3]"),
        ],
    )
    def test_a_wrong_shape_tells_the_sizes_to_set(
        self, sizes: list[tuple[str, int, str]], held: tuple[int, ...], told: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "x.npy"
        np.save(file, np.zeros(held, np.float32))
        named = tuple(SymbolSize(symbol=s, size=n, origin=o, how="") for s, n, o in sizes)
        with pytest.raises(WorkerError) as caught:
            one(replace(spec(path=file), resolved=named))
        assert told in caught.value.failure.hint

    def test_a_size_of_two_axes_is_not_told_as_one_to_set(self, tmp_path: Path) -> None:
        file = tmp_path / "x.npy"
        np.save(file, np.zeros((3, 4), np.float32))
        named = (SymbolSize(symbol="seq", size=3, origin="dims", how=""),)
        with pytest.raises(WorkerError) as caught:
            one(replace(spec(shape=(3, 3), path=file), resolved=named))
        assert "--ort-dims" not in caught.value.failure.hint

    def test_wrong_type_names_both(self, tmp_path: Path) -> None:
        file = tmp_path / "x.npy"
        np.save(file, np.zeros((2, 3)))
        with pytest.raises(WorkerError, match=r"tensor\(float\).* float64"):
            one(spec(path=file))

    def test_pickles_are_not_opened(self, tmp_path: Path) -> None:
        file = tmp_path / "x.npy"
        np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        with pytest.raises(WorkerError, match="allow_pickle"):
            one(spec(path=file))

    def test_unknown_member_lists_the_known(self, tmp_path: Path) -> None:
        file = tmp_path / "feeds.npz"
        np.savez(file, a=np.zeros(1), b=np.zeros(1))
        with pytest.raises(WorkerError, match=r"'c'.* a, b"):
            one(spec(path=file, member="c"))

    @pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.pb"])
    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"text\n", None])
    def test_damaged_files(self, name: str, content: bytes | None, tmp_path: Path) -> None:
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(WorkerError) as caught:
            one(spec(path=file))
        assert str(file) in caught.value.failure.message

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: t.dims.__setitem__(0, 9), "6 values for the shape \\[9, 3\\]"),
            (lambda t: t.dims.__setitem__(0, -2), "for the shape"),
            (lambda t: setattr(t, "data_type", TensorProto.BFLOAT16), "6 values of bfloat16"),
            (lambda t: setattr(t, "data_type", 99), "type number 99"),
            (lambda t: setattr(t, "data_type", 0), "does not say the type"),
            (lambda t: setattr(t, "raw_data", t.raw_data[:-1]), "whole number of float"),
            (lambda t: t.external_data.add(key="location", value="w"), "another file"),
            (lambda t: setattr(t.segment, "begin", 1), "segment"),
        ],
    )
    def test_tensors_that_can_not_be_fed(self, change: Any, message: str, tmp_path: Path) -> None:
        tensor = numpy_helper.from_array(np.ones((2, 3), np.float32))
        change(tensor)
        with pytest.raises(WorkerError, match=message):
            one(spec(path=saved(tmp_path, tensor)))

    @given(cut=st.integers(0, 60))
    def test_a_truncated_tensor_is_never_fed(
        self, cut: int, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        whole = numpy_helper.from_array(np.ones((2, 3), np.float32), "name").SerializeToString()
        file = tmp_path_factory.mktemp("cut") / "x.pb"
        file.write_bytes(whole[: min(cut, len(whole) - 1)])
        with pytest.raises(WorkerError):
            one(spec(path=file))
