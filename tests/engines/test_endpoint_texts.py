"""A language model behind a service: what is sent, what is counted, what counts as no answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.generation import Decoder, Generation
from pytest_ortbench.engines.endpoint.worker.openai_writer import OpenAiEndpoint
from pytest_ortbench.engines.seam import EngineRefusal, EngineTask
from pytest_ortbench.passes.load.questions import PutUnderLoad
from pytest_ortbench.passes.load.worker.generator import put_under_load
from pytest_ortbench.worker.percentiles import percentiles_ns
from tests.engines.text_server import TextService, Written, writing, writing_apart
from tests.results_factory import make_case

pytestmark = pytest.mark.live

PROMPT, NEW = 8, 5
AGES_S = 60.0
PERCENTS = (50.0, 99.0)


def case_of(**changes: Any) -> Case:
    case = make_case()
    decoder = Decoder(ids="ids", logits="logits", vocabulary=100, end_tokens=(7,))
    asked = Generation(engine="generate", prompt_tokens=PROMPT, new_tokens=NEW)
    case = replace(case, model=replace(case.model, decoder=decoder), generation=asked, inputs=())
    return replace(case, **changes)


def writer(service: TextService, **options: str) -> OpenAiEndpoint:
    return OpenAiEndpoint(
        EngineTask(
            path=Path("m.onnx"), inputs=(), outputs=(), threads=1, device="openai",
            options={"url": service.url, **options},
        )
    )  # fmt: skip


@pytest.fixture
def service() -> Iterator[TextService]:
    with writing(TextService()) as running:
        yield running


def test_a_request_is_sent_as_tokens_and_counted_by_the_service(service: TextService) -> None:
    # Two tokens in a part: parts are not counted.
    service.in_one = 2
    with closing(writer(service)) as engine:
        engine.open()
        request = engine.requests(case_of()).request(np.arange(PROMPT)[None], NEW)
        in_force = engine.in_force()
    assert (request.prompt_tokens, request.new_tokens, len(request.steps_ns)) == (PROMPT, NEW, NEW)
    assert request.wall_ns >= sum(request.steps_ns) > 0
    assert service.asked == [
        {
            "model": "tiny",
            "prompt": list(range(PROMPT)),
            "max_tokens": NEW,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]
    assert (in_force["model"], in_force["protocol"]) == ("tiny", "openai")


def test_a_name_and_an_end_that_is_ignored_are_asked_for(service: TextService) -> None:
    service.models = ("a", "b")
    with closing(writer(service)) as engine, pytest.raises(EngineRefusal):
        engine.open()
    with closing(writer(service, model="b", ignore_eos="1")) as engine:
        engine.open()
        engine.requests(case_of()).request(np.arange(PROMPT)[None], NEW)
    assert (service.asked[0]["model"], service.asked[0]["ignore_eos"]) == ("b", True)


@pytest.mark.parametrize(
    "models", [("a" * 1_000_000,), tuple(f"{number}{'a' * 400}" for number in range(1000)), ()]
)
def test_names_that_no_message_could_hold_are_refused(
    service: TextService, models: tuple[str, ...]
) -> None:
    service.models = models
    with closing(writer(service)) as engine, pytest.raises(EngineRefusal) as caught:
        engine.open()
    assert caught.value.kind == "unavailable"
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"written": NEW - 1}, "invalid"),
        ({"tells_usage": False}, "invalid"),
        ({"breaks_after": 0}, "broken"),
        ({"breaks_after": 2}, "broken"),
        ({"breaks_after": 2, "breaks_with": {"error": {"message": "no"}}}, "server error"),
        ({"status": 400}, "client error"),
        ({"status": 500}, "server error"),
    ],
)
def test_what_is_no_whole_answer_is_refused_and_counted(
    service: TextService, fault: dict[str, int], kind: str
) -> None:
    def spoil(changes: dict[str, int]) -> None:
        for name, value in changes.items():
            setattr(service, name, value)

    sound = {name: getattr(service, name) for name in fault}
    with closing(writer(service)) as engine:
        engine.open()
        spoil(fault)
        with pytest.raises(EngineRefusal):
            engine.requests(case_of()).request(np.arange(PROMPT)[None], NEW)
        spoil(sound)
        sender = engine.sender_of(case_of(), timeout_s=AGES_S, percents=(50.0,),
                                  holds_failures=False)  # fmt: skip
        for number in range(3):
            spoil(fault if number == 1 else sound)
            done = threading.Event()
            sender.send(lambda _, done=done: done.set(), lambda: None)
            assert done.wait(AGES_S)
        found = sender.close()
    assert (found.sent, found.failed) == (3, {kind: 1})


@pytest.mark.parametrize("status", [200, 429])
@pytest.mark.parametrize(
    ("told", "quoted"),
    [
        ({"message": "queue-is-full", "code": 429}, "queue-is-full"),
        ("queue-is-full", "queue-is-full"),
        ({"message": "queue-\n" + "a" * 10**5}, "queue- aaa"),
    ],
)
def test_what_a_service_says_of_an_error_is_quoted_on_one_line(
    service: TextService, status: int, told: object, quoted: str
) -> None:
    service.status, service.breaks_after, service.breaks_with = status, 1, {"error": told}
    with closing(writer(service)) as engine:
        engine.open()
        with pytest.raises(EngineRefusal) as caught:
            engine.requests(case_of()).request(np.arange(PROMPT)[None], NEW)
    assert quoted in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("models", "step"), [((), "load one"), (("a", "b"), "model='a'")])
def test_a_list_that_names_no_single_model_is_told_with_its_step(
    service: TextService, models: tuple[str, ...], step: str
) -> None:
    service.models = models
    with closing(writer(service)) as engine, pytest.raises(EngineRefusal) as caught:
        engine.open()
    assert step in caught.value.hint


def test_a_service_without_a_list_is_asked_with_a_name(service: TextService) -> None:
    service.models = None
    with closing(writer(service)) as engine, pytest.raises(EngineRefusal) as caught:
        engine.open()
    assert caught.value.kind == "unavailable"
    assert "/v1/models" in str(caught.value)
    assert "--ort-provider-option=endpoint.model=" in caught.value.hint
    with closing(writer(service, model="b")) as engine:
        engine.open()
        engine.requests(case_of()).request(np.arange(PROMPT)[None], NEW)
    assert service.asked[0]["model"] == "b"


def test_several_sequences_and_tokens_before_the_prompt_are_refused(service: TextService) -> None:
    with closing(writer(service)) as engine:
        engine.open()
        asked = Generation(engine="generate", prompt_tokens=PROMPT, new_tokens=NEW, depth=3)
        for changes in ({"batch": 2}, {"generation": asked}):
            with pytest.raises(EngineRefusal):
                engine.requests(case_of(**changes))


ASKED = PutUnderLoad(
    scenario="server",
    percent=90.0,
    expected_per_s=100.0,
    rate_per_s=100.0,
    first_token_s=AGES_S,
    token_time_s=AGES_S,
    least_s=0.7,
    least_queries=68,
)


def test_the_generator_is_told_of_tokens_and_prompts_are_fresh(service: TextService) -> None:
    service.first_s, service.later_s = 0.004, 0.002
    with closing(writer(service)) as engine:
        engine.open()
        sender = engine.sender_of(
            case_of(), timeout_s=AGES_S, percents=(50.0, 90.0), holds_failures=True
        )
        found = put_under_load((), ASKED, sender)
    assert found.exchanges is not None
    assert found.exchanges.failed == {}
    assert found.exchanges.sent == found.queries >= 68
    # What the client takes by itself is that of a whole answer, all of whose tokens come at once.
    assert found.exchanges.cost.reason == ""
    assert found.exchanges.cost.p50_ns is not None
    assert found.exchanges.cost.p50_ns > 0
    # Nobody can tell whether a text is right.
    assert (found.exchanges.compared, found.exchanges.compared_with) == (0, "")
    assert (found.late, found.late_first_token, found.late_token_time) == (0, 0, 0)
    # Nothing comes sooner than the service sends it.
    assert found.first_token_percentiles_ns["50"] >= 4_000_000
    assert found.token_time_percentiles_ns["50"] > 0
    assert found.tokens_per_s is not None
    prompts = {tuple(asked["prompt"]) for asked in service.asked}
    assert len(prompts) == len(service.asked)
    assert all(7 not in prompt for prompt in prompts)


#: What medians may differ by from those that the service states: 1 ms.
NEAR_NS = 1e6


@pytest.mark.heavy
@pytest.mark.timed
def test_times_of_tokens_are_those_that_the_service_states() -> None:
    """Medians within a millisecond of when it really wrote, on a machine that does nothing else.

    Under load times count from when requests are due, so what passed from then until the client
    had written them, which it tells, is added to what the service states.
    """
    with writing_apart(0.050, 0.010) as service, closing(writer(service)) as engine:
        engine.open()
        sender = engine.sender_of(
            case_of(), timeout_s=AGES_S, percents=(50.0, 90.0, 99.0), holds_failures=True
        )
        asked = replace(ASKED, rate_per_s=20.0, expected_per_s=20.0, least_s=10.0)
        found = put_under_load((), asked, sender)
        requests = engine.requests(case_of())
        single = [requests.request(np.arange(PROMPT)[None], NEW) for _ in range(50)]
    alone, loaded = service.written_at[-len(single) :], service.written_at[: -len(single)]
    assert found.exchanges is not None
    # The one before the load is not of it.
    assert len(loaded) == found.exchanges.sent + 1
    under_load = compared(
        "under load", loaded[1:], found.first_token_percentiles_ns, found.token_time_percentiles_ns
    )
    one_by_one = compared(
        "one by one",
        alone,
        percentiles_ns([request.steps_ns[0] for request in single], PERCENTS),
        percentiles_ns([sum(request.steps_ns[1:]) // (NEW - 1) for request in single], PERCENTS),
    )
    assert found.exchanges.delay_from == "arrival"
    delay_ns = found.exchanges.send_delay_ns["50"]
    print(f"under load: written p50 {delay_ns * 1e-6:.3f} ms after a request was due")
    under_load = under_load[0] - delay_ns, under_load[1]
    assert max(map(abs, (*under_load, *one_by_one))) <= NEAR_NS


def compared(
    name: str, written: Sequence[Written], first: dict[str, int], later: dict[str, int]
) -> tuple[float, float]:
    """Print times of tokens beside those of the service, and return how far medians are apart."""
    stated_first = percentiles_ns([at.first_ns - at.came_ns for at in written], PERCENTS)
    stated_later = percentiles_ns(
        [(at.last_ns - at.first_ns) // (NEW - 1) for at in written], PERCENTS
    )
    woke = percentiles_ns([at.read_ns - at.came_ns for at in written], PERCENTS)
    print(f"{name}: the service read p50 {woke['50'] * 1e-6:.3f} ms after a request had come")
    for what, ours, stated in (("ttft", first, stated_first), ("tpot", later, stated_later)):
        each = [f"p{p} {ours[p] * 1e-6:.3f} ms, stated {stated[p] * 1e-6:.3f}" for p in stated]
        print(f"{name}: {what} {'; '.join(each)}")
    return first["50"] - stated_first["50"], later["50"] - stated_later["50"]
