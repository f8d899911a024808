"""What precision a file has by itself, and how near its outputs must stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.model import Reference
from pytest_ortbench.core.precision import floor_of, has_fixed_ranges, own_precision
from tests.results_factory import make_case

FP32, FP16 = {"float": 100, "int64": 4}, {"float16": 100, "float": 3}
QDQ = {"MatMul": 2, "QuantizeLinear": 3, "DequantizeLinear": 5}


@pytest.mark.parametrize(
    ("ops", "weights", "values", "found"),
    [
        ({"Conv": 1}, FP32, (), "fp32"),
        ({"Conv": 1}, FP16, (), "fp16"),
        ({"MatMul": 1}, {"bfloat16": 9}, (), "bf16"),
        ({"MatMul": 1}, {"double": 9}, (), "fp32"),
        (QDQ, {"int8": 90, "float": 7}, (), "int8"),
        ({"com.microsoft::QLinearAdd": 1}, FP32, (), "int8"),
        ({"ConvInteger": 2, "DynamicQuantizeLinear": 1}, {"uint8": 9}, (), "int8"),
        ({"com.microsoft::MatMulNBits": 2}, {"uint8": 90, "float": 9}, (), "int4"),
        ({"DequantizeLinear": 2, "MatMul": 2}, {"int4": 90, "float": 9}, (), "int4"),
        ({"Relu": 1}, {}, ("tensor(float16)",), "fp16"),
        ({"Relu": 1}, {}, ("tensor(float)",), "fp32"),
        ({"LabelEncoder": 1}, {}, ("tensor(string)",), "fp32"),
    ],
)
def test_own_precision(
    ops: dict[str, int], weights: dict[str, int], values: tuple[str, ...], found: str
) -> None:
    assert own_precision(ops, weights, values) == found


def case(
    precision: str,
    *,
    ops: dict[str, int] | None = None,
    weights: dict[str, int] | None = None,
    recipe: dict[str, str] | None = None,
    reference: str = "",
) -> Case:
    made = make_case(precision=precision)
    named = Reference(name="r.onnx", path="/r.onnx", digest="1", precision=reference)
    return replace(
        made,
        model=replace(
            made.model,
            op_types=ops or {"MatMul": 2},
            weight_types=FP32 if weights is None else weights,
            reference=named if reference else None,
        ),
        variant=replace(made.variant, recipe=recipe or {}),
    )


@pytest.mark.parametrize(
    ("asked", "sqnr_db", "of"),
    [
        (case("native"), 60, "native"),
        (case("fp32"), 60, "fp32"),
        (case("fp16", recipe={"base": "fp16"}), 40, "fp16"),
        (case("bf16", recipe={"base": "bf16"}), 30, "bf16"),
        (case("int8-dynamic", recipe={"base": "int8-dynamic"}), 15, "int8-dynamic"),
        (case("int4", recipe={"base": "int4"}), 10, "int4"),
        # A quantised or half-precision file need not agree to 60 dB with itself unoptimised.
        (case("native", ops=QDQ, weights={"int8": 9, "float": 2}), 15, "native (int8)"),
        (case("native", weights=FP16), 40, "native (fp16)"),
        (case("native", ops={"com.microsoft::MatMulNBits": 1}), 10, "native (int4)"),
        # A named reference does not change what the file itself is good for.
        (case("native", ops=QDQ, reference="fp32"), 15, "native (int8)"),
        # Nothing can be nearer to a half-precision reference than that is to itself.
        (case("fp32", weights=FP16, recipe={"base": "fp32"}), 40, "fp32"),
        # A recipe of another name is judged by its base, unless it says otherwise.
        (case("heads", recipe={"base": "int8-static"}), 15, "heads"),
        (case("heads", recipe={"base": "int8-static", "sqnr_floor_db": "22"}), 22, "heads"),
        (case("pruned", recipe={"file": "p.onnx", "holds": "fp32"}), 10, "pruned"),
        (
            case("pruned", recipe={"file": "p.onnx", "holds": "fp32", "sqnr_floor_db": "30"}),
            30,
            "pruned",
        ),
    ],
    ids=lambda value: value.variant.precision if isinstance(value, Case) else None,
)
def test_floor(asked: Case, sqnr_db: float, of: str) -> None:
    found = floor_of(asked)
    assert (found.sqnr_db, found.of) == (sqnr_db, of)


def on(name: str, **options: str) -> Provider:
    return Provider(alias=name, name=f"{name}ExecutionProvider", options=options)


@pytest.mark.parametrize(
    ("provider", "asked", "sqnr_db", "of"),
    [
        (on("CUDA"), case("native"), 40, "native in TF32"),
        (on("Tensorrt", trt_fp16_enable="False"), case("fp32"), 40, "fp32 in TF32"),
        (on("CUDA", use_tf32="1"), case("fp32"), 40, "fp32 in TF32"),
        (on("CUDA", use_tf32="0"), case("native"), 60, "native"),
        (on("OpenVINO"), case("native"), 60, "native"),
        (on("CUDA"), case("fp16", recipe={"base": "fp16"}), 40, "fp16"),
        (on("CUDA"), case("int4", recipe={"base": "int4"}), 10, "int4"),
        (on("CUDA"), case("mine", recipe={"base": "fp32", "sqnr_floor_db": "55"}), 55, "mine"),
    ],
)
def test_products_in_tf32_keep_as_many_bits_as_float16(
    provider: Provider, asked: Case, sqnr_db: float, of: str
) -> None:
    found = floor_of(replace(asked, provider=provider))
    assert (found.sqnr_db, found.of) == (sqnr_db, of)


@pytest.mark.parametrize(
    ("asked", "agreement"),
    [
        (case("native"), 0.99),
        (case("fp16", recipe={"base": "fp16"}), 0.99),
        (case("int8-static", recipe={"base": "int8-static"}), 0.90),
        (case("native", ops=QDQ), 0.90),
        (case("int4", recipe={"base": "int4"}), 0.80),
    ],
    ids=lambda value: value.variant.precision if isinstance(value, Case) else None,
)
def test_agreement_of_whole_values(asked: Case, agreement: float) -> None:
    assert floor_of(asked).agreement == agreement


@pytest.mark.parametrize(
    ("asked", "fixed"),
    [
        (case("int8-static", recipe={"base": "int8-static"}), True),
        (case("int8-dynamic", recipe={"base": "int8-dynamic"}), False),
        (case("fp16", recipe={"base": "fp16"}), False),
        (case("qat", recipe={"file": "q.onnx", "holds": "int8"}), True),
        (case("pruned", recipe={"file": "p.onnx", "holds": "fp32"}), False),
        (case("native", ops=QDQ), True),
        (case("native"), False),
        (case("native", ops=QDQ, reference="fp32"), True),
    ],
    ids=lambda value: value.variant.precision if isinstance(value, Case) else None,
)
def test_fixed_ranges_hold_at_the_calibrated_magnitude_only(asked: Case, fixed: bool) -> None:
    assert has_fixed_ranges(asked) is fixed
