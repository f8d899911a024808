from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_ortbench.core.case import Case, Sampling
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.generation import Generation
from pytest_ortbench.core.limits import parse_limit
from pytest_ortbench.passes.stages.planning import StageFile
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.marker import MarkerError, passes_of, read_marker
from pytest_ortbench.plugin.options import ROWS, Options
from tests.results_factory import make_case


def _read(*marks: pytest.MarkDecorator):
    return read_marker(
        [mark.mark for mark in marks], place="test_x.py::test_it", folders=(Path("/r"),)
    )


def test_the_marker_wins_for_the_axes_it_names_and_for_no_other() -> None:
    base = PlanRequest(models=("a.onnx",), providers=("cpu",), batch_sizes=(1,), threads=(2,))
    values = _read(pytest.mark.ortbench(batch_sizes=[1, 8], models="b.onnx", dims={"seq": 128}))
    request = values.apply(base)
    assert request.models == ("/r/b.onnx",)
    assert request.batch_sizes == (1, 8)
    assert request.dims == {"seq": (128,)}
    assert request.providers == ("cpu",)
    assert request.threads == (2,)


def test_the_closest_marker_wins_for_each_keyword() -> None:
    closest, outer = (
        pytest.mark.ortbench(batch_sizes=4),
        pytest.mark.ortbench(batch_sizes=1, providers=["all"]),
    )
    request = _read(closest, outer).apply(PlanRequest(models=()))
    assert request.batch_sizes == (4,)
    assert request.providers == ("all",)


def test_limits_are_read_with_the_one_grammar() -> None:
    (limit,) = _read(pytest.mark.ortbench(limits=["latency_p90 <= 30 ms"])).limits
    assert (limit.metric.name, limit.op, limit.value) == ("latency_p90", "<=", 0.030)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (pytest.mark.ortbench(batchsizes=[1]), "Did you mean 'batch_sizes'?"),
        (pytest.mark.ortbench(zzz=1), "Choose one of: batch_sizes, dataset, depths"),
        (pytest.mark.ortbench("resnet50"), "'resnet50' stands without a keyword"),
        (pytest.mark.ortbench("resnet50"), "models='resnet50'"),
        (pytest.mark.ortbench(8), "batch_sizes=[8]"),
        (pytest.mark.ortbench(workers=5), "--ort-workers=5"),
        (pytest.mark.ortbench(batch_sizes=[]), "batch_sizes is []"),
        (pytest.mark.ortbench(batch_sizes=[0]), "must be a whole number from 1 up"),
        (pytest.mark.ortbench(batch_sizes=[True]), "must be a whole number from 1 up"),
        (pytest.mark.ortbench(threads="4"), "threads is '4'"),
        (pytest.mark.ortbench(models=[1]), "models is [1]"),
        (pytest.mark.ortbench(models=[]), "models is []"),
        (pytest.mark.ortbench(dims=[1]), "must be a mapping"),
        (pytest.mark.ortbench(dims={"seq": "128"}), "dims['seq'] is '128'"),
        (pytest.mark.ortbench(dims={"tokens": 0}), "dims={'tokens': [128, 512]}"),
        (pytest.mark.ortbench(limits=["latency_p90 <= 3 MB"]), "'MB'"),
    ],
)
def test_a_wrong_marker_names_the_test_and_the_rule(mark: pytest.MarkDecorator, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        _read(mark)
    assert said in str(raised.value)
    assert str(raised.value).startswith("test_x.py::test_it")


# -- passes that a test needs ----------------------------------------------------------------------


def _item(function: object = None) -> pytest.Item:
    return cast("pytest.Item", SimpleNamespace(function=function))


def _planned(case: Case | None = None) -> Planned:
    return cast("Planned", SimpleNamespace(case=case or make_case()))


def _calls_energy(ortbench):
    return ortbench.energy().power


def _reads_a_start_up_metric(ortbench):
    return ortbench.startup().session_create_disk


def _calls_startup(ortbench):
    return ortbench.startup().session_create


@pytest.mark.parametrize(
    ("function", "passes"),
    [
        (_calls_energy, {"energy"}),
        (_reads_a_start_up_metric, {"startup"}),
        (_calls_startup, set()),
        (None, set()),
    ],
)
def test_a_test_needs_the_passes_that_its_code_names(function, passes: set[str]) -> None:
    assert passes_of(_item(function), _planned(), (), Options()) == passes


def test_a_test_needs_the_passes_of_its_limits() -> None:
    texts = ("power <= 5 W", "first_inference_shape <= 1 s")
    limits = [parse_limit(text, place="") for text in texts]
    assert passes_of(_item(), _planned(), limits, Options()) == {"energy", "startup"}


@pytest.mark.parametrize(
    ("options", "case", "passes"),
    [
        ({"profile": True}, {}, {"profile"}),
        ({"startup": True}, {}, {"startup"}),
        ({"soak_s": 60.0}, {"sampling": Sampling(soak_s=60.0)}, {"soak"}),
        ({"processes": (2,)}, {"sampling": Sampling(processes=(2,))}, {"processes"}),
        ({"load": ("offline",)}, {"sampling": Sampling(loads=("offline",))}, {"load"}),
        ({"dataset": Dataset(path="d.npz")}, {"dataset": Dataset(path="d.npz")}, {"task"}),
        ({"stages": (StageFile(path="s.py"),)}, {"stages": "s.py"}, {"stages"}),
        (
            {},
            {"generation": Generation(engine="session", prompt_tokens=8, new_tokens=4)},
            {"generation"},
        ),
        # The file is for other cases.
        ({"stages": (StageFile(path="s.py", pattern="x"),)}, {}, set()),
    ],
)
def test_a_case_needs_the_passes_of_options(
    options: dict[str, Any], case: dict[str, Any], passes: set[str]
) -> None:
    planned = _planned(replace(make_case(), **case))
    assert passes_of(_item(), planned, (), Options(**options)) == passes


def test_an_option_that_asks_for_a_pass_goes_to_a_field_that_a_case_has() -> None:
    for row in ROWS:
        room, _, name = row.to.partition(".")
        if row.asks_for and room in ("request", "case"):
            assert name in {field.name for field in fields(Case)}


class TestData:
    """What own data a marker names, read as the options of the same names read it."""

    def read(self, folder: Path, **keywords: object) -> dict[str, object]:
        marks = [pytest.mark.ortbench(**keywords).mark]
        return read_marker(marks, place="test_it", folders=(folder / "root", folder)).axes

    def test_paths_start_at_the_root_or_beside_the_test(self, tmp_path: Path) -> None:
        (tmp_path / "photos").mkdir()
        (tmp_path / "labels.csv").write_text("a.png,1\n")
        axes = self.read(
            tmp_path,
            inputs="photos",
            labels=Path("labels.csv"),
            dataset="photos",
            preprocess={"scale": "1/255", "size": 32},
        )
        assert axes == {
            "request.inputs": tmp_path / "photos",
            "request.labels": tmp_path / "labels.csv",
            "request.dataset": Dataset(path=str(tmp_path / "photos")),
            "request.preprocess": {"scale": "1/255", "size": "32"},
        }

    @pytest.mark.parametrize(
        "keywords", [{"inputs": "photos"}, {"labels": 3}, {"dataset": ""}, {"preprocess": "scale"}]
    )
    def test_what_is_no_data_names_test_and_keyword(
        self, tmp_path: Path, keywords: dict[str, object]
    ) -> None:
        with pytest.raises(MarkerError) as caught:
            self.read(tmp_path, **keywords)
        assert caught.value.place.startswith("test_it")
        assert next(iter(keywords)) in str(caught.value)
