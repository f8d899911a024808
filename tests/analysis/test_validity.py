"""Every flag that one result can tell: where it is raised, where it is not, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import pytest

from pytest_ortbench.analysis.samples import reduce_blocks
from pytest_ortbench.analysis.steadiness import judge_warm_up
from pytest_ortbench.analysis.validity import flags_of
from pytest_ortbench.core.case import Sampling
from pytest_ortbench.core.dataset import Dataset
from pytest_ortbench.core.flags import FLAGS, SEVERITIES
from pytest_ortbench.core.model import SubnormalWeight
from pytest_ortbench.core.outcome import (
    Accuracy,
    CaseResult,
    Measurement,
    OutputAccuracy,
    OutputCheck,
    Placement,
    Samples,
)
from pytest_ortbench.core.precision import HOLDS, OWN_FILE
from pytest_ortbench.passes.energy.facts import Energy, EnergyWindow
from pytest_ortbench.passes.task.facts import TaskAccuracy
from pytest_ortbench.planning.providers import parse_provider
from tests.results_factory import (
    draw_durations,
    make_accuracy,
    make_block,
    make_case,
    make_measurement,
    make_model,
    make_placement,
    make_result,
    make_samples,
    make_turns,
    make_turns_in_state,
    make_yardstick,
)


def detail(result: CaseResult, name: str) -> str | None:
    """Detail of a flag, ``None`` if it is not raised."""
    found = {flag.name: flag.detail for flag in flags_of(result)}
    assert set(found) <= set(FLAGS)
    assert all(found.values())
    return found.get(name)


def of_samples(*workers: Samples, threads: int = 2, cpus: int = 2) -> CaseResult:
    return make_result(
        measurements=[
            make_measurement(samples=samples, worker=index, threads=threads, cpus=cpus)
            for index, samples in enumerate(workers)
        ]
    )


def of_durations(*workers: Sequence[int]) -> CaseResult:
    return of_samples(*(make_samples(durations) for durations in workers))


def test_a_sound_result_has_no_flag():
    assert flags_of(make_result()) == ()


def test_operators_of_python_are_named():
    case = make_case()
    session = replace(case.session, custom_ops=("/a/libops.so", "/a/ops.py"))
    result = replace(make_result(), case=replace(case, session=session))
    assert detail(result, "PYTHON-OPS") == "ops.py"


def test_a_device_that_is_a_program_is_named():
    made = make_result(workers=2)
    workers = tuple(
        replace(worker, runtime=replace(worker.runtime, software_device="SwiftShader"))
        for worker in made.measurements
    )
    assert detail(replace(made, measurements=workers), "SOFTWARE") == "SwiftShader"


@pytest.mark.parametrize(
    ("provider", "precision", "bits", "named"),
    [
        ("openvino", "native", 7, ["7", "bfloat16", "openvino.load_config"]),
        ("tensorrt", "fp32", 10, ["10", "TF32"]),
        ("openvino", "native", 23, None),
        ("openvino", "native", None, None),
        # Half precision was asked for: what float32 would lose says nothing of it.
        ("openvino", "fp16", 7, None),
    ],
)
def test_products_that_lose_bits_are_noted(provider, precision, bits, named):
    made = make_result(case=make_case(precision=precision, provider=provider))
    result = replace(made, placement=replace(made.placement, product_bits=bits))
    said = detail(result, "LOWERED")
    assert (said is None) is (named is None)
    assert [name for name in named or () if name not in said] == []
    assert FLAGS["LOWERED"].severity == "notes"


@pytest.mark.parametrize(
    ("provider", "concurrency", "flagged"),
    [("webgpu", 3, True), ("webgpu", 1, False), ("cpu", 3, False), ("cuda", 3, False)],
)
def test_callers_that_wait_for_each_other_are_noted(provider, concurrency, flagged):
    made = make_result()
    case = replace(made.case, provider=parse_provider(provider), concurrency=concurrency)
    names = [flag.name for flag in flags_of(replace(made, case=case))]
    assert ("IN-TURN" in names) is flagged


def test_a_failed_result_has_no_flag_of_durations():
    assert flags_of(make_result(status="crash")) == ()


def warmed(*steady: bool, count: int = 400) -> CaseResult:
    made = make_result(count=count, workers=len(steady))
    rule = "3.33 s used after 3 runs, too few to see a trend"
    return replace(
        made,
        measurements=tuple(
            each if ended else replace(each, warm_up=replace(each.warm_up, steady=False, rule=rule))
            for each, ended in zip(made.measurements, steady, strict=True)
        ),
    )


def test_a_warm_up_that_was_cut_off_is_said():
    assert detail(warmed(True, False, False), "WARM-UP") == (
        "2 of 3 workers: 3.33 s used after 3 runs, too few to see a trend"
    )
    assert detail(warmed(True, True, True), "WARM-UP") is None
    assert FLAGS["WARM-UP"].severity == "notes"


def test_one_process_is_said():
    assert detail(make_result(workers=1), "ONE-WORKER") == ("all 400 samples come from one process")
    assert detail(make_result(workers=2), "ONE-WORKER") is None
    # The second one crashed: there is no number that could be trusted too much.
    crashed = make_result(status="crash", measurements=[make_measurement()])
    assert detail(crashed, "ONE-WORKER") is None


def test_workers_that_found_no_time_left_are_said():
    assert detail(make_result(workers=2), "FEWER-WORKERS") == "2 of 3"
    assert detail(make_result(), "FEWER-WORKERS") is None
    # The one that crashed is said by the status.
    crashed = make_result(status="crash", measurements=[make_measurement()])
    assert detail(crashed, "FEWER-WORKERS") is None


def test_flags_come_in_the_order_of_the_registry():
    result = make_result(count=5, accuracy=make_accuracy(sqnr_db=10.0))
    names = [flag.name for flag in flags_of(result)]
    assert names == ["INACCURATE", "LOW-N"]


def test_what_bars_a_case_comes_before_what_only_informs():
    # A narrow table shows the first flag and how many more there are.
    order = [SEVERITIES.index(kind.severity) for kind in FLAGS.values()]
    assert order == sorted(order)
    assert next(iter(FLAGS)) == "NONFINITE"


# -- precision and accuracy -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "executed", "emulated"),
    [
        ("fp16", "float32", True),
        ("bf16", "float32", True),
        ("fp16", "float16", False),
        ("bf16", "bfloat16", False),
        ("fp16", None, False),
        ("native", "float32", False),
        ("int8-static", "float32", False),
    ],
)
def test_emulated(precision: str, executed: str | None, emulated: bool):
    result = make_result(
        case=make_case(precision=precision),
        placement=make_placement(precision_executed=executed),
    )
    said = detail(result, "EMULATED")
    assert said == (f"{precision} was requested, but kernels read {executed}" if emulated else None)


@pytest.mark.parametrize(
    ("precision", "products", "emulated"),
    [
        ("int8-static", {"float32": 12}, True),
        ("int8-dynamic", {"float32": 12}, True),
        ("int8-static", {"float16": 2, "float32": 12}, True),
        # Some of its products stay in single precision by choice.
        ("int8-static", {"float32": 11, "uint8": 1}, False),
        ("int8-dynamic", {"float32": 3, "int8": 9}, False),
        # The inside of what a compiler made is not seen.
        ("int8-static", {}, False),
        ("int4", {"float32": 12}, False),
        ("native", {"float32": 12}, False),
        ("fp32", {"float32": 12}, False),
    ],
)
def test_a_variant_in_int8_of_which_no_product_is_in_integers_is_emulated(
    precision: str, products: dict[str, int], emulated: bool
) -> None:
    placement = replace(make_placement(precision_executed=None), products=products)
    result = make_result(case=make_case(precision=precision), placement=placement)
    assert ("EMULATED" in [flag.name for flag in flags_of(result)]) is emulated


@pytest.mark.parametrize(
    ("weights", "casts", "executed", "emulated"),
    [
        ("float16", 0, "float32", True),
        ("bfloat16", 0, "float32", True),
        ("float16", 0, "float16", False),
        ("float16", 0, None, False),
        # Some operators in between are kept in single precision.
        ("float16", 5, "float32", True),
        # Weights are stored in half precision, and the file converts each of them.
        ("float16", 6, "float32", False),
        ("float", 0, "float32", False),
    ],
)
def test_a_file_in_half_precision_that_kernels_read_in_another_one_is_emulated(
    weights: str, casts: int, executed: str | None, emulated: bool
) -> None:
    case = make_case(precision="native")
    ops = {"MatMul": 4, "Conv": 2, "Add": 9, "Cast": casts}
    model = replace(case.model, op_types=ops, weight_types={weights: 1000, "int64": 8})
    placement = make_placement(precision_executed=executed)
    result = make_result(case=replace(case, model=model), placement=placement)
    assert (detail(result, "EMULATED") is not None) is emulated


def test_a_variant_of_the_users_is_emulated_by_what_its_file_holds() -> None:
    case = make_case(precision="small")
    recipe = {OWN_FILE: "small.onnx", HOLDS: "fp16"}
    case = replace(case, variant=replace(case.variant, recipe=recipe))
    for executed, emulated in (("float32", True), ("float16", False)):
        result = make_result(case=case, placement=make_placement(precision_executed=executed))
        assert (detail(result, "EMULATED") is not None) is emulated


@pytest.mark.parametrize(
    ("precision", "floor"),
    [("native", 60), ("fp32", 60), ("fp16", 40), ("bf16", 30), ("int8-static", 15), ("int4", 10)],
)
def test_accuracy_floor_of_each_precision(precision: str, floor: int):
    case = make_case(precision=precision)
    below = make_result(case=case, accuracy=make_accuracy(sqnr_db=floor - 0.5))
    at = make_result(case=case, accuracy=make_accuracy(sqnr_db=float(floor)))
    said = detail(below, "INACCURATE")
    assert said == (
        f"logits: SQNR {floor - 0.5:.1f} dB, below the minimum of {floor} dB for {precision}"
    )
    assert detail(at, "INACCURATE") is None


def test_an_output_of_another_shape_is_told_by_its_shapes() -> None:
    accuracy = make_accuracy(sqnr_db=0.0)
    (output,) = accuracy.outputs
    misfit = "[1, 7], [1, 8]"
    result = make_result(accuracy=replace(accuracy, outputs=(replace(output, mismatch=misfit),)))
    assert misfit in str(detail(result, "INACCURATE"))


def test_half_precision_weights_behind_fp32_are_inaccurate():
    # 9.5 % relative error is 20 dB: fine for int8, not for fp32.
    accuracy = make_accuracy(sqnr_db=20.4)
    assert detail(make_result(accuracy=accuracy), "INACCURATE") is not None
    quantised = make_result(case=make_case(precision="int8-static"), accuracy=accuracy)
    assert detail(quantised, "INACCURATE") is None


def test_exact_outputs_are_accurate():
    assert detail(make_result(accuracy=make_accuracy(sqnr_db=None)), "INACCURATE") is None


def test_broken_outputs_are_inaccurate():
    result = make_result(accuracy=make_accuracy(finite=False, sqnr_db=None))
    assert detail(result, "INACCURATE") == "logits: 5 NaN, 0 infinite"


def test_random_models_are_never_inaccurate():
    model = replace(make_model(), random_ops=("RandomNormal",))
    result = make_result(case=make_case(model=model), accuracy=make_accuracy(sqnr_db=1.0))
    assert detail(result, "INACCURATE") is None


@pytest.mark.parametrize(
    ("precision", "agree", "rows", "inaccurate"),
    [
        ("native", 8, 8, False),
        ("native", 7, 8, False),
        ("native", 6, 8, True),
        ("native", 950, 1000, True),
        ("native", 985, 1000, False),
        ("int8-static", 6, 8, False),
        ("int8-static", 4, 8, True),
    ],
)
def test_agreement_counts_only_where_it_proves_something(
    precision: str, agree: int, rows: int, inaccurate: bool
):
    output = OutputAccuracy(name="label", kind="integer", finite=True, agree=agree, rows=rows)
    result = make_result(
        case=make_case(precision=precision), accuracy=Accuracy(samples=8, outputs=(output,))
    )
    said = detail(result, "INACCURATE")
    assert (said is not None) == inaccurate
    if said is not None:
        assert said.startswith(f"label: {agree} of {rows} rows agree")


def checks(*nonfinite: int, constant: bool = False) -> list[OutputCheck]:
    return [
        OutputCheck(run=run, nonfinite=count, constant=constant, digest="d")
        for run, count in zip(("first", "middle", "last"), nonfinite, strict=True)
    ]


def test_nan_from_the_second_call_on_is_found():
    measurement = make_measurement(output_checks=checks(0, 12, 9))
    result = make_result(measurements=[measurement])
    assert detail(result, "NONFINITE") == "12 values in the middle run"


def test_nan_that_the_model_itself_gives_is_found_too():
    def with_checks(*nonfinite: int, finite: bool = True) -> CaseResult:
        return make_result(
            measurements=[make_measurement(output_checks=checks(*nonfinite))],
            accuracy=make_accuracy(finite=finite, sqnr_db=None),
        )

    assert detail(with_checks(3, 3, 3), "NONFINITE") == "3 values in the first run"
    assert detail(with_checks(3, 3, 7), "NONFINITE") == "7 values in the last run"
    assert detail(with_checks(3, 3, 3, finite=False), "NONFINITE") is not None
    uncompared = replace(with_checks(3, 3, 3), accuracy=Accuracy(reason="no reference"))
    assert detail(uncompared, "NONFINITE") is not None
    # What is known to be broken is not called unknown besides.
    assert detail(uncompared, "UNJUDGED") is None


def test_nan_in_one_of_the_compared_sets_is_found():
    output = replace(make_accuracy(sqnr_db=None).outputs[0], nonfinite=4, reference_nonfinite=4)
    fine = replace(output, name="boxes", nonfinite=0, reference_nonfinite=0)
    result = make_result(accuracy=Accuracy(samples=8, outputs=(fine, output)))
    assert detail(result, "NONFINITE") == "4 values of logits in the compared runs"


def test_nan_in_the_inputs_is_named_as_the_cause():
    looked_at = [replace(check, nonfinite_inputs=2) for check in checks(5, 5, 5)]
    result = make_result(measurements=[make_measurement(output_checks=looked_at)])
    assert detail(result, "NONFINITE") == (
        "5 values in the first run; the inputs themselves hold 2 NaN or infinite values"
    )
    # A model that takes NaN for a missing value and answers with numbers is fine.
    finite = [replace(check, nonfinite=0) for check in looked_at]
    assert (
        detail(make_result(measurements=[make_measurement(output_checks=finite)]), "NONFINITE")
        is None
    )


@pytest.mark.parametrize(
    ("accuracy", "reason"),
    [
        (
            Accuracy(reason="no reference: it ran out of memory"),
            "no reference: it ran out of memory",
        ),
        (Accuracy(samples=8), "the reference has no outputs"),
        (replace(make_accuracy(), samples=0), "no input set was compared"),
        (
            Accuracy(
                samples=8,
                outputs=(
                    OutputAccuracy(name="y", kind="float", finite=True, exact=True, compared=0),
                ),
            ),
            "no value could be compared: every output is empty, or the reference is not finite "
            "there",
        ),
        (
            Accuracy(
                samples=8,
                outputs=(
                    OutputAccuracy(
                        name="y", kind="float", finite=True, compared=60, reference_nonfinite=4
                    ),
                ),
            ),
            "the reference gives 4 NaN or infinite values of y, where the case gives finite ones",
        ),
    ],
)
def test_accuracy_that_could_not_be_judged_says_why(accuracy: Accuracy, reason: str):
    result = make_result(accuracy=accuracy)
    assert detail(result, "UNJUDGED") == f"accuracy: {reason}"
    assert detail(result, "INACCURATE") is None
    assert FLAGS["UNJUDGED"].severity == "bars"


def test_outputs_that_were_never_compared_are_not_judged():
    result = replace(make_result(), accuracy=None)
    assert detail(result, "UNJUDGED") == "accuracy: outputs were not compared with a reference"


def test_labels_judge_what_no_reference_can():
    task = TaskAccuracy(
        dataset="d.npz",
        metric="top-1",
        samples=2000,
        score_sum=1800.0,
        largest=1.0,
        reference="fp32",
        reference_sum=1800.0,
        difference_squares=0.0,
    )
    unknown = replace(make_result(), accuracy=Accuracy(reason="no reference"), task=task)
    assert detail(unknown, "UNJUDGED") is None
    few = replace(unknown, task=replace(task, samples=4, score_sum=4.0, reference_sum=4.0))
    said = detail(few, "UNJUDGED")
    assert said is not None
    assert said.startswith("accuracy: no reference; task: 4 samples ")


def test_a_dataset_that_was_never_scored_is_not_judged():
    case = replace(make_case(), dataset=Dataset(path="/data/digits.npz"))
    assert detail(make_result(case=case), "UNJUDGED") == (
        "task: no labelled data was given (--ort-dataset)"
    )


def test_a_cut_warm_up_with_too_few_samples_to_tell_is_not_judged():
    said = detail(warmed(False, False, False, count=1), "UNJUDGED")
    assert said == (
        "warm-up: cut off in 3 of 3 workers (3.33 s used after 3 runs, too few to see a trend), "
        "and 1 sample can't show whether the times are steady; raise --ort-time"
    )
    # Twelve samples have thirds, and those of most workers decide.
    assert detail(warmed(False, False, False, count=12), "UNJUDGED") is None
    assert detail(warmed(True, True, False, count=1), "UNJUDGED") is None
    assert detail(warmed(True, False, False, count=1), "UNJUDGED") is not None


@pytest.mark.parametrize(
    ("count", "runs_ns", "judged"),
    [
        (3, (150, 104, 100), True),
        (8, (300, 200, 109, 108), True),
        (8, (300, 200, 120, 115), False),  # still falling: the samples are faster than its end
        (8, (100, 80, 70), False),
        (8, (150, 100), False),
        (2, (150, 104, 100), False),
        (8, (), False),
    ],
)
def test_few_samples_are_held_against_the_later_warm_up_runs(
    count: int, runs_ns: tuple[int, ...], judged: bool
):
    result = warmed(False, False, False, count=count)
    measurements = []
    for entry in result.measurements:
        timed_ns = median(entry.samples.durations_ns)
        runs = tuple(round(timed_ns * run / 100) for run in runs_ns)
        warm_up = replace(entry.warm_up, durations_ns=runs, count=len(runs))
        measurements.append(replace(entry, warm_up=warm_up))
    result = replace(result, measurements=tuple(measurements))
    assert judge_warm_up(result).is_unjudged is not judged


def test_a_failed_case_has_no_judgement():
    assert detail(make_result(status="crash"), "UNJUDGED") is None


def test_runs_that_differ_are_inaccurate():
    accuracy = replace(make_accuracy(), repeatable=False, repeat_note="their norm by 0.2")
    assert detail(make_result(accuracy=accuracy), "INACCURATE") == "their norm by 0.2"


@pytest.mark.parametrize(
    ("type_name", "inaccurate"), [("tensor(uint8)", False), ("tensor(int64)", True)]
)
def test_one_step_of_a_quantised_output_is_rounding(type_name: str, inaccurate: bool):
    made = make_model()
    model = replace(made, outputs=(replace(made.outputs[0], name="y", type=type_name),))
    output = OutputAccuracy(
        name="y", kind="integer", finite=True, max_abs=1.0, agree=900, rows=1000
    )
    result = make_result(
        case=make_case(model=model), accuracy=Accuracy(samples=8, outputs=(output,))
    )
    assert (detail(result, "INACCURATE") is not None) == inaccurate


def test_subnormal_outputs_are_said():
    looked_at = [replace(check, subnormal=7) for check in checks(0, 0, 0)]
    result = make_result(measurements=[make_measurement(output_checks=looked_at)])
    assert detail(result, "SUBNORMAL") == "7 values in the first run"


def test_subnormal_weights_are_said_where_the_outputs_are_as_usual():
    slow = tuple(
        SubnormalWeight(name=name, node="mm", op_type="MatMul", values=9, value_share=0.5)
        for name in ("w", "v")
    )
    case = make_case(model=replace(make_model(), subnormal_weights=slow))
    assert detail(make_result(case=case), "SUBNORMAL") == "weight 'w', weight 'v'"


def test_constant_outputs_are_said():
    measurement = make_measurement(output_checks=checks(0, 0, 0, constant=True))
    assert detail(make_result(measurements=[measurement]), "CONSTANT") is not None


def test_partial_placement_names_the_operators():
    elsewhere = {"TopK": 1, "Resize": 9, "A": 2, "B": 2, "C": 2, "D": 2}
    placement = make_placement("OpenVINOExecutionProvider", elsewhere=elsewhere)
    result = make_result(case=make_case(provider="openvino"), placement=placement)
    assert detail(result, "PARTIAL") == (
        "18 computing nodes on other providers, 76.9 % on OpenVINOExecutionProvider: 9 Resize, 2 "
        "A, 2 B, 2 C, 2 D and 1 more operators"
    )


def test_shape_nodes_on_the_cpu_are_not_partial():
    placement = Placement(
        provider="CUDAExecutionProvider",
        executed={"CUDAExecutionProvider": 10},
        shape_only={"CPUExecutionProvider": 5},
    )
    assert detail(make_result(placement=placement), "PARTIAL") is None


# -- time -------------------------------------------------------------------------------------


def level_change(seed: int, factor: float) -> list[int]:
    """Samples whose last 60 % are ``factor`` times the first."""
    return [
        round(duration * (1 if index < 200 else factor))
        for index, duration in enumerate(draw_durations(500, seed=seed))
    ]


def test_most_workers_that_get_faster_are_unsteady():
    result = of_durations(level_change(0, 0.9), level_change(1, 0.9), draw_durations(500, seed=2))
    said = detail(result, "UNSTEADY")
    assert said is not None
    assert said.startswith("last third compared with first third in 2 of 3 workers: -10.")


def test_one_worker_or_opposite_workers_are_not_unsteady():
    one = of_durations(level_change(0, 0.9), draw_durations(500, seed=1), draw_durations(500))
    opposite = of_durations(level_change(0, 0.9), level_change(1, 1.1), draw_durations(500))
    assert detail(one, "UNSTEADY") is None
    assert detail(opposite, "UNSTEADY") is None


def test_small_changes_are_allowed():
    assert (
        detail(of_durations(*(level_change(seed, 1.02) for seed in range(3))), "UNSTEADY") is None
    )


def test_changes_within_the_noise_of_segments_are_allowed():
    wavy = [
        round(duration * (1.2 if index // 25 % 2 else 1.0) * (1.05 if index > 300 else 1.0))
        for index, duration in enumerate(draw_durations(500))
    ]
    assert detail(of_durations(wavy, wavy, wavy), "UNSTEADY") is None


def with_ticks(steal: int, total: int) -> Samples:
    block = make_block(draw_durations(100), steal_ticks=steal, total_ticks=total)
    return reduce_blocks([block], keep=0, clock_pair_ns=100)


def test_steal_is_a_share_over_all_workers():
    assert detail(of_samples(with_ticks(9, 100), with_ticks(0, 100)), "STEAL") == (
        "4.5 % of the CPU time"
    )
    assert detail(of_samples(with_ticks(3, 100), with_ticks(0, 100)), "STEAL") is None


def with_shares(*shares: float) -> Samples:
    blocks = [make_block(draw_durations(50), cpu_share=share) for share in shares]
    return reduce_blocks(blocks, keep=0, clock_pair_ns=100)


def test_cpu_share_counts_blocks_of_all_workers():
    starved = of_samples(with_shares(2.0, 2.0, 1.2), with_shares(2.0, 2.0, 1.0))
    assert detail(starved, "CPU-SHARE") == "2 of 6 blocks; 1.70 of 2 CPUs in use on average"
    enough = of_samples(with_shares(2.0, 2.0, 1.9), with_shares(2.0, 2.0, 1.0))
    assert detail(enough, "CPU-SHARE") is None


def test_a_cpu_worker_that_never_had_a_core_is_starved():
    result = of_samples(with_shares(0.6, 0.6, 0.6))
    assert detail(result, "CPU-SHARE") == "3 of 3 blocks; 0.60 of 2 CPUs in use on average"


@pytest.mark.parametrize(
    ("ways", "best_ns", "is_flagged"),
    [
        ([350, 350, 350, 900], 350, True),
        ([350] * 19 + [900], 350, False),
        ([350, 500], 350, False),
        ([350, None], 350, False),
        ([900], None, False),
        ([900], 350, True),
        ([], 350, False),
    ],
)
def test_cpus_far_apart_in_more_than_a_tenth_of_the_rounds(
    ways: list[int | None], best_ns: int | None, is_flagged: bool
):
    turns = [make_turns(handover_ns=ways, best_handover_ns=best_ns) for _ in range(3)]
    result = make_result(workers=3, turns=turns)
    assert any(flag.name == "FAR-CPUS" for flag in flags_of(result)) == is_flagged


@pytest.mark.parametrize(
    ("slowdown", "threads", "is_flagged"),
    [(1.2, 1, False), (1.3, 1, True), (1.3, 2, False), (1.5, 2, True)],
)
def test_a_memory_that_others_use(slowdown: float, threads: int, is_flagged: bool):
    yardstick = make_yardstick(threads=threads)
    turns = make_turns_in_state(0, passes=1.0, yardstick=yardstick)
    passes = tuple(round(slowdown * took) for took in turns.memory_low_ns)
    turns = replace(turns, memory_mean_ns=passes)
    result = make_result(workers=3, turns=[turns] * 3)
    assert any(flag.name == "MEMORY-BUSY" for flag in flags_of(result)) == is_flagged
    assert any(flag.name == "MEMORY-BUSY" for flag in flags_of(make_result(workers=3))) is False


def test_a_device_worker_may_wait():
    result = of_samples(with_shares(0.3, 0.2, 0.3))
    waiting = replace(result, case=make_case(provider="cuda"))
    assert detail(waiting, "CPU-SHARE") is None


def test_a_provider_without_a_device_is_judged_by_what_its_runtime_saw():
    result = of_samples(with_shares(0.3, 0.2, 0.3))
    unknown = replace(result, case=make_case(provider="openvino"))
    assert detail(unknown, "CPU-SHARE") is None
    assert detail(_seeing(unknown, "cpu"), "CPU-SHARE") is not None
    assert detail(_seeing(unknown, "cpu", "gpu"), "CPU-SHARE") is None
    assert detail(replace(result, case=make_case(provider="openvino:CPU")), "CPU-SHARE") is not None
    gpu = replace(result, case=make_case(provider="openvino:GPU"))
    assert detail(_seeing(gpu, "cpu"), "CPU-SHARE") is None


def _seeing(result: CaseResult, *devices: str) -> CaseResult:
    seen = {"OpenVINOExecutionProvider": devices}
    return replace(
        result,
        measurements=tuple(
            replace(worker, runtime=replace(worker.runtime, provider_devices=seen))
            for worker in result.measurements
        ),
    )


def test_throttled():
    block = make_block(draw_durations(100), throttled_ns=30_000_000)
    result = of_samples(reduce_blocks([block], keep=0, clock_pair_ns=100))
    assert detail(result, "THROTTLED") == "30.0 ms of 300 ms timed"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((None, None), None),
        ((0, 0), None),
        ((0, 1), "another process"),
        ((1, 3), "3 other processes"),
    ],
)
def test_other_processes_on_the_device(counts, expected):
    one, other = of_samples(make_samples(), make_samples()).measurements
    shared = tuple(
        replace(each, memory=replace(each.memory, device_neighbours=count))
        for each, count in zip((one, other), counts, strict=True)
    )
    result = replace(of_samples(make_samples(), make_samples()), measurements=shared)
    assert detail(result, "NEIGHBOUR") == expected


def test_more_threads_than_cpus():
    """T2: 32 threads on two CPUs are flagged."""
    samples = make_samples()
    assert detail(of_samples(samples, threads=32, cpus=2), "THREADS>CPUS") == (
        "32 threads (affinity) on 2 CPUs"
    )
    assert detail(of_samples(samples, threads=2, cpus=2), "THREADS>CPUS") is None
    assert detail(of_samples(samples, threads=4, cpus=0), "THREADS>CPUS") is None


def test_resolution():
    coarse = make_samples([9_000] * 400, clock_pair_ns=101)
    said = detail(of_samples(coarse), "RESOLUTION")
    assert said == "reading the clock twice costs 101 ns, 1.1 % of the median"
    assert detail(of_samples(make_samples([11_000] * 400, clock_pair_ns=101)), "RESOLUTION") is None


def test_low_n():
    few = of_durations(*([3_000_000 + index for index in range(11)] for _ in range(3)))
    assert detail(few, "LOW-N") == "33 samples, 36 needed"
    limited = replace(make_result(count=100), case=make_case(sampling=Sampling(min_samples=368)))
    assert detail(limited, "LOW-N") == "300 samples, 368 needed"
    assert detail(make_result(count=12), "LOW-N") is None


def at_levels(*levels: float, count: int = 200, inside: float = 0.0) -> CaseResult:
    """Workers at these levels; within each the durations grow by the share ``inside``."""
    return of_durations(
        *(
            [
                round(duration * level * (1 + inside * index / count))
                for index, duration in enumerate(draw_durations(count))
            ]
            for level in levels
        )
    )


def test_spread_and_drift():
    assert detail(at_levels(1.0, 1.2, 1.1), "SPREAD") == (
        "medians from 3.00 ms to 3.60 ms, 20.0 % apart"
    )
    assert detail(at_levels(1.0, 1.2, 1.1), "DRIFT") is None
    assert detail(at_levels(1.0, 1.09, 1.02), "SPREAD") is None
    assert detail(at_levels(1.0, 1.11, 1.02), "SPREAD") is not None
    up, down = at_levels(1.0, 1.1, 1.2, inside=0.1), at_levels(1.2, 1.1, 1.0, inside=-0.1)
    assert detail(up, "DRIFT") == "+20.0 % from the first worker to the last"
    assert detail(down, "DRIFT") == "-16.7 % from the first worker to the last"
    assert detail(at_levels(1.0, 1.2, 1.1, inside=0.1), "DRIFT") is None
    assert detail(at_levels(1.0, 1.2, inside=0.1), "DRIFT") is None


def test_workers_that_are_in_order_by_chance_do_not_drift():
    assert detail(at_levels(1.0, 1.1, 1.2, inside=-0.1), "DRIFT") is None
    assert detail(at_levels(1.2, 1.1, 1.0, inside=0.1), "DRIFT") is None
    too_few = of_durations([1000] * 11, [1200] * 11, [1400] * 11)
    assert detail(too_few, "DRIFT") is None


def test_spread_needs_intervals_that_are_apart():
    wide = [range(2_000_000, 4_000_000, 250_000), range(2_200_000, 4_400_000, 250_000)]
    assert detail(of_durations(*wide), "SPREAD") is None


def test_workers_are_ordered_by_their_index():
    drifting = at_levels(1.0, 1.1, 1.2, inside=0.1)
    shuffled: tuple[Measurement, ...] = tuple(drifting.measurements[index] for index in (1, 0, 2))
    assert detail(replace(drifting, measurements=shuffled), "DRIFT") is not None


def test_bimodal():
    two = [3_000_000 if index % 3 else 4_000_000 for index in range(300)]
    said = detail(of_durations(two, two, draw_durations(300)), "BIMODAL")
    assert said is not None
    assert "around 4.00 ms, the rest around 3.00 ms, in 2 of 3 workers" in said
    assert detail(of_durations(two, draw_durations(300), draw_durations(300)), "BIMODAL") is None


def energy(counter_j: float | None, integral_j: float | None) -> CaseResult:
    window = EnergyWindow(
        source="nvml energy counter", device="GPU-0", duration_ns=5 * 10**9, inferences=100,
        energy_j=100.0, counter_j=counter_j, integral_j=integral_j,
    )  # fmt: skip
    return make_result(energy=Energy(windows=(window,)))


def test_energy_sources_that_disagree():
    assert detail(energy(187.0, 327.0), "ENERGY-DISAGREE") == (
        "counter 187 J, integrated power 327 J"
    )
    assert detail(energy(100.0, 108.0), "ENERGY-DISAGREE") is None
    assert detail(energy(100.0, None), "ENERGY-DISAGREE") is None
    assert detail(energy(0.0, 0.0), "ENERGY-DISAGREE") is None


def test_energy_is_judged_over_all_trials():
    """A sensor that sees a quarter of the load is too high in one trial and too low in another."""
    one, other = energy(100.0, 80.0), energy(100.0, 120.0)
    assert one.energy is not None
    assert other.energy is not None
    both = Energy(windows=(*one.energy.windows, *other.energy.windows))
    assert detail(make_result(energy=both), "ENERGY-DISAGREE") is None
    assert detail(one, "ENERGY-DISAGREE") == "counter 100 J, integrated power 80.0 J"


def windows_with(**facts: object) -> CaseResult:
    result = energy(100.0, 100.0)
    assert result.energy is not None
    [window] = result.energy.windows
    return make_result(energy=Energy(windows=(replace(window, **facts),)))


def test_a_device_that_slows_down_is_throttled_and_its_clock_changes():
    slow = windows_with(throttled=("power cap", "thermal"), clock_mhz=(900.0, 1755.0))
    assert detail(slow, "THROTTLED") == "the device under load: thermal"
    assert detail(slow, "CLOCK") == "900 to 1755 MHz on the device"
    # At its power limit a board works as it was built to.
    full = windows_with(throttled=("power cap",), clock_mhz=(1700.0, 1755.0))
    assert detail(full, "THROTTLED") is None
    assert detail(full, "CLOCK") is None


def test_nan_in_the_inputs_is_said_even_where_the_outputs_are_numbers():
    looked_at = [replace(check, nonfinite_inputs=2) for check in checks(0, 0, 0)]
    result = make_result(measurements=[make_measurement(output_checks=looked_at)])
    assert detail(result, "NAN-INPUTS") == "2 of their values"
    assert detail(make_result(), "NAN-INPUTS") is None
    assert FLAGS["NAN-INPUTS"].severity == "notes"


def test_options_that_nothing_confirms_are_named_with_their_reason() -> None:
    result = make_result()
    doubtful = replace(result.measurements[0], unconfirmed={"acme.speed": "nobody says so"})
    told = replace(result, measurements=(doubtful, *result.measurements[1:]))
    flags = {flag.name: flag.detail for flag in flags_of(told)}
    assert flags["UNCONFIRMED"] == "acme.speed: nobody says so"
    assert "UNCONFIRMED" not in {flag.name for flag in flags_of(result)}
