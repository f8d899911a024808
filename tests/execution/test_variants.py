"""Variants are made once, whoever needs them, and never by another name."""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pytest_ortbench.convert.variants import Variants, variant_key
from pytest_ortbench.core.case import Case, InputSpec
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.model import ValueHint
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.core.recipe import Conversion, Converted, Recipe
from pytest_ortbench.launch.launcher import Launcher, ProcessLauncher
from pytest_ortbench.launch.reference import reference_case
from pytest_ortbench.planning.families import Family, Member
from pytest_ortbench.planning.family_models import resolve
from pytest_ortbench.planning.unreadable import UnreadableModel
from pytest_ortbench.schema.model_questions import Convert
from tests.left_folders import left_folder
from tests.results_factory import make_case

DYNAMIC = Recipe(name="int8-dynamic", base="int8-dynamic", weight_type="uint8")
STATIC = Recipe(name="int8-static", base="int8-static", weight_type="int8", activation_type="uint8")
SPEC = InputSpec(name="x", type="tensor(float)", shape=(1, 4), hint=ValueHint(kind="normal"))


def conversion(recipe: Recipe = DYNAMIC, **changed: object) -> Conversion:
    made = Conversion(
        recipe=recipe,
        source="/models/m.onnx",
        digest="d" * 64,
        size_bytes=100,
        own_precision="fp32",
        inputs=(SPEC,),
    )
    return replace(made, **changed)  # type: ignore[arg-type]  # fields by name


def planned(precision: str = "int8-dynamic") -> Case:
    case = make_case(precision=precision)
    return replace(case, variant=replace(case.variant, path="", size_bytes=0, recipe={"base": "b"}))


@dataclass
class FakeLauncher:
    """Writes a file where a variant should be; or fails."""

    failure: Failure | None = None
    wait_s: float = 0.0
    calls: list[Conversion] = field(default_factory=list)

    def ask(self, question: Convert, *, deadline: float, label: str) -> Converted:
        assert deadline > time.monotonic()
        assert label
        folder = Path(question.folder)
        self.calls.append(question.conversion)
        (folder / "model.onnx").write_bytes(b"half a model")
        if self.failure is not None:
            raise WorkerError(self.failure)
        time.sleep(self.wait_s)
        (folder / "model.onnx").write_bytes(b"model")
        (folder / "model.onnx.data").write_bytes(b"weights")
        data = "model.onnx.data"
        return Converted(
            file="model.onnx",
            external_files=(data,),
            digest=file_digest(folder / "model.onnx", ((data, folder / data),)),
            size_bytes=12,
            facts={"weights": "99 %"},
            notes=("clamped",),
        )


def variants_in(folder: Path, launcher: FakeLauncher | ProcessLauncher | None = None) -> Variants:
    """Variants whose launcher answers as far as it is asked."""
    fake = FakeLauncher() if launcher is None else launcher
    return Variants(launcher=cast("Launcher", fake), folder=folder)


def test_a_case_gets_the_file_its_digest_and_how_it_was_made(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    case = variants_in(tmp_path, launcher).prepare(planned(), conversion())
    assert Path(case.variant.path).read_bytes() == b"model"
    made = Path(case.variant.path)
    digest = file_digest(made, (("model.onnx.data", made.with_name("model.onnx.data")),))
    assert (case.variant.digest, case.variant.size_bytes) == (digest, 12)
    assert case.variant.external_files == ("model.onnx.data",)
    assert case.variant.recipe == {"base": "b", "weights": "99 %"}
    assert case.variant.notes == ("clamped",)
    assert case.case_id == planned().case_id


def test_what_the_plan_says_of_a_variant_stands_before_what_its_tool_says(tmp_path: Path) -> None:
    case = planned()
    case = replace(case, variant=replace(case.variant, notes=("planned",)))
    made = variants_in(tmp_path).prepare(case, conversion())
    assert made.variant.notes == ("planned", "clamped")


def test_a_file_that_is_made_is_still_that_of_a_variant_compared_on_its_calibration(
    tmp_path: Path,
) -> None:
    case = planned()
    case = replace(case, variant=replace(case.variant, on_calibration=True))
    made = variants_in(tmp_path).prepare(case, conversion())
    assert made.variant.on_calibration


def test_a_second_case_and_a_second_run_convert_nothing(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    variants = variants_in(tmp_path, launcher)
    first = variants.prepare(planned(), conversion())
    assert variants.prepare(planned(), conversion()) == first
    later = variants_in(tmp_path, launcher)
    assert later.prepare(planned(), conversion()) == first
    assert len(launcher.calls) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (conversion(), conversion(source="/elsewhere/m.onnx"), True),
        (conversion(), conversion(digest="e" * 64), False),
        (conversion(), conversion(recipe=replace(DYNAMIC, per_channel=True)), False),
        (conversion(), conversion(recipe=replace(DYNAMIC, name="another name")), True),
        (conversion(), conversion(recipe=replace(DYNAMIC, sqnr_floor_db=3.0)), True),
        # Dynamic quantisation looks at no data, static does.
        (conversion(), conversion(seed=7), True),
        (conversion(STATIC), conversion(STATIC, seed=7), False),
        (
            conversion(STATIC),
            conversion(STATIC, inputs=(replace(SPEC, shape=(2, 4)),)),
            False,
        ),
        (
            conversion(STATIC),
            conversion(replace(STATIC, calibration_data="/empty")),
            False,
        ),
        (
            conversion(Recipe(name="a", base="fp16")),
            conversion(Recipe(name="a", base="fp16", block_list=())),
            False,
        ),
    ],
)
def test_what_decides_the_file_decides_the_key(
    one: Conversion, other: Conversion, same: bool
) -> None:
    assert (variant_key(one) == variant_key(other)) is same


def test_the_content_of_calibration_data_counts_and_not_its_name(tmp_path: Path) -> None:
    def key(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        spec = replace(SPEC, path=str(tmp_path / name), member="x")
        return variant_key(conversion(STATIC, calibration=((spec,),)))

    assert key("a.npz", b"1") == key("b.npz", b"1") != key("a.npz", b"2")


def test_a_failure_is_remembered_and_leaves_nothing(tmp_path: Path) -> None:
    failure = Failure(kind="unsupported", phase="convert", message="no")
    launcher = FakeLauncher(failure=failure)
    variants = variants_in(tmp_path, launcher)
    for _ in range(2):
        with pytest.raises(WorkerError) as caught:
            variants.prepare(planned(), conversion())
        assert caught.value.failure == failure
    assert len(launcher.calls) == 1
    assert [item for item in tmp_path.iterdir() if item.is_dir()] == []


def test_nothing_more_is_made_of_a_source_that_does_not_load(tmp_path: Path) -> None:
    failure = Failure(kind="error", phase="session", message="no")
    launcher = FakeLauncher(failure=failure)
    variants = variants_in(tmp_path, launcher)
    for recipe, digest in ((DYNAMIC, "d"), (STATIC, "d"), (DYNAMIC, "e")):
        with pytest.raises(WorkerError) as caught:
            variants.prepare(planned(), conversion(recipe, digest=digest * 64))
        assert caught.value.failure == failure
    assert [asked.digest[0] for asked in launcher.calls] == ["d", "e"]


@pytest.mark.parametrize(
    "damage",
    [
        "truncated", "no record", "no data", "garbage", "edited", "data edited", "a link outside",
        "a linked folder", "absolute", "above",
    ],
)  # fmt: skip
def test_a_damaged_one_is_made_again(tmp_path: Path, damage: str) -> None:
    launcher = FakeLauncher()
    outside = tmp_path / "outside"
    outside.mkdir()
    tmp_path = tmp_path / "cache"
    first = variants_in(tmp_path, launcher).prepare(planned(), conversion())
    folder = Path(first.variant.path).parent
    if damage == "truncated":
        (folder / "model.onnx").write_bytes(b"mod")
    elif damage == "no record":
        (folder / "variant.json").unlink()
    elif damage == "no data":
        (folder / "model.onnx.data").unlink()
    elif damage == "garbage":
        (folder / "variant.json").write_text(json.dumps([1]))
    elif damage in ("edited", "data edited"):
        file = folder / ("model.onnx" if damage == "edited" else "model.onnx.data")
        kept = file.stat()
        file.write_bytes(b"x" * kept.st_size)
        os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    elif damage == "a link outside":
        (folder / "model.onnx").rename(outside / "model.onnx")
        (folder / "model.onnx").symlink_to(outside / "model.onnx")
    elif damage == "a linked folder":
        folder.rename(outside / "variant")
        folder.symlink_to(outside / "variant")
    else:
        for file in folder.iterdir():
            (outside / file.name).write_bytes(file.read_bytes())
        start = {"absolute": f"{outside}/", "above": "../../outside/"}
        record = json.loads((folder / "variant.json").read_text())
        record["file"] = f"{start[damage]}{record['file']}"
        record["external_files"] = [f"{start[damage]}{name}" for name in record["external_files"]]
        (folder / "variant.json").write_text(json.dumps(record))
    again = variants_in(tmp_path, launcher).prepare(planned(), conversion())
    assert again == first
    assert len(launcher.calls) == 2
    assert Path(again.variant.path).read_bytes() == b"model"
    assert Path(again.variant.path).resolve().is_relative_to(tmp_path.resolve())


def test_the_draft_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    left = left_folder(tmp_path / ".ortbench-variant-killed")
    variants_in(tmp_path).prepare(planned(), conversion())
    assert not left.exists()


def test_runs_at_the_same_time_make_it_once(tmp_path: Path) -> None:
    launcher = FakeLauncher(wait_s=0.05)
    found: list[Case] = []

    def run() -> None:
        variants = variants_in(tmp_path, launcher)
        found.append(variants.prepare(planned(), conversion()))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(launcher.calls) == 1
    assert len(found) == 4
    assert all(case == found[0] for case in found)


def test_a_cache_that_can_t_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    variants = variants_in(tmp_path / "file" / "variants")
    with pytest.raises(WorkerError) as caught:
        variants.prepare(planned(), conversion())
    assert caught.value.failure.kind == "error"
    assert caught.value.failure.phase == "convert"
    assert "ORTBENCH_CACHE" in caught.value.failure.hint


# -- with real workers ------------------------------------------------------------------------


def save_mlp(path: Path, *, scale: float = 1.0, half: bool = False) -> Path:
    width = 64
    kind, element = (np.float16, TensorProto.FLOAT16) if half else (np.float32, TensorProto.FLOAT)
    tensor = np.random.default_rng(0).standard_normal((width, width)) * scale / width**0.5
    made = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name="mm"),
            helper.make_node("Relu", ["h"], ["y"], name="relu"),
        ],
        "g",
        [helper.make_tensor_value_info("x", element, ["N", width])],
        [helper.make_tensor_value_info("y", element, ["N", width])],
        [numpy_helper.from_array(tensor.astype(kind), "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=8), str(path))
    return path


@pytest.mark.live
def test_a_worker_makes_four_bit_weights_and_nothing_is_written_beside_the_model(
    tmp_path: Path,
) -> None:
    path = save_mlp(tmp_path / "models" / "mlp.onnx")
    path.parent.chmod(0o555)
    spec = InputSpec(name="x", type="tensor(float)", shape=(1, 64), hint=ValueHint(kind="normal"))
    wanted = conversion(
        Recipe(name="int4", base="int4"),
        source=str(path),
        digest=file_digest(path),
        size_bytes=path.stat().st_size,
        inputs=(spec,),
    )
    phases: list[str] = []
    launcher = ProcessLauncher(on_phase=phases.append)
    try:
        variants = variants_in(tmp_path / "cache", launcher)
        case = variants.prepare(planned("int4"), wanted)
    finally:
        launcher.close()
        path.parent.chmod(0o755)
    assert phases == ["start", "import", "convert"]
    assert [item.name for item in path.parent.iterdir()] == ["mlp.onnx"]
    (node,) = [n for n in onnx.load(case.variant.path).graph.node if n.op_type != "Relu"]
    assert (node.op_type, node.domain) == ("MatMulNBits", "com.microsoft")
    assert case.variant.recipe["weights"].split()[::3] == ["96.9", "4096", "int4"]
    # Four bits a weight and one scale for each 32 of them.
    assert case.variant.size_bytes == pytest.approx(4096 / 2 + 4096 / 32 * 4, rel=0.2)


@pytest.mark.live
def test_resnet_50_in_eight_bits_is_a_quarter_of_its_size(tmp_path: Path) -> None:
    from pytest_ortbench.models.builders import build
    from pytest_ortbench.models.graph import read_model
    from pytest_ortbench.planning.feeds import resolve_inputs

    model = read_model(build("resnet50", tmp_path / "builtin"), name="resnet50", source="file")
    wanted = Conversion(
        # One set is enough for the size.
        recipe=replace(STATIC, calibration_samples=1),
        source=model.path,
        digest=model.digest,
        size_bytes=model.size_bytes,
        own_precision="fp32",
        inputs=resolve_inputs(model, batch=1, dims={}),
    )
    launcher = ProcessLauncher()
    try:
        made = variants_in(tmp_path / "v", launcher).prepare(planned(), wanted)
    finally:
        launcher.close()
    assert made.variant.size_bytes == pytest.approx(model.size_bytes / 4, rel=0.03)
    assert made.variant.recipe["nodes_in_float"] == "0"


class TestFamilies:
    def family(self, folder: Path, **changed: object) -> dict[str, Family]:
        made = Family(
            name="net",
            place="pyproject.toml [tool.ortbench.models.net]",
            file=str(save_mlp(folder / "a.onnx")),
            variants={
                "half": Member(spec=str(save_mlp(folder / "half.onnx", half=True))),
                "pruned": Member(spec=str(folder / "none.onnx"), sqnr_floor_db=12.0),
            },
        )
        return {"net": replace(made, **changed)}  # type: ignore[arg-type]  # fields by name

    @pytest.mark.parametrize("spec", ["net", "a.onnx"])
    def test_name_and_file_mean_the_same_model(self, tmp_path: Path, spec: str) -> None:
        found = resolve([spec], self.family(tmp_path), root=tmp_path, notify=print)
        (model,) = found.models
        assert model.name == "net"
        assert [(own.name, own.model is None, own.error != "") for own in found.own["net"]] == [
            ("half", False, False),
            ("pruned", True, True),
        ]
        assert (
            "pyproject.toml [tool.ortbench.models.net] variants.pruned" in found.own["net"][1].error
        )

    def test_another_file_is_no_member(self, tmp_path: Path) -> None:
        save_mlp(tmp_path / "other.onnx")
        found = resolve(["other.onnx"], self.family(tmp_path), root=tmp_path, notify=print)
        assert ([model.name for model in found.models], found.own) == (["other"], {})

    def test_the_reference_is_another_file(self, tmp_path: Path) -> None:
        right = save_mlp(tmp_path / "right.onnx", scale=2.0)
        known = self.family(tmp_path, reference=str(right), variants={})
        (model,) = resolve(["net"], known, root=tmp_path, notify=print).models
        assert not isinstance(model, UnreadableModel)
        assert model.reference is not None
        assert (model.path, model.reference.path) == (str(tmp_path / "a.onnx"), str(right))
        assert model.reference.input_types == {"x": "tensor(float)"}
        case = replace(make_case(model=model), inputs=(replace(SPEC, type="tensor(float16)"),))
        asked = reference_case(case)
        assert (asked.model.path, asked.model.digest) == (str(right), model.reference.digest)
        assert asked.inputs[0].type == "tensor(float)"

    def test_a_reference_that_is_not_there_fails_the_model(self, tmp_path: Path) -> None:
        known = self.family(tmp_path, reference=str(tmp_path / "none.onnx"))
        (model,) = resolve(["net"], known, root=tmp_path, notify=print).models
        assert isinstance(model, UnreadableModel)
        assert "reference" in model.message


@pytest.mark.parametrize("which", ["cache", "folder of variants"])
def test_no_variant_is_taken_from_or_left_in_a_folder_that_all_may_write_to(
    tmp_path: Path, which: str
) -> None:
    folder = tmp_path / "cache" / "variants"
    folder.mkdir(parents=True)
    launcher = FakeLauncher()
    variants_in(folder, launcher).prepare(planned(), conversion())
    (folder.parent if which == "cache" else folder).chmod(0o777)
    with pytest.raises(WorkerError) as caught:
        variants_in(folder, launcher).prepare(planned(), conversion())
    assert (caught.value.failure.kind, caught.value.failure.phase) == ("unavailable", "convert")
    assert len(launcher.calls) == 1


def test_a_variant_of_another_user_is_made_again(tmp_path: Path) -> None:
    launcher = FakeLauncher()
    made = variants_in(tmp_path, launcher).prepare(planned(), conversion())
    Path(made.variant.path).parent.chmod(0o777)
    again = variants_in(tmp_path, launcher).prepare(planned(), conversion())
    assert again == made
    assert len(launcher.calls) == 2
