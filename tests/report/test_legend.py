"""What stands beside the table: machine, runtimes, failures, what was left out."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ortbench.core.case import Case, Sampling, SymbolSize
from pytest_ortbench.core.model import TensorInfo
from pytest_ortbench.core.outcome import BudgetShare, CaseResult, Failure
from pytest_ortbench.core.run import Machine, Skip
from pytest_ortbench.report import legend
from pytest_ortbench.report.entries import by_model, shown_run
from tests import results_factory as factory
from tests.report import sample_runs


def test_the_machine_is_named_by_what_tells_machines_apart() -> None:
    machine = Machine(
        host="ci-7",
        stable={"cpu": "AMD EPYC", "cpu_flags": "avx avx2", "cpus_usable": "2", "memory": "24 GiB"},
    )
    run = factory.make_run([], machine=machine)
    assert legend.machine_line(run) == "ci-7: AMD EPYC (avx2), 2 CPUs, 24 GiB"


def test_the_machine_is_named_with_the_instructions_that_precisions_need() -> None:
    flags = "amx_int8 avx avx2 avx512_bf16 avx512_vnni avx512f avx_vnni f16c fma sse4_2"
    machine = Machine(host="ci-8", stable={"cpu": "Xeon", "cpu_flags": flags})
    assert legend.machine_line(factory.make_run([], machine=machine)) == (
        "ci-8: Xeon (amx_int8 avx2 avx512_bf16 avx512_vnni avx512f avx_vnni)"
    )


def test_a_machine_of_another_version_is_named_by_what_there_is() -> None:
    assert legend.machine_line(factory.make_run([])) == (
        "bench-1: cpu_model Example CPU 3000, cpus 2, memory 8 GB"
    )
    bare = factory.make_run([], machine=Machine(host="ci-7"))
    assert legend.machine_line(bare) == "ci-7"


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (
            Failure(kind="crash", phase="measure", message="the worker died", signal="SIGSEGV"),
            "the worker died, SIGSEGV (measuring).",
        ),
        (
            Failure(
                kind="crash",
                phase="session",
                message="died by SIGKILL",
                signal="SIGKILL",
                tells_signal=True,
            ),
            "died by SIGKILL (creating the session).",
        ),
        (
            Failure(kind="crash", phase="first", message="it left.\n", exit_code=3),
            "it left, exit code 3 (running the first inference).",
        ),
        (
            Failure(
                kind="crash",
                phase="measure",
                message="the measured process died with SIGKILL while measuring",
                signal="SIGKILL",
                tells_phase=True,
                tells_signal=True,
            ),
            "the measured process died with SIGKILL while measuring.",
        ),
        (
            Failure(kind="error", phase="later-phase", message="odd", hint="Do this."),
            "odd (later-phase). Do this.",
        ),
        (
            Failure(kind="error", phase="later-phase", message="odd", hint="Did you mean 'x'?"),
            "odd (later-phase). Did you mean 'x'?",
        ),
    ],
)
def test_a_failure_is_one_sentence(failure: Failure, sentence: str) -> None:
    assert legend.failure_sentence(failure) == sentence


def test_failures_that_share_a_reason_are_one_group_with_the_first_log() -> None:
    with_log = sample_runs.FAILURES["crash"]
    results = [
        factory.make_result(
            case=sample_runs.case(batch=batch),
            status="crash",
            failure=dataclasses.replace(with_log, log_tail=log),
        )
        for batch, log in ((1, ""), (2, "the log\n"), (4, "another log\n"))
    ]
    (group,) = legend.failure_groups(shown_run(factory.make_run(results)).entries)
    assert [entry.label for entry in group.entries] == [
        "native/cpu/b1",
        "native/cpu/b2",
        "native/cpu/b4",
    ]
    assert group.log_tail == "the log\n"


def test_a_failure_without_a_record_still_has_a_reason() -> None:
    result = dataclasses.replace(sample_runs.failed(sample_runs.case()), failure=None)
    (group,) = legend.failure_groups(shown_run(factory.make_run([result])).entries)
    assert group.sentence == "the provider, device or library is not available here."


def test_what_was_left_out_is_grouped_by_reason() -> None:
    run = factory.make_run(
        [],
        skips=[
            *(Skip(what=name, reason="takes no node") for name in ("a", "b", "c", "d", "e")),
            Skip(what="f", reason="takes no node", runtime="old"),
        ],
    )
    assert legend.skip_lines(run) == (
        "a, b, c and 2 more: takes no node",
        "f (+old): takes no node",
    )


def test_the_only_runtime_is_not_named_where_something_was_left_out() -> None:
    skips = [Skip(what="azure", reason="takes no node", runtime="current")]
    alone = [factory.make_result()]
    assert legend.skip_lines(factory.make_run(alone, skips=skips)) == ("azure: takes no node",)
    two = [*alone, factory.make_result(case=factory.make_case(runtime="old"))]
    assert legend.skip_lines(factory.make_run(two, skips=skips)) == (
        "azure (+current): takes no node",
    )


def test_what_numbers_include_follows_the_cases() -> None:
    device = dataclasses.replace(sample_runs.case(), io="device", sampling=Sampling(workers=1))
    (latency, workers, threads, names) = legend.includes(
        shown_run(factory.make_run([factory.make_result(case=device)])).entries
    )
    assert latency.startswith(
        "Latency: one inference, device-resident arrays, outputs synchronised"
    )
    assert workers.startswith(
        "1 fresh worker process a case; p50 is its median, with its 95 % interval widened by 5 % "
    )
    assert threads == "Threads of one operator: 2 (affinity)."
    assert names.startswith("native: ")


def test_the_runtime_behind_a_name_is_explained_where_there_are_several() -> None:
    def named(*labels: str) -> list[str]:
        cases = [factory.make_case(precision="fp32", runtime=label) for label in labels]
        results = [factory.make_result(case=case) for case in cases]
        return list(legend.includes(shown_run(factory.make_run(results)).entries))

    one, two = named("current"), named("current", "ort120")
    assert [sentence for sentence in two if sentence.startswith("+ort120 ")] == two[len(one) :]
    assert len(two) == len(one) + 1


def test_what_nobody_said_is_asked_for() -> None:
    def questions(*models: str) -> tuple[str, ...]:
        cases = [sample_runs.case() for _ in models]
        origins = (("H", "default"), ("N", "batch"), ("W", "default"), ("S", "catalogue"))
        resolved = tuple(
            SymbolSize(symbol=symbol, size=224, origin=origin, how=origin)
            for symbol, origin in origins
        )
        results = [
            factory.make_result(
                case=dataclasses.replace(
                    case,
                    model=dataclasses.replace(case.model, name=name),
                    inputs=tuple(
                        dataclasses.replace(spec, resolved=resolved) for spec in case.inputs
                    ),
                )
            )
            for name, case in zip(models, cases, strict=True)
        ]
        plain = legend.includes(shown_run(factory.make_run([factory.make_result()])).entries)
        _catalogue, *asked = legend.includes(shown_run(factory.make_run(results)).entries)[
            len(plain) :
        ]
        return tuple(asked)

    (question,) = questions("a")
    assert question.startswith("The sizes H:224,W:224 of a are defaults")
    assert "--ort-dims=H:224,W:224 " in question
    assert len(questions("a", "b")) == 2
    assert questions("a", "b", "c", "d")[2] == "The sizes of 2 more models are defaults, too."


def test_two_workers_and_their_interval_are_said() -> None:
    def line(workers: int) -> str:
        case = dataclasses.replace(sample_runs.case(), sampling=Sampling(workers=workers))
        return legend.includes(
            shown_run(factory.make_run([factory.make_result(case=case)])).entries
        )[1]

    assert line(2).startswith(
        "2 fresh worker processes a case; p50 is the median of their medians, with its 95 % "
        "interval widened by 5 % each way, or by as much as they differ, because there are "
        "only two; n<368"
    )
    assert line(3).startswith(
        "3 fresh worker processes a case; p50 is the median of their medians, with its 95 % "
        "interval; n<368"
    )


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (330, "330"),
        (25_400, "25.4 k"),
        (999_500, "1.00 M"),
        (3_504_872, "3.50 M"),
        (7 * 10**9, "7.00 G"),
    ],
)
def test_parameters_are_counted_for_people(parameters: int, text: str) -> None:
    model = dataclasses.replace(factory.make_model(), parameters=parameters)
    run = factory.make_run([factory.make_result(case=factory.make_case(model=model))])
    assert f", {text} parameters, " in legend.model_line(by_model(shown_run(run).entries)[0])


def _fed(batch: int, *sizes: SymbolSize) -> CaseResult:
    case = factory.make_case(batch=batch)
    first = SymbolSize(symbol="N", size=batch, origin="batch", how="batch axis")
    spec = dataclasses.replace(case.inputs[0], resolved=(first, *sizes))
    mask = dataclasses.replace(spec, name="mask", shape=(batch, 7))
    return factory.make_result(case=dataclasses.replace(case, inputs=(spec, mask)))


def test_the_line_of_a_model_shows_the_shapes_it_was_fed_and_where_sizes_came_from() -> None:
    sizes = (
        SymbolSize(symbol="H", size=224, origin="default", how="default: image size"),
        SymbolSize(symbol="W", size=224, origin="default", how="default: image size"),
        SymbolSize(symbol="T", size=7, origin="catalogue", how="catalogue"),
    )
    run = factory.make_run([_fed(1, *sizes), _fed(8, *sizes)])
    assert legend.model_line(by_model(shown_run(run).entries)[0]) == (
        "14.0 MB, 3.50 M parameters, builtin:mobilenet_v2, input [1|8, 3, 224, 224], mask [1|8, 7] "
        "(H, W: default: image size; T: catalogue), accuracy on random inputs"
    )


def test_a_model_that_could_not_be_read_has_no_size() -> None:
    case = factory.make_case()
    model = dataclasses.replace(case.model, source="file", size_bytes=0, parameters=0)
    case = dataclasses.replace(case, model=model, inputs=())
    run = factory.make_run([factory.make_result(case=case)])
    assert legend.model_line(by_model(shown_run(run).entries)[0]) == ""


def test_what_is_in_flight_and_how_it_was_started_is_said() -> None:
    def includes_of(*cases: Case) -> str:
        results = [factory.make_result(case=case) for case in cases]
        return legend.includes(shown_run(factory.make_run(results)).entries)[0]

    plain = factory.make_case()
    assert "closed loop, one caller;" in includes_of(plain)
    several = dataclasses.replace(plain, concurrency=2, sessions=2)
    assert "closed loop, 1 to 4 callers;" in includes_of(plain, several)
    in_flight = dataclasses.replace(several, call="async")
    assert "closed loop, 4 callers (run_async and run);" in includes_of(several, in_flight)


def test_outputs_that_are_dictionaries_cost_their_making() -> None:
    table = TensorInfo(name="z", type="seq(map(string,tensor(float)))", shape=None)
    case = factory.make_case()
    model = dataclasses.replace(case.model, name="forest", outputs=(table,))
    result = factory.make_result(case=dataclasses.replace(case, model=model))
    assert legend.includes(shown_run(factory.make_run([result])).entries)[-1] == (
        "Outputs of forest are dictionaries, one a row (ZipMap): making them from arrays, in "
        "Python, is part of the latency. Converted with zipmap=False they are arrays."
    )


def test_inputs_that_are_drawn_beside_real_ones_are_named() -> None:
    case = factory.make_case()
    photo = dataclasses.replace(case.inputs[0], name="photo", path="/data/photos.npz")
    state = dataclasses.replace(case.inputs[0], name="state")
    fed = dataclasses.replace(case, inputs=(photo, state))
    assert fed.drawn_beside_files == ("state",)
    assert case.drawn_beside_files == ()
    run = factory.make_run([factory.make_result(case=fed)])
    assert legend.model_line(by_model(shown_run(run).entries)[0]).endswith(
        "accuracy with random state"
    )


def test_within_a_budget_the_workers_are_those_that_there_were() -> None:
    result = dataclasses.replace(factory.make_result(), budget=BudgetShare(given_s=9.0, workers=3))
    more = dataclasses.replace(result, measurements=result.measurements * 7)
    (counts,) = (
        sentence
        for sentence in legend.includes(shown_run(factory.make_run([more])).entries)
        if "p50 is" in sentence
    )
    assert counts.split(" ")[0] == str(len(more.measurements)) != str(Sampling().workers)
