import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.request import PlanRequest
from pytest_ortbench.plugin.marker import read_marker


def _read(*marks: pytest.MarkDecorator):
    return read_marker([mark.mark for mark in marks], place="test_x.py::test_it")


def test_the_marker_wins_for_the_axes_it_names_and_for_no_other() -> None:
    base = PlanRequest(models=("a.onnx",), providers=("cpu",), batch_sizes=(1,), threads=(2,))
    values = _read(pytest.mark.ortbench(batch_sizes=[1, 8], models="b.onnx", dims={"seq": 128}))
    request = values.apply(base)
    assert request.models == ("b.onnx",)
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
        (pytest.mark.ortbench(zzz=1), "Known: models, providers, precisions, batch_sizes"),
        (pytest.mark.ortbench("resnet50"), "takes keywords only, got 'resnet50'"),
        (pytest.mark.ortbench(batch_sizes=[]), "batch_sizes is []"),
        (pytest.mark.ortbench(batch_sizes=[0]), "must be a positive whole number"),
        (pytest.mark.ortbench(batch_sizes=[True]), "must be a positive whole number"),
        (pytest.mark.ortbench(threads="4"), "threads is '4'"),
        (pytest.mark.ortbench(models=[1]), "must be a string or a list of strings"),
        (pytest.mark.ortbench(models=[]), "at least one entry"),
        (pytest.mark.ortbench(dims=[1]), "must be a mapping"),
        (pytest.mark.ortbench(dims={"seq": "128"}), "dims['seq'] is '128'"),
        (pytest.mark.ortbench(limits=["latency_p90 <= 3 MB"]), "'MB'"),
    ],
)
def test_a_wrong_marker_names_the_test_and_the_rule(mark: pytest.MarkDecorator, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        _read(mark)
    assert said in str(raised.value)
    assert str(raised.value).startswith("test_x.py::test_it")
