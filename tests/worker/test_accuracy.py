from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import Accuracy, OutputAccuracy, OutputCheck
from pytest_ortbench.core.precision import SQNR_FLOOR_DB
from pytest_ortbench.worker import accuracy
from pytest_ortbench.worker.accuracy import MAGNITUDES, compare, repeatability, write_reference
from pytest_ortbench.worker.agreement import difference, kind_of, worst_figures
from pytest_ortbench.worker.outputs import Leaf, check
from pytest_ortbench.worker.sample_file import Sample, SampleWriter, open_samples
from tests.worker import graphs
from tests.worker.sessions import Spoiled, cpu_session

pytestmark = pytest.mark.live

NORMAL = ValueHint(kind="normal")
Spoil = Callable[[int, list[Any]], list[Any]]


def drawn(session: Any, *, rows: int = 4, hint: ValueHint = NORMAL) -> list[InputSpec]:
    return [
        InputSpec(
            name=declared.name,
            type=declared.type,
            shape=tuple(size if isinstance(size, int) else rows for size in declared.shape),
            hint=hint,
        )
        for declared in session.get_inputs()
    ]


def reference_of(model: bytes, folder: Path, *, rows: int = 4, **how: Any) -> Path:
    session = cpu_session(model, optimise=False)
    path = folder / "reference.npz"
    specs = how.pop("specs", None) or drawn(session, rows=rows)
    write_reference(path, session=session, specs=specs, seed=0, **how)
    return path


def against_reference(model: bytes, folder: Path, spoil: Spoil, *, rows: int = 4) -> Accuracy:
    path = reference_of(model, folder, rows=rows)
    return compare(Spoiled(cpu_session(model), spoil), path)


def only(result: Accuracy) -> OutputAccuracy:
    assert result.reason == ""
    (output,) = result.outputs
    return output


class TestRightSessions:
    def test_stored_sets_are_compared_once_each(self, tmp_path: Path) -> None:
        session = cpu_session(graphs.mlp(), optimise=False)
        (spec,) = drawn(session)
        values = np.ones(spec.shape, np.float32)
        stored = tmp_path / "stored.npz"
        arrays = {
            spec.name: values,
            f"set:1:{spec.name}": -values,
            f"set:2:{spec.name}": 2 * values,
        }
        with stored.open("wb") as stream:
            np.savez(stream, **arrays)
        specs = [replace(spec, path=str(stored), member=spec.name, sets=3)]
        path = reference_of(graphs.mlp(), tmp_path, specs=specs)
        assert compare(session, path).samples == 3

    def test_same_session_is_exact(self, tmp_path: Path) -> None:
        path = reference_of(graphs.mlp(), tmp_path)
        result = compare(cpu_session(graphs.mlp(), optimise=False), path)
        output = only(result)
        assert output.exact
        assert output.finite
        assert (output.kind, output.agree, output.rows) == ("class", 32, 32)
        assert (output.max_abs, output.max_rel, output.sqnr_db) == (0.0, 0.0, None)
        assert output.cosine == pytest.approx(1.0)
        assert (result.samples, result.magnitudes) == (8, (0.1, 1.0, 10.0))
        assert result.note == ""
        assert result.reference == "CPUExecutionProvider"

    def test_optimised_session_is_far_above_the_floor(self, tmp_path: Path) -> None:
        path = reference_of(graphs.shapes(), tmp_path)
        output = only(compare(cpu_session(graphs.shapes()), path))
        assert output.finite
        assert output.sqnr_db is None or output.sqnr_db > 100

    def test_one_quantisation_step_is_not_caught(self, tmp_path: Path) -> None:
        def one_step(call: int, outputs: list[Any]) -> list[Any]:
            return [values + np.abs(values).max() / 127 for values in outputs]

        output = only(against_reference(graphs.mlp(), tmp_path, one_step))
        assert output.sqnr_db is not None
        assert output.sqnr_db > SQNR_FLOOR_DB["int8-dynamic"]
        assert output.agree == output.rows == 32
        assert output.max_rel == pytest.approx(1 / 127, rel=1e-3)
        assert output.finite
        assert not output.exact

    def test_half_precision_variant_on_single_precision_inputs(self, tmp_path: Path) -> None:
        def cast(model: bytes) -> bytes:
            """The same network in float16, inputs and outputs too."""
            loaded = graphs.onnx.load_from_string(model)
            for weight in loaded.graph.initializer:
                half = graphs.numpy_helper.to_array(weight).astype(np.float16)
                weight.CopyFrom(graphs.numpy_helper.from_array(half, weight.name))
            for declared in [*loaded.graph.input, *loaded.graph.output]:
                declared.type.tensor_type.elem_type = graphs.TensorProto.FLOAT16
            content: bytes = loaded.SerializeToString()
            return content

        path = reference_of(graphs.mlp(), tmp_path)
        output = only(compare(cpu_session(cast(graphs.mlp())), path))
        assert output.sqnr_db is not None
        assert SQNR_FLOOR_DB["fp16"] < output.sqnr_db < 90
        assert not output.exact

    def test_text_labels_and_zip_map(self, tmp_path: Path) -> None:
        path = reference_of(graphs.classifier(), tmp_path)
        result = compare(cpu_session(graphs.classifier()), path)
        label, table = result.outputs
        assert (label.name, label.kind, label.exact) == ("label", "string", True)
        assert (label.agree, label.rows) == (32, 32)
        assert (table.name, table.kind, table.exact) == ("z", "class", True)
        assert (table.agree, table.rows) == (32, 32)

    def test_sequences(self, tmp_path: Path) -> None:
        specs = [InputSpec(name="s", type="seq(tensor(float))", shape=(1, 3), hint=NORMAL)]
        path = reference_of(graphs.sequence(), tmp_path, specs=specs)
        result = compare(cpu_session(graphs.sequence()), path)
        assert [output.name for output in result.outputs] == ["o[0]", "o[1]"]
        assert all(output.exact for output in result.outputs)


class TestWrongSessions:
    def test_permuted_logits(self, tmp_path: Path) -> None:
        output = only(
            against_reference(
                graphs.mlp(), tmp_path, lambda _, outputs: [outputs[0][:, ::-1].copy()]
            )
        )
        assert output.sqnr_db is not None
        assert output.sqnr_db < SQNR_FLOOR_DB["int4"]
        assert output.rows == 32
        assert output.agree is not None
        assert output.agree < 8
        assert output.finite

    def test_nan_from_the_second_call_on(self, tmp_path: Path) -> None:
        def spoil(call: int, outputs: list[Any]) -> list[Any]:
            return outputs if call == 0 else [np.full_like(outputs[0], np.nan)]

        output = only(against_reference(graphs.mlp(), tmp_path, spoil))
        assert not output.finite
        assert output.nan_count == 7 * 4 * 10
        assert (output.agree, output.rows) == (4, 32)

    def test_infinity_in_one_value(self, tmp_path: Path) -> None:
        def spoil(call: int, outputs: list[Any]) -> list[Any]:
            outputs[0][0, 0] = -np.inf
            return outputs

        output = only(against_reference(graphs.mlp(), tmp_path, spoil))
        assert (output.finite, output.nan_count, output.inf_count) == (False, 0, 8)
        # The other values are right, and it can be seen.
        assert output.max_rel is not None
        assert output.max_rel < 1e-5

    def test_zeros(self, tmp_path: Path) -> None:
        output = only(
            against_reference(
                graphs.mlp(), tmp_path, lambda _, outputs: [np.zeros_like(outputs[0])]
            )
        )
        assert (output.sqnr_db, output.cosine, output.max_rel) == (0.0, 0.0, 1.0)
        assert output.finite

    def test_wrong_at_one_magnitude_only(self, tmp_path: Path) -> None:
        def saturate(call: int, outputs: list[Any]) -> list[Any]:
            return [np.clip(outputs[0], -1, 1)]

        def harmless(call: int, outputs: list[Any]) -> list[Any]:
            return [np.clip(outputs[0], -1000, 1000)]

        output = only(against_reference(graphs.mlp(), tmp_path, saturate))
        assert output.sqnr_db is not None
        assert output.sqnr_db < 15
        output = only(against_reference(graphs.mlp(), tmp_path, harmless))
        assert output.sqnr_db is None or output.sqnr_db > 100

    def test_other_shape_counts_like_zeros(self, tmp_path: Path) -> None:
        result = against_reference(graphs.mlp(), tmp_path, lambda _, outputs: [outputs[0][:2]])
        output = only(result)
        assert (output.sqnr_db, output.agree, output.rows) == (0.0, 0, 32)
        for part in ("'logits'", "[2, 10]", "[4, 10]", "(8 of 8 samples)"):
            assert part in result.note

    def test_wrong_text_and_other_keys(self, tmp_path: Path) -> None:
        def spoil(call: int, outputs: list[Any]) -> list[Any]:
            renamed = [{key.upper(): value for key, value in row.items()} for row in outputs[1]]
            return [np.where(outputs[0] == "a", "b", outputs[0]), renamed]

        result = against_reference(graphs.classifier(), tmp_path, spoil)
        label, table = result.outputs
        assert label.agree is not None
        assert label.rows == 32
        assert label.agree < 32
        assert (table.agree, table.sqnr_db) == (0, 0.0)
        assert "'z' has keys ('A', 'B', 'C')" in result.note

    def test_sequence_that_came_out_longer(self, tmp_path: Path) -> None:
        specs = [InputSpec(name="s", type="seq(tensor(float))", shape=(1, 3), hint=NORMAL)]
        path = reference_of(graphs.sequence(), tmp_path, specs=specs)
        longer = Spoiled(
            cpu_session(graphs.sequence()), lambda _, outputs: [outputs[0] + outputs[0][:1]]
        )
        result = compare(longer, path)
        assert [output.exact for output in result.outputs] == [True, True, False]
        assert result.outputs[2].agree == 0
        assert "'o[2]' " in result.note

    def test_a_run_that_fails_is_a_reason(self, tmp_path: Path) -> None:
        def fail(call: int, outputs: list[Any]) -> list[Any]:
            if call == 1:
                raise RuntimeError("device lost\nmore")
            return outputs

        result = against_reference(graphs.mlp(), tmp_path, fail)
        assert result.reason.endswith(" 0.1 failed: device lost")
        assert result.outputs == ()
        assert result.samples == 0


class TestSamples:
    def test_first_sample_is_the_measured_feed(self, tmp_path: Path) -> None:
        session = cpu_session(graphs.mlp())
        specs = drawn(session)
        samples = list(open_samples(reference_of(graphs.mlp(), tmp_path)).samples())
        measured = accuracy.make_feeds(specs, seed=0)
        assert np.array_equal(samples[0].feeds["x"], measured["x"])  # type: ignore[arg-type]
        assert [sample.magnitude for sample in samples] == [1, 0.1, 10, 1, 0.1, 10, 1, 0.1]
        assert len({np.asarray(sample.feeds["x"]).tobytes() for sample in samples}) == 8

    def test_nothing_drawn_is_one_sample(self, tmp_path: Path) -> None:
        session = cpu_session(graphs.mlp())
        specs = drawn(session, hint=ValueHint(kind="ones"))
        result = compare(session, reference_of(graphs.mlp(), tmp_path, specs=specs))
        assert (result.samples, result.magnitudes) == (1, (1.0,))

    def test_bounded_inputs_have_one_magnitude(self, tmp_path: Path) -> None:
        session = cpu_session(graphs.mlp())
        specs = drawn(session, hint=ValueHint(kind="uniform"))
        result = compare(session, reference_of(graphs.mlp(), tmp_path, specs=specs))
        assert (result.samples, result.magnitudes) == (8, (1.0,))

    def test_large_outputs_get_fewer_samples(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(accuracy, "_MAX_BYTES", 2000)
        # 4 x 32 and 4 x 10 floats are 672 bytes a sample.
        assert len(open_samples(reference_of(graphs.mlp(), tmp_path))) == 2

    def test_slow_models_get_one_sample_a_magnitude(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(accuracy, "_MAX_SECONDS", -1.0)
        assert len(open_samples(reference_of(graphs.mlp(), tmp_path))) == 3

    def test_reference_that_overflows_at_a_magnitude(self, tmp_path: Path) -> None:
        path = reference_of(graphs.overflowing(), tmp_path)
        result = compare(cpu_session(graphs.overflowing()), path)
        output = only(result)
        assert output.finite
        assert output.max_rel == 0.0
        assert " 2 of 8 samples (magnitude 10)" in result.note

    def test_reference_that_is_never_finite_is_compared_where_it_is(self) -> None:
        right = Leaf(label="logits", values=np.array([[1.0, -np.inf, 3.0]], np.float32))
        wrong = Leaf(label="logits", values=np.array([[1.0, -np.inf, 3.5]], np.float32))
        same = worst_figures("logits", "class", [difference("class", right, right)])
        other = worst_figures("logits", "class", [difference("class", right, wrong)])
        assert (same.finite, same.max_abs, same.exact) == (False, 0.0, False)
        assert (other.finite, other.max_abs, other.agree) == (False, 0.5, 1)
        assert not same.adds_nonfinite
        assert not other.adds_nonfinite

    def test_reference_that_fails_at_another_magnitude(self, tmp_path: Path) -> None:
        def fail(call: int, outputs: list[Any]) -> list[Any]:
            if call == 2:
                raise RuntimeError("overflow")
            return outputs

        session = cpu_session(graphs.mlp())
        path = tmp_path / "r.npz"
        write_reference(path, session=Spoiled(session, fail), specs=drawn(session), seed=0)
        result = compare(session, path)
        assert result.samples == 7
        assert result.note.endswith(" 10: overflow")
        assert result.reference == "SpoilingExecutionProvider"

    def test_reference_that_fails_at_once_leaves_no_file(self, tmp_path: Path) -> None:
        def fail(call: int, outputs: list[Any]) -> list[Any]:
            raise RuntimeError("no")

        session = cpu_session(graphs.mlp())
        with pytest.raises(RuntimeError, match="no"):
            write_reference(
                tmp_path / "r.npz", session=Spoiled(session, fail), specs=drawn(session), seed=0
            )
        assert list(tmp_path.iterdir()) == []

    def test_the_label_of_the_reference(self, tmp_path: Path) -> None:
        path = reference_of(graphs.mlp(), tmp_path, label="fp32, cpu")
        assert compare(cpu_session(graphs.mlp()), path).reference == "fp32, cpu"

    def test_own_way_to_run(self, tmp_path: Path) -> None:
        session = cpu_session(graphs.mlp())
        seen: list[object] = []

        def run(feeds: Any) -> Sequence[object]:
            seen.append(feeds)
            outputs: Sequence[object] = session.run(None, feeds)
            return outputs

        path = reference_of(graphs.mlp(), tmp_path)
        # With magnitudes that are named no set is run again, however long it took.
        assert only(compare(session, path, run=run, magnitudes=MAGNITUDES)).finite
        assert len(seen) == 8


class TestOtherInterfaces:
    def test_renamed_outputs_are_compared_in_order(self, tmp_path: Path) -> None:
        path = reference_of(graphs.mlp(), tmp_path)
        renamed = graphs.onnx.load_from_string(graphs.mlp())
        renamed.graph.output[0].name = renamed.graph.node[-1].output[0] = "y"
        result = compare(cpu_session(renamed.SerializeToString()), path)
        assert only(result).finite
        assert "order" in result.note

    def test_other_number_of_outputs_is_a_reason(self, tmp_path: Path) -> None:
        path = reference_of(graphs.labels(), tmp_path)
        result = compare(cpu_session(graphs.mlp()), path)
        assert ": logits, but y, p " in result.reason

    def test_input_without_a_value_is_a_reason(self, tmp_path: Path) -> None:
        path = reference_of(graphs.half(), tmp_path)
        session = cpu_session(graphs.loop_and_branch())
        result = compare(session, path)
        assert result.reason.endswith(" 'c'")

    @pytest.mark.parametrize("content", [b"", b"text", b"PK\x05\x06" + 18 * b"\0"])
    def test_damaged_file(self, content: bytes, tmp_path: Path) -> None:
        path = tmp_path / "r.npz"
        path.write_bytes(content)
        with pytest.raises(WorkerError, match="can't be read"):
            compare(cpu_session(graphs.mlp()), path)

    def test_every_kind_of_value_survives_the_file(self, tmp_path: Path) -> None:
        values: list[object] = [
            np.array(3.5, np.float16),
            np.array([["d\u00f6g", ""], ["\x00nul\x00", "x"]], object),
            np.array([], object),
            np.zeros((0, 3), np.float32),
            [{"a": 0.5, "b": 0.25}, {"a": 1.0, "b": 0.0}],
            [{1: 0.5}, {2: 0.5}],
            [{1: 7}],
            {"a": "text", "b": 2},
            [np.arange(3), [np.arange(2)]],
            [],
            None,
            "text",
            2.5,
        ]
        with SampleWriter(tmp_path / "s.npz", "ref", ("y",), note="n") as writer:
            writer.add(Sample(magnitude=0.1, feeds={"x/y": values[0]}, outputs=values))
        stored = open_samples(tmp_path / "s.npz")
        (sample,) = stored.samples()
        assert (stored.reference, stored.names, stored.note) == ("ref", ("y",), "n")
        assert sample.magnitude == 0.1
        assert sample.feeds["x/y"] == np.float16(3.5)
        assert [path.name for path in tmp_path.iterdir()] == ["s.npz"]
        for wrote, read in zip(values, sample.outputs, strict=True):
            assert repr(read) == repr(wrote)
        # An unpickled file can be opened by anybody.
        with np.load(tmp_path / "s.npz", allow_pickle=False) as archive:
            assert all(name == "meta.json" or archive[name] is not None for name in archive)


class TestKinds:
    @pytest.mark.parametrize(
        ("name", "values", "kind"),
        [
            ("y", np.ones((2, 10), np.float32) * 3, "class"),
            ("y", np.ones((2, 1), np.float32), "float"),
            ("y", np.ones(10, np.float32), "float"),
            ("boxes", np.ones((9, 4), np.float32), "float"),
            ("sentence_embedding", np.ones((2, 384), np.float32), "float"),
            ("logits", np.ones((2, 8, 200_000), np.float16), "class"),
            ("last_hidden_state", np.ones((2, 8, 768), np.float32), "float"),
            ("y", np.ones((2, 8, 16), np.float32), "float"),
            ("y", np.full((2, 8, 16), 1 / 16, np.float32), "class"),
            ("y", np.full((2, 8, 16), -1 / 16, np.float32), "float"),
            ("y", np.zeros((0, 10), np.float32), "float"),
            ("y", np.zeros((2, 10), np.int8), "integer"),
            ("y", np.zeros((2, 10), bool), "integer"),
            ("y", np.array([["a"]], object), "string"),
        ],
    )
    def test_kind_of(self, name: str, values: NDArray[Any], kind: str) -> None:
        assert kind_of(Leaf(label=name, values=values)) == kind

    def test_integers_are_compared_by_value(self) -> None:
        right = Leaf(label="y", values=np.array([1, 2, 3, 4]))
        wrong = Leaf(label="y", values=np.array([1, 2, 3, 9], np.int32))
        found = worst_figures("y", "integer", [difference("integer", right, wrong)])
        assert (found.agree, found.rows, found.max_abs, found.exact) == (3, 4, 5.0, False)

    def test_float_where_integers_were_expected(self) -> None:
        right = Leaf(label="y", values=np.array([1, 2]))
        wrong = Leaf(label="y", values=np.array([1.0, 2.0]))
        found = difference("integer", right, wrong)
        assert found.mismatch == "has type float64 where the reference has int64"
        assert (found.agree, found.rows) == (0, 2)

    def test_a_tie_of_the_reference_may_go_either_way(self) -> None:
        right = Leaf(label="y", values=np.array([[0.5, 0.5, 0.1], [0.1, 0.2, 0.3]]))
        found = Leaf(label="y", values=np.array([[0.4, 0.5, 0.1], [0.3, 0.2, 0.1]]))
        assert difference("class", right, found).agree == 1


class TestFigures:
    def test_outputs_of_another_shape_keep_how_they_differ(self) -> None:
        right = Leaf(label="y", values=np.ones((1, 8), dtype=np.float32))
        found = Leaf(label="y", values=np.ones((1, 7), dtype=np.float32))
        samples = [difference("float", right, got) for got in (right, found)]
        result = worst_figures("y", "float", samples)
        assert result.mismatch == samples[1].mismatch != ""
        assert result.sqnr_db == 0
        assert worst_figures("y", "float", samples[:1]).mismatch == ""

    def test_known_values(self) -> None:
        right = Leaf(label="y", values=np.array([3.0, 4.0]))
        found = Leaf(label="y", values=np.array([3.0, 4.5]))
        result = worst_figures("y", "float", [difference("float", right, found)])
        assert result.max_abs == 0.5
        assert result.max_rel == 0.125
        # 20·log10(5 ÷ 0.5)
        assert result.sqnr_db == pytest.approx(20.0)
        assert result.cosine == pytest.approx((9 + 18) / (5 * math.hypot(3, 4.5)))

    def test_the_worst_sample_counts(self) -> None:
        right = Leaf(label="y", values=np.array([1.0, 1.0]))
        samples = [
            difference("float", right, Leaf(label="y", values=right.values * factor))
            for factor in (1.0, 1.1, 1.01)
        ]
        assert worst_figures("y", "float", samples).sqnr_db == pytest.approx(20.0)

    def test_a_sample_of_zeros_is_judged_by_the_others(self) -> None:
        ones, zeros = np.ones(4), np.zeros(4)
        samples = [
            difference("float", Leaf(label="y", values=right), Leaf(label="y", values=found))
            for right, found in ((ones, ones), (zeros, zeros + 0.01))
        ]
        assert worst_figures("y", "float", samples).sqnr_db == pytest.approx(40.0)
        alone = worst_figures("y", "float", samples[1:])
        assert (alone.sqnr_db, alone.cosine, alone.max_abs) == (0.0, None, 0.01)

    @pytest.mark.parametrize("scale", [1e200, 1e-200])
    def test_squares_of_doubles_neither_overflow_nor_vanish(self, scale: float) -> None:
        right = Leaf(label="y", values=np.array([3.0, 4.0]) * scale)
        found = Leaf(label="y", values=np.array([3.0, 4.5]) * scale)
        result = worst_figures("y", "float", [difference("float", right, found)])
        assert result.sqnr_db == pytest.approx(20.0)
        assert result.max_abs == pytest.approx(0.5 * scale)
        assert result.cosine == pytest.approx(27 / (5 * math.hypot(3, 4.5)))

    def test_noise_beyond_the_range_of_doubles(self) -> None:
        right = Leaf(label="y", values=np.array([3.0, 4.0]))
        found = Leaf(label="y", values=np.array([3.0, 1e300]))
        result = worst_figures("y", "float", [difference("float", right, found)])
        assert (result.sqnr_db, result.max_abs, result.finite) == (-200.0, 1e300, True)

    def test_complex_values(self) -> None:
        right = Leaf(label="y", values=np.array([3 + 4j]))
        found = Leaf(label="y", values=np.array([3 + 4.5j]))
        assert worst_figures("y", "float", [difference("float", right, found)]).max_abs == 0.5

    @settings(max_examples=60)
    @given(
        right=st.lists(st.floats(), min_size=1, max_size=20),
        found=st.lists(st.floats(), min_size=20, max_size=20),
        width=st.sampled_from(["float16", "float32", "float64"]),
    )
    def test_no_figure_is_ever_nan_or_infinite(
        self, right: list[float], found: list[float], width: str
    ) -> None:
        with np.errstate(over="ignore", under="ignore"):
            expected = np.array([right]).astype(width)
            got = np.array([found[: len(right)]]).astype(width)
        kind = kind_of(Leaf(label="y", values=expected))
        result = worst_figures(
            "y",
            kind,
            [difference(kind, Leaf(label="y", values=expected), Leaf(label="y", values=got))],
        )
        for figure in (result.max_abs, result.max_rel, result.cosine, result.sqnr_db):
            assert figure is None or math.isfinite(figure)
        assert result.cosine is None or -1 <= result.cosine <= 1
        new = ~np.isfinite(got) & ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
        assert result.nan_count + result.inf_count == new.sum()
        assert result.adds_nonfinite is bool(new.any())
        assert result.finite is bool(np.isfinite(got).all() and np.isfinite(expected).all())
        assert result.finite or not result.exact

    @settings(max_examples=40)
    @given(values=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
    def test_an_output_agrees_with_itself(self, values: list[float]) -> None:
        leaf = Leaf(label="y", values=np.array([values], np.float32))
        result = worst_figures("y", kind_of(leaf), [difference(kind_of(leaf), leaf, leaf)])
        assert result.exact is result.finite is bool(np.isfinite(values).all())
        assert not result.adds_nonfinite
        assert result.sqnr_db is None
        assert result.agree == result.rows


class TestRepeatability:
    def looked(self, *values: float, run: str = "first") -> OutputCheck:
        return check(run, [np.array(values, np.float32)])

    def test_equal_runs(self) -> None:
        assert repeatability([self.looked(1, 2), self.looked(1, 2, run="last")]) == (True, "")

    def test_other_bits_of_equal_norm(self) -> None:
        repeats, note = repeatability([self.looked(1, 2), self.looked(1, 2.00001, run="last")])
        assert repeats is True
        assert "bits" in note

    @pytest.mark.parametrize(
        ("second", "message"),
        [
            ([float("nan"), 2.0], "1 NaN or infinite values in the middle run, but 0 in the first"),
            ([0.0, 0.0], "their norm by 1"),
            ([1.0, 2.1], "their norm by 0.0"),
        ],
    )
    def test_runs_that_differ(self, second: list[float], message: str) -> None:
        repeats, note = repeatability([self.looked(1, 2), self.looked(*second, run="middle")])
        assert repeats is False
        assert message in note

    def test_text_that_differs(self) -> None:
        checks = [check(run, [np.array([run], object)]) for run in ("first", "last")]
        assert repeatability(checks) == (
            False,
            "outputs of the last run differ from those of the first run",
        )

    def test_equal_but_not_finite(self) -> None:
        repeats, note = repeatability([self.looked(float("nan"))] * 2)
        assert (repeats, note.split()[:2]) == (False, ["1", "NaN"])

    def test_too_few(self) -> None:
        assert repeatability([self.looked(1)])[0] is None
        assert repeatability([])[0] is None


def spoilt_weights(kind: str, value: float, *, opset: int = 13) -> bytes:
    """A product in any float type whose first column is ``value``, for the reference as well."""
    types = {"float16": graphs.TensorProto.FLOAT16, "float64": graphs.TensorProto.DOUBLE}
    w = graphs.weights(16, 3, dtype=kind)
    w[0, 0] = value
    cast = graphs.helper.make_node(
        "Cast", ["x"], ["c"], to=types.get(kind, graphs.TensorProto.FLOAT)
    )
    product = graphs.helper.make_node("MatMul", ["c", "w"], ["y"])
    return graphs.serialised(
        [cast, product],
        [graphs.value("x", graphs.TensorProto.FLOAT, ["N", 16])],
        [graphs.value("y", types.get(kind, graphs.TensorProto.FLOAT), ["N", 3])],
        {"w": w},
        opset=opset,
    )


class TestNotFinite:
    """NaN and infinity are counted whatever the reference gives."""

    @pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_both_sides_give(self, tmp_path: Path, kind: str, value: float) -> None:
        model = spoilt_weights(kind, value)
        path = reference_of(model, tmp_path)
        output = only(compare(cpu_session(model), path))
        # Four rows in each of the three sets at the measured magnitude.
        assert output.nonfinite == output.reference_nonfinite == 12
        assert output.compared == 8 * 8
        assert (output.finite, output.exact, output.adds_nonfinite) == (False, False, False)

    def test_every_value(self, tmp_path: Path) -> None:
        def nothing(_: int, outputs: list[Any]) -> list[Any]:
            return [np.full_like(values, np.nan) for values in outputs]

        session = Spoiled(cpu_session(graphs.mlp(), optimise=False), nothing)
        path = tmp_path / "reference.npz"
        write_reference(path, session=session, specs=drawn(session), seed=0)
        output = only(compare(Spoiled(cpu_session(graphs.mlp()), nothing), path))
        assert output.compared == 0
        assert output.nonfinite == output.reference_nonfinite > 0
        assert (output.finite, output.exact, output.sqnr_db) == (False, False, None)

    def test_one_set_of_several(self, tmp_path: Path) -> None:
        def later(call: int, outputs: list[Any]) -> list[Any]:
            return [values * np.nan for values in outputs] if call == 3 else outputs

        # Magnitudes take turns: the sets 0, 3 and 6 are those of the measured one.
        output = only(against_reference(graphs.mlp(), tmp_path, later))
        assert output.nonfinite > 0
        assert output.reference_nonfinite == 0
        assert output.nan_count == output.nonfinite

    def test_another_magnitude_is_told_apart(self, tmp_path: Path) -> None:
        def overflow(call: int, outputs: list[Any]) -> list[Any]:
            return [values * np.inf for values in outputs] if call % 3 == 2 else outputs

        session = cpu_session(graphs.mlp(), optimise=False)
        path = tmp_path / "reference.npz"
        write_reference(path, session=Spoiled(session, overflow), specs=drawn(session), seed=0)
        result = compare(Spoiled(cpu_session(graphs.mlp()), overflow), path)
        output = only(result)
        assert (output.nonfinite, output.reference_nonfinite, output.finite) == (0, 0, True)
        assert " 2 of 8 samples" in result.note

    def test_one_of_several_outputs(self, tmp_path: Path) -> None:
        def second(_: int, outputs: list[Any]) -> list[Any]:
            label, table = outputs
            return [label, [dict.fromkeys(row, math.nan) for row in table]]

        result = against_reference(graphs.classifier(), tmp_path, second)
        label, table = result.outputs
        assert (label.nonfinite, label.exact) == (0, True)
        assert table.nonfinite > 0

    def test_whole_values_are_counted(self, tmp_path: Path) -> None:
        path = reference_of(graphs.classifier(), tmp_path)
        label = compare(cpu_session(graphs.classifier()), path).outputs[0]
        assert (label.compared, label.nonfinite) == (32, 0)
