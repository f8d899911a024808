"""What stands on the other side, and which cases make a pair."""

from __future__ import annotations

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.matrix import Planned
from pytest_ortbench.planning.sides import KINDS, pair_cases, parse_side
from tests.results_factory import make_case


def plan(*cases) -> list[Planned]:
    return [Planned(case=case) for case in cases]


def ids(pairing) -> list[tuple[str, str]]:
    return [(pair.baseline.case.case_id, pair.contender.case.case_id) for pair in pairing.pairs]


@pytest.mark.parametrize("text", KINDS.values())
def test_every_example_can_be_read(text: str):
    assert parse_side(text, place="--ort-against").label == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("main", "Write a baseline in one of these forms: model:old.onnx, precision:fp32"),
        ("fp16", "Write precision:fp16"),
        ("cpu", "Write provider:cpu"),
        ("old/net.onnx", "Write model:old/net.onnx"),
        ("onnxruntime==1.20.1", "Write runtime:onnxruntime==1.20.1"),
        ("precison:fp16", "Did you mean 'precision:fp16'?"),
        ("precision", "Write e.g. precision:fp32"),
        ("latest", "--ort-baseline=latest"),
        ("results/theirs.json", "--ort-baseline=results/theirs.json"),
        ("model:", "nothing after"),
        ("option:threads", "has no value"),
        ("option:threads", "Write option:threads= "),
        ("git:--upload-pack=x", "is not a revision"),
    ],
)
def test_wrong_ones(text: str, message: str):
    with pytest.raises(UsageError) as raised:
        parse_side(text, place="--ort-against")
    assert message in str(raised.value)
    assert str(raised.value).startswith("--ort-against: ")


def test_one_baseline_model_stands_against_all():
    contenders = plan(make_case(model="a"), make_case(model="b", batch=8))
    baselines = plan(make_case(model="old"), make_case(model="old", batch=8))
    assert ids(pair_cases(contenders, baselines, "model")) == [
        ("old/native/cpu/b1", "a/native/cpu/b1"),
        ("old/native/cpu/b8", "b/native/cpu/b8"),
    ]


def test_several_models_pair_by_name():
    contenders = plan(make_case(model="a"), make_case(model="new"))
    baselines = plan(make_case(model="a"), make_case(model="gone"))
    pairing = pair_cases(contenders, baselines, "model")
    assert ids(pairing) == [("a/native/cpu/b1", "a/native/cpu/b1")]
    assert pairing.added == (("new/native/cpu/b1", "current"),)
    assert pairing.vanished == (("gone/native/cpu/b1", "current"),)


def test_one_model_of_a_folder_stands_against_its_namesake_only():
    contenders = plan(make_case(model="a"), make_case(model="b"))
    pairing = pair_cases(contenders, plan(make_case(model="a")), "model", by_name=True)
    assert ids(pairing) == [("a/native/cpu/b1", "a/native/cpu/b1")]
    assert pairing.added == (("b/native/cpu/b1", "current"),)


def test_a_provider_is_itself_whether_it_was_named_or_not():
    pairing = pair_cases(plan(make_case(named=False)), plan(make_case()), "provider")
    assert (pairing.pairs, pairing.itself) == ((), (("mobilenet_v2/native/cpu/b1", "current"),))


def test_two_baselines_of_one_case_are_refused():
    baselines = plan(make_case(provider="cpu"), make_case(provider="openvino"))
    with pytest.raises(UsageError) as raised:
        pair_cases(plan(make_case(provider="cuda")), baselines, "provider")
    assert raised.value.place == "--ort-against"
    for alias in ("cpu", "openvino"):
        assert f"mobilenet_v2/native/{alias}/b1" in raised.value.message


def test_the_baseline_itself_is_not_compared():
    contenders = plan(make_case(precision="fp32"), make_case(precision="fp16"))
    pairing = pair_cases(contenders, plan(make_case(precision="fp32")), "precision")
    assert ids(pairing) == [("mobilenet_v2/fp32/cpu/b1", "mobilenet_v2/fp16/cpu/b1")]
    assert pairing.itself == (("mobilenet_v2/fp32/cpu/b1", "current"),)


def test_runtimes_and_providers_pair_without_their_axis_and_with_all_others():
    dims = {"seq": 128}
    contender = make_case(provider="cuda", dims=dims, runtime="new", knobs={"threads": "2"})
    for other in (
        make_case(provider="cuda", dims=dims, runtime="old", knobs={"threads": "2"}),
        make_case(provider="cpu", dims=dims, runtime="new", knobs={"threads": "2"}),
    ):
        kind = "runtime" if other.runtime.label == "old" else "provider"
        assert len(pair_cases(plan(contender), plan(other), kind).pairs) == 1
        wrong = "provider" if kind == "runtime" else "runtime"
        assert pair_cases(plan(contender), plan(other), wrong).pairs == ()
