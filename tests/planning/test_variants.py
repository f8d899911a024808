"""Which file stands for a model at a precision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.model import Model, TensorInfo, ValueHint, Variant
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import BASES, GRAPH_BASES, Recipe
from pytest_ortbench.planning.families import Family, Member, families, variant_names
from pytest_ortbench.planning.real_inputs import stored_sets
from pytest_ortbench.planning.recipes import shipped_recipe
from pytest_ortbench.planning.variants import (
    OwnVariant,
    PlannedVariant,
    fed_to,
    own_variant,
    variant_of,
)

RECIPES = {base: shipped_recipe(base) for base in BASES}
SPEC = InputSpec(name="x", type="tensor(float)", shape=(1, 4), hint=ValueHint(kind="normal"))


def model(kind: str = "float", *, ops: dict[str, int] | None = None, count: int = 64) -> Model:
    element = "float16" if kind == "float16" else "float"
    info = TensorInfo(name="x", type=f"tensor({element})", shape=("N", 4))
    return Model(
        name="m",
        path="/models/m.onnx",
        source="file",
        digest="d" * 64,
        size_bytes=1000,
        inputs=(info,),
        outputs=(replace(info, name="y"),),
        op_types=ops or {"MatMul": 1},
        weight_types={kind: count} if kind else {},
        weights_as_inputs=1,
    )


def plan(of: Model, precision: str, **changed: object) -> PlannedVariant:
    return variant_of(of, precision, RECIPES, drawn_for=(SPEC,), **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("of", "precision"),
    [
        (model(), "native"),
        (model(), "fp32"),
        (model("float16"), "native"),
        (model("float16"), "fp16"),
        (model("bfloat16"), "bf16"),
        (model("int8", ops={"QuantizeLinear": 2, "DequantizeLinear": 3}), "native"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_has_the_precision_is_measured_as_it_is(of: Model, precision: str) -> None:
    found = plan(of, precision)
    assert (found.conversion, found.refusal) == (None, None)
    assert found.variant == Variant(
        precision=precision, path="/models/m.onnx", digest="d" * 64, size_bytes=1000
    )


@pytest.mark.parametrize("precision", [base for base in BASES if base != "fp32"])
def test_other_precisions_are_made_of_it(precision: str) -> None:
    found = plan(model(), precision)
    assert found.refusal is None
    assert found.conversion is not None
    assert (found.conversion.source, found.conversion.own_precision) == ("/models/m.onnx", "fp32")
    # Nothing is claimed of a file that does not exist yet.
    assert (found.variant.path, found.variant.digest, found.variant.size_bytes) == ("", "", 0)
    assert found.variant.recipe == RECIPES[precision].settings()


def test_float32_of_a_float16_file_has_to_be_made() -> None:
    found = plan(model("float16"), "fp32")
    assert found.conversion is not None
    assert found.conversion.own_precision == "fp16"


@pytest.mark.parametrize("precision", [base for base in BASES if base not in GRAPH_BASES])
def test_nothing_is_made_of_a_quantised_file(precision: str) -> None:
    found = plan(model("int8", ops={"QuantizeLinear": 2, "DequantizeLinear": 3}), precision)
    assert found.refusal is not None
    assert (found.refusal.kind, found.refusal.phase) == ("unsupported", "convert")
    assert "(2 QuantizeLinear, 3 DequantizeLinear)" in found.refusal.message


@pytest.mark.parametrize("precision", GRAPH_BASES)
def test_its_graph_may_still_be_changed(precision: str) -> None:
    found = plan(model("int8", ops={"QuantizeLinear": 2, "DequantizeLinear": 3}), precision)
    assert found.refusal is None
    assert found.conversion is not None
    assert found.conversion.recipe.base == precision


def test_weights_that_are_no_inputs_are_not_cleaned() -> None:
    found = plan(replace(model(), weights_as_inputs=0), "cleaned")
    assert found.refusal is not None
    assert (found.refusal.kind, found.refusal.phase) == ("unsupported", "convert")


def test_fp32_of_an_fp32_file_that_is_to_be_simplified_is_simplified_only() -> None:
    slim = {"slim": Recipe(name="slim", base="fp32", simplify=True)}
    found = variant_of(model("float"), "slim", slim, drawn_for=())
    assert found.conversion is not None
    assert found.conversion.recipe.base == "simplified"
    assert found.variant.recipe["base"] == "simplified"


def test_a_model_without_float_tensors_is_not_quantised() -> None:
    trees = model("", ops={"ai.onnx.ml::TreeEnsembleClassifier": 1})
    found = plan(trees, "int8-dynamic")
    assert found.refusal is not None
    assert "float tensors" in found.refusal.message
    # Half precision changes activations too: only the converter can tell.
    assert plan(trees, "fp16").refusal is None


class TestCalibration:
    def sets(self, folder: Path, count: int) -> Path:
        folder.mkdir()
        for number in range(count):
            np.savez(folder / f"{number}.npz", x=np.zeros((1, 4), np.float32))
        return folder

    def test_every_archive_of_a_folder_is_a_set(self, tmp_path: Path) -> None:
        found = stored_sets(model(), self.sets(tmp_path / "sets", 3))
        assert [specs[0].path for specs in found] == [
            str(tmp_path / "sets" / f"{number}.npz") for number in range(3)
        ]
        assert {(specs[0].member, specs[0].shape) for specs in found} == {("x", (1, 4))}

    def test_one_archive_is_one_set(self, tmp_path: Path) -> None:
        assert len(stored_sets(model(), self.sets(tmp_path / "sets", 1) / "0.npz")) == 1

    def test_folders_inside_are_a_set_each(self, tmp_path: Path) -> None:
        for number in range(2):
            (tmp_path / f"set{number}").mkdir()
            np.save(tmp_path / f"set{number}" / "x.npy", np.zeros((1, 4), np.float32))
        assert len(stored_sets(model(), tmp_path)) == 2

    def test_an_empty_folder_holds_none(self, tmp_path: Path) -> None:
        assert stored_sets(model(), tmp_path) == ()

    def test_data_of_the_recipe_goes_before_real_inputs(self, tmp_path: Path) -> None:
        mine, real = self.sets(tmp_path / "mine", 2), self.sets(tmp_path / "real", 1)
        recipe = replace(RECIPES["int8-static"], calibration_data=str(mine))
        found = variant_of(
            model(), "int8-static", {"int8-static": recipe}, drawn_for=(SPEC,), inputs=real
        )
        assert found.conversion is not None
        assert len(found.conversion.calibration) == 2

    def test_real_inputs_calibrate(self, tmp_path: Path) -> None:
        found = plan(model(), "int8-static", inputs=self.sets(tmp_path / "real", 1) / "0.npz")
        assert found.conversion is not None
        assert len(found.conversion.calibration) == 1

    def test_accuracy_on_the_calibration_inputs_is_known(self, tmp_path: Path) -> None:
        real = self.sets(tmp_path / "real", 2)
        other = self.sets(tmp_path / "other", 1)

        def is_same(data: Path | None, inputs: Path | None) -> bool:
            recipe = replace(RECIPES["int8-static"], calibration_data=str(data or ""))
            return variant_of(
                model(), "int8-static", {"int8-static": recipe}, drawn_for=(SPEC,), inputs=inputs
            ).variant.on_calibration

        assert is_same(None, real / "0.npz")
        assert is_same(real, real / "0.npz")
        assert not is_same(other, real / "0.npz")
        assert not is_same(real, None)
        assert not is_same(None, None)
        assert not plan(model(), "int8-dynamic", inputs=real / "0.npz").variant.on_calibration

    def test_data_that_does_not_fit_is_unsupported_with_the_reason(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", z=np.zeros((1, 4), np.float32))
        recipe = replace(RECIPES["int8-static"], calibration_data=str(tmp_path))
        found = variant_of(model(), "int8-static", {"int8-static": recipe}, drawn_for=(SPEC,))
        assert found.refusal is not None
        assert found.refusal.kind == "unsupported"
        place, _, message = found.refusal.message.partition(": ")
        assert place.startswith("[tool.ortbench.precisions.int8-static] calibration_data ")
        for value in (repr(str(tmp_path / "a.npz")), "'z'", "'m'"):
            assert value in message
        assert "--ort-inputs" not in f"{found.refusal.message} {found.refusal.hint}"


class TestOwn:
    def test_a_file_of_the_user_s_says_what_it_holds(self) -> None:
        quantised = model("int8", ops={"QuantizeLinear": 2})
        found = own_variant(OwnVariant(name="qat", model=quantised, sqnr_floor_db=20), model())
        assert found.variant.recipe == {"file": "m.onnx", "holds": "int8", "sqnr_floor_db": "20"}
        assert (found.variant.precision, found.variant.digest) == ("qat", "d" * 64)
        assert found.conversion is None

    def test_one_that_can_t_be_read_is_a_failed_row(self) -> None:
        missing = OwnVariant(name="qat", model=None, error="no such file")
        found = own_variant(missing, model())
        assert found.refusal is not None
        assert (found.refusal.kind, found.refusal.message) == ("error", missing.error)

    def test_it_is_fed_the_same_values_in_its_own_type(self) -> None:
        planned = own_variant(OwnVariant(name="half", model=model("float16")), model())
        (fed,) = fed_to(planned, (SPEC,), RECIPES)  # type: ignore[misc]
        assert fed == replace(SPEC, type="tensor(float16)")

    def test_one_with_another_input_is_refused(self) -> None:
        other = replace(model(), inputs=(TensorInfo(name="image", type="tensor(float)", shape=()),))
        found = fed_to(own_variant(OwnVariant(name="v", model=other), model()), (SPEC,), RECIPES)
        assert isinstance(found, Failure)
        for value in (f"{Path(other.path).name}", "'v'", "'image'", "'x'"):
            assert value in found.message


@pytest.mark.parametrize(
    ("base", "keep", "kind"),
    [
        ("fp16", True, "tensor(float)"),
        ("fp16", False, "tensor(float16)"),
        ("bf16", False, "tensor(bfloat16)"),
    ],
)
def test_inputs_follow_the_types_of_a_made_variant(base: str, keep: bool, kind: str) -> None:
    recipes = {base: replace(RECIPES[base], keep_io_types=keep)}
    planned = variant_of(model(), base, recipes, drawn_for=(SPEC,))
    (fed,) = fed_to(planned, (SPEC,), recipes)  # type: ignore[misc]
    assert fed.type == kind


class TestFamilies:
    def configure(self, folder: Path, text: str) -> Path:
        (folder / "pyproject.toml").write_text(text, encoding="utf-8")
        return folder

    def test_files_are_relative_to_the_configuration(self, tmp_path: Path) -> None:
        root = self.configure(
            tmp_path,
            """
            [tool.ortbench.models.net]
            reference = "fp32.onnx"
            variants.qat = "qat.onnx"
            variants.pruned = { file = "builtin:mlp", sqnr_floor = 12 }
            """,
        )
        place = f"{root / 'pyproject.toml'} [tool.ortbench.models.net]"
        assert families(root) == {
            "net": Family(
                name="net",
                place=place,
                file=str(root / "fp32.onnx"),
                variants={
                    "qat": Member(spec=str(root / "qat.onnx")),
                    "pruned": Member(spec="builtin:mlp", sqnr_floor_db=12.0),
                },
            )
        }
        assert variant_names(root) == ("qat", "pruned")

    def test_a_file_may_have_another_one_as_its_reference(self, tmp_path: Path) -> None:
        root = self.configure(
            tmp_path, '[tool.ortbench.models.net]\nfile = "a.onnx"\nreference = "b.onnx"\n'
        )
        found = families(root)["net"]
        assert (found.file, found.reference) == (str(root / "a.onnx"), str(root / "b.onnx"))

    def test_an_entry_of_the_catalogue_has_its_own_too(self, tmp_path: Path) -> None:
        catalogue = tmp_path / "models" / "catalogue.toml"
        catalogue.parent.mkdir()
        catalogue.write_text(
            """
            [net]
            file = "net.onnx"
            reference = "fp32.onnx"
            variants.qat = "qat.onnx"
            variants.pruned = { file = "../pruned.onnx", sqnr_floor = 12 }
            [tagger]
            builder = "lstm_tagger"
            variants.mine = "builtin:mlp"
            [alone]
            file = "alone.onnx"
            [itself]
            file = "itself.onnx"
            reference = "itself.onnx"
            """
        )
        folder = catalogue.parent
        assert families(tmp_path) == {
            "net": Family(
                name="net",
                place=f"{catalogue} [net]",
                file=str(folder / "net.onnx"),
                reference=str(folder / "fp32.onnx"),
                variants={
                    "qat": Member(spec=str(folder / "qat.onnx")),
                    "pruned": Member(spec=str(folder / "../pruned.onnx"), sqnr_floor_db=12.0),
                },
                listed=True,
            ),
            "tagger": Family(
                name="tagger",
                place=f"{catalogue} [tagger]",
                file="project:tagger",
                variants={"mine": Member(spec="builtin:mlp")},
                listed=True,
            ),
            "itself": Family(
                name="itself",
                place=f"{catalogue} [itself]",
                file=str(folder / "itself.onnx"),
                listed=True,
            ),
        }
        assert variant_names(tmp_path) == ("qat", "pruned", "mine")
        # What pyproject.toml says of the same name goes before it.
        root = self.configure(tmp_path, '[tool.ortbench.models.net]\nfile = "other.onnx"\n')
        assert families(root)["net"].file == str(root / "other.onnx")

    @pytest.mark.parametrize(
        ("variants", "says"),
        [
            ('variants.fp16 = "b.onnx"', "'fp16' is already the name"),
            ("variants.q = { file = 3 }", "file is 3"),
            ("variants.q = { sqnr_floor = 3 }", "the key 'file' is missing"),
            ('variants.q = { file = "b", floor = 3 }', "the key 'floor' is not known"),
            ("variants.q = 3", "variants.q is 3"),
            ('variants = ["b.onnx"]', "variants is ['b.onnx'], not a table"),
        ],
    )
    def test_an_entry_that_breaks_a_rule(self, tmp_path: Path, variants: str, says: str) -> None:
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "catalogue.toml").write_text(
            f'[net]\nfile = "net.onnx"\n{variants}\n'
        )
        with pytest.raises(UsageError) as caught:
            families(tmp_path)
        assert says in str(caught.value)
        assert "catalogue.toml [net]" in str(caught.value)

    @pytest.mark.parametrize("entry", ['["qat.onnx"]', "3", "{ sqnr_floor = 20 }"])
    def test_a_variant_without_a_file_is_told_to_have_one(self, tmp_path: Path, entry: str) -> None:
        root = self.configure(
            tmp_path, f'[tool.ortbench.models.net]\nfile = "a.onnx"\nvariants.qat = {entry}\n'
        )
        with pytest.raises(UsageError) as caught:
            families(root)
        assert '"qat.onnx"' in caught.value.hint
        assert "{" not in caught.value.hint

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("[tool.ortbench.models]\nx = 1", "not a table. Write the entry as a table, e.g. {"),
            ("[tool.ortbench.models.x]", "the key 'file' is missing"),
            (
                '[tool.ortbench.models.x]\nfle = "a"',
                "the key 'fle' is not known. Did you mean 'file'?",
            ),
            ("[tool.ortbench.models.x]\nfile = 3", "file is 3"),
            (
                '[tool.ortbench.models.x]\nfile = "a"\nvariants.fp16 = "b"',
                "'fp16' is already the name",
            ),
            ('[tool.ortbench.models.x]\nfile = "a"\nvariants = ["b"]', "variants is ['b']"),
            (
                '[tool.ortbench.models.x]\nfile = "a"\nvariants.q = {file = "b", sqnr_floor = "x"}',
                "sqnr_floor is 'x'",
            ),
            (
                '[tool.ortbench.models.x]\nfile = "a"\nvariants.q = {file = "b", sqnr_floor = nan}',
                "sqnr_floor is nan",
            ),
        ],
    )
    def test_what_breaks_a_rule(self, tmp_path: Path, text: str, says: str) -> None:
        with pytest.raises(UsageError) as caught:
            families(self.configure(tmp_path, text))
        assert says in str(caught.value)
