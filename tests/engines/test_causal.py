"""Language models of transformers, as far as no library is needed: names, times, choices."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ortbench.engines.seam import EngineRefusal, EngineTensor
from pytest_ortbench.engines.torch.worker.causal import past_in, roles
from pytest_ortbench.engines.torch.worker.generated import TokenWatch
from pytest_ortbench.engines.torch.worker.stepping import layer_of
from pytest_ortbench.worker.generation.engine_requests import is_another


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("past_key_values.3.key", (3, "keys")),
        ("past_key_values.12.value", (12, "values")),
        ("present.0.key", (0, "keys")),
        ("past_key_values.1.decoder.value", (1, "values")),
        ("past_value_7", (7, "values")),
        ("present_key_values.7.key", (7, "keys")),
        ("logits", None),
        ("input_ids", None),
        ("past_key_values.3", None),
        ("attention_mask", None),
    ],
)
def test_layer_and_kind_are_read_from_the_name(name: str, expected: object) -> None:
    assert layer_of(name) == expected


def inputs(*names: str) -> list[EngineTensor]:
    return [EngineTensor(name=name, type="tensor(float)", shape=()) for name in names]


def test_inputs_and_outputs_are_told_apart_by_their_names() -> None:
    past = ("past_key_values.0.key", "past_key_values.0.value")
    fed = inputs("tokens", "attention_mask", "position_ids", *past)
    ids, layers, given = roles(fed, ["logits", "present.0.value", "present.0.key"])
    assert ids == "tokens"
    assert layers == {0: past}
    assert given == [None, (0, "values"), (0, "keys")]


@pytest.mark.parametrize(
    ("names", "outputs"),
    [
        (("input_ids", "token_type_ids"), ["logits"]),
        (("input_ids", "past_key_values.0.key"), ["logits"]),
        (("input_ids",), ["logits", "last_hidden_state"]),
        (("attention_mask",), ["logits"]),
    ],
)
def test_what_has_no_counterpart_is_refused(names: tuple[str, ...], outputs: list[str]) -> None:
    with pytest.raises(EngineRefusal):
        roles(inputs(*names), outputs)


def test_the_half_of_a_cache_that_lacks_is_named() -> None:
    with pytest.raises(EngineRefusal) as refused:
        roles(inputs("input_ids", "past_key_values.3.key"), ["logits"])
    assert {"past_key_values.3.key", "past_key_values.3.value."} <= set(refused.value.hint.split())


def test_every_token_has_a_time_and_the_prompt_has_none() -> None:
    now = [100]

    def passes(nanoseconds: int) -> None:
        now[0] += nanoseconds

    told: list[int] = []

    def at_first() -> None:
        told.append(len(watch.steps_ns))
        passes(1000)

    watch = TokenWatch(at_first, lambda: passes(3), clock=lambda: now[0])
    watch.put("prompt")
    for took in (50, 7, 8):
        passes(took)
        watch.put("token")
    watch.end()
    assert watch.begun_ns == 100
    # What is added to each token is in its step; what the first one is told for is in none.
    assert watch.steps_ns == [53, 10, 11]
    assert told == [1]


def test_only_a_clearly_less_likely_token_is_another() -> None:
    scores = np.array([[0.0, 1.0, 0.999, -1.0], [3.0, 0.0, 0.0, 0.0]])
    best = np.array([[1], [0]])
    assert not is_another(scores, best, best)
    assert not is_another(scores, best, np.array([[2], [0]]))
    assert is_another(scores, best, np.array([[0], [0]]))
    assert is_another(scores, best, np.array([[1], [3]]))


def fed(*rows: int, total: int | None) -> dict[str, np.ndarray]:
    feeds = {f"past.{layer}": np.zeros((1, 2, count, 4)) for layer, count in enumerate(rows)}
    mask = {} if total is None else {"attention_mask": np.ones((1, total))}
    return {"input_ids": np.zeros((1, 3)), **mask, **feeds}


@pytest.mark.parametrize(
    ("rows", "total", "past"),
    [((), 9, 0), ((5, 5), 8, 5), ((5, 5), None, 5), ((8, 0), 3, 0), ((8, 6), 9, 6), ((0,), 3, 0)],
)
def test_a_window_holds_as_many_tokens_as_the_mask_says(
    rows: tuple[int, ...], total: int | None, past: int
) -> None:
    by_layer = [(layer, (f"past.{layer}", f"past.{layer}")) for layer in range(len(rows))]
    assert past_in(fed(*rows, total=total), "input_ids", by_layer, {}) == past


def test_a_window_that_dropped_tokens_is_refused() -> None:
    by_layer = [(layer, (f"past.{layer}", f"past.{layer}")) for layer in range(2)]
    with pytest.raises(EngineRefusal) as caught:
        past_in(fed(8, 20, total=23), "input_ids", by_layer, {"past.1": "past_length"})
    assert "--ort-dims=past_length:8" in caught.value.hint
