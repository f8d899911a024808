"""Products of float32 that lose bits, and options that products confirm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.analysis.lowered import is_seen
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.links import LinkPlacement
from pytest_ortbench.core.outcome import CaseResult, Placement
from pytest_ortbench.planning.providers import parse_provider
from tests.results_factory import make_case, make_measurement, make_result

ON_OPENVINO = "OpenVINOExecutionProvider"
HINT = '{"CPU": {"INFERENCE_PRECISION_HINT": "%s"}}'


def result_of(
    spec: str,
    bits: int | None,
    partitions: dict[str, int] | None = None,
    options: dict[str, str] | None = None,
) -> CaseResult:
    """A measured case whose options nothing reads back."""
    options = options or {}
    provider = parse_provider(spec).of_links(
        lambda link: replace(link, options=options if link.alias.startswith("openvino") else {})
    )
    placement = None
    if provider.is_execution_provider:
        placement = Placement(
            provider=provider.name,
            executed={ON_OPENVINO: 1},
            partitions=1,
            product_bits=bits,
            links=tuple(
                LinkPlacement(provider=link.name, label=link.label, partitions=count)
                for link, count in zip(provider.links, (partitions or {}).values(), strict=False)
            ),
        )
    doubts = {f"openvino.{key}": "nothing reads it back" for key in options}
    made = make_result(
        case=replace(make_case(), provider=provider),
        measurements=[replace(make_measurement(), unconfirmed=doubts)],
    )
    own = None if provider.is_execution_provider else bits
    return replace(made, placement=placement, product_bits=own)


def flag(result: CaseResult, name: str) -> str | None:
    return next((flag.detail for flag in flags_of(result) if flag.name == name), None)


@pytest.mark.parametrize(
    ("spec", "partitions", "option"),
    [
        ("openvino", None, "openvino.load_config="),
        ("openvino~cpu", {"openvino": 1, "cpu": 0}, "openvino.load_config="),
        ("openvino-native", None, "openvino-native.INFERENCE_PRECISION_HINT=f32"),
        ("mnn", None, "mnn.precision=high"),
        ("ncnn", None, "ncnn.fp16=0"),
        ("jax", None, ""),
        # Which of both loses them is not known.
        ("tensorrt~openvino", {"tensorrt": 1, "openvino": 1}, ""),
    ],
)
def test_what_loses_bits_is_flagged_with_its_option(
    spec: str, partitions: dict[str, int] | None, option: str
) -> None:
    detail = flag(result_of(spec, 7, partitions), "LOWERED")
    assert detail is not None
    assert option in detail
    assert ("--ort-provider-option" in detail) is bool(option)
    assert flag(result_of(spec, 23, partitions), "LOWERED") is None
    assert flag(result_of(spec, None, partitions), "LOWERED") is None


@pytest.mark.parametrize(
    ("options", "bits", "seen"),
    [
        ({"load_config": HINT % "f32"}, 23, True),
        ({"load_config": HINT % "bf16"}, 7, True),
        # What comes is not what was asked for, or it is not known.
        ({"load_config": HINT % "f32"}, 7, False),
        ({"load_config": HINT % "bf16"}, 23, False),
        ({"load_config": HINT % "f32"}, None, False),
        # Something else is asked for, too, or alone.
        ({"load_config": '{"CPU": {"INFERENCE_PRECISION_HINT": "f32", "A": "1"}}'}, 23, False),
        ({"load_config": HINT[:-1] % "f32" + ', "GPU": {}}'}, 23, False),
        ({"load_config": (HINT % "f32").replace("CPU", "GPU")}, 23, False),
        ({"load_config": '{"CPU": {"NUM_STREAMS": "1"}}'}, 23, False),
        ({"load_config": "settings.json"}, 23, False),
        ({"load_config": "[" * 100_000}, 23, False),
        ({"precision": "FP32"}, 23, False),
    ],
)
def test_an_option_is_confirmed_by_the_bits_that_it_asks_for(
    options: dict[str, str], bits: int | None, seen: bool
) -> None:
    result = result_of("openvino", bits, options=options)
    assert is_seen(f"openvino.{next(iter(options))}", result) is seen
    assert (flag(result, "UNCONFIRMED") is None) is seen


@pytest.mark.parametrize(
    ("partitions", "seen"),
    [({"openvino": 1, "tensorrt": 0}, True), ({"openvino": 1, "tensorrt": 1}, False)],
)
def test_of_a_chain_one_link_alone_can_be_told(partitions: dict[str, int], seen: bool) -> None:
    spec = "~".join(partitions)
    result = result_of(spec, 23, partitions, {"load_config": HINT % "f32"})
    assert is_seen("openvino.load_config", result) is seen


def test_another_option_stays_in_doubt() -> None:
    options = {"load_config": HINT % "f32", "num_of_threads": "3"}
    detail = flag(result_of("openvino", 23, options=options), "UNCONFIRMED")
    assert detail is not None
    assert "load_config" not in detail
    assert "num_of_threads" in detail
