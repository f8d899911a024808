"""Sixty of onnx's operator tests, chosen by kind: in one run of pytest, and with own inputs."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.operators.backend import operator_tests, write_test
from tests.operators.driver import DRAWN, GIVEN, RESULTS, records, table_of

#: Types, sequences, optionals, text, empty shapes, control flow, contracts on indices and sizes.
NAMES = (
    "affine_grid_2d", "argmax_default_axis_example", "attention_4d_gqa_causal_nonpad_decode",
    "averagepool_2d_default", "basic_conv_with_padding", "batchnorm_example", "bitwise_and_i32_2d",
    "bitshift_left_uint8", "cast_FLOAT_to_BFLOAT16", "cast_FLOAT_to_FLOAT8E4M3FN",
    "cast_FLOAT_to_INT4", "cast_BFLOAT16_to_FLOAT", "center_crop_pad_crop", "clip_example",
    "col2im_pads", "compress_0", "concat_1d_axis_0", "constantofshape_int_zeros", "constant",
    "cumprod_1d", "depthtospace_example", "dynamicquantizelinear", "dft", "einsum_transpose",
    "expand_dim_changed", "gather_0", "gather_elements_0", "gathernd_example_int32", "gelu_tanh_1",
    "gridsample", "group_normalization_example", "gru_defaults", "identity_sequence", "if",
    "if_opt", "loop11", "lstm_defaults", "maxunpool_export_with_output_shape", "melweightmatrix",
    "mod_mixed_sign_int32", "nllloss_NCd1", "nonmaxsuppression_two_batches",
    "onehot_with_axis", "loop16_seq_none", "pow",
    "qlinearmatmul_2D_uint8_float32",
    "ai_onnx_ml_label_encoder_string_int", "reduce_sum_do_not_keepdims_example",
    "resize_upsample_sizes_nearest", "reversesequence_batch", "scatter_elements_with_axis",
    "scatternd", "sce_mean", "sequence_insert_at_back", "slice", "split_to_sequence_1",
    "string_concat", "stft", "tensorscatter", "top_k",
)  # fmt: skip


def test_the_part_has_sixty_models() -> None:
    assert len(set(NAMES)) == 60


@pytest.mark.live
def test_sixty_operators_are_measured_in_one_run_of_pytest(pytester: pytest.Pytester) -> None:
    tests = {test.name.removeprefix("test_"): test for test in operator_tests()}
    for name in NAMES:
        write_test(tests[name], pytester.path)
    pytester.runpytest_subprocess(
        *(f"test_{name}.onnx" for name in NAMES),
        *("-k", "latency", "--ort-providers=cpu", "--ort-time=0.02", "--ort-workers=1"),
    )
    (document,) = pytester.path.glob("results/*/run.json")
    cases = json.loads(document.read_text())["cases"]
    assert Counter(case["status"] for case in cases) == {"measured": 60}


@pytest.mark.live
def test_sixty_operators_are_right_with_their_own_inputs() -> None:
    tests = [test for test in operator_tests() if test.name.removeprefix("test_") in NAMES]
    found = list(records(tests, [GIVEN], set()))
    assert [record["name"] for record in found if record["status"] != "measured"] == []
    wrong = [record["name"] for record in found if not record["equal"]]
    runs = {record["name"]: record["plain"] for record in found}
    assert [name for name in wrong if not runs[name]["runs"] or runs[name]["right"]] == []


@pytest.mark.heavy
def test_all_operators_are_measured() -> None:
    assert_owed(table_of(list(records(operator_tests(), [GIVEN, DRAWN], set()))))


def test_what_was_recorded_is_what_is_owed() -> None:
    assert_owed(json.loads((RESULTS / "table.json").read_text(encoding="utf-8")))


def assert_owed(table: dict[str, object]) -> None:
    """With their own inputs nearly all, with drawn ones 97 %; nothing wrong, each with a reason."""
    operators = table["operators"]
    assert isinstance(operators, dict)
    runs, given, right, drawn = (
        sum(counts[index] for counts in operators.values()) for index in range(1, 5)
    )
    assert runs > 1500
    assert runs - given <= 2  # a batch that the files say and nobody asked for
    assert right == given
    assert drawn >= 0.97 * runs
    missing = table["not_measured"]
    assert isinstance(missing, list)
    assert all(item["reason"] for item in missing)
    assert {item["status"] for item in missing} <= {"unsupported"}
