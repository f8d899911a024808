"""A language model behind a service that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.endpoint_address import OPENAI
from pytest_ortbench.core.generation import GeneratedRequest
from pytest_ortbench.engines.endpoint.worker.answer_check import UncheckedTexts
from pytest_ortbench.engines.endpoint.worker.asked import Endpoint, ThreadClients, exchanged
from pytest_ortbench.engines.endpoint.worker.exchange_error import ExchangeError
from pytest_ortbench.engines.endpoint.worker.http_client import Reply
from pytest_ortbench.engines.endpoint.worker.openai_request import TokenRequest, token_body
from pytest_ortbench.engines.endpoint.worker.sender import EndpointSender
from pytest_ortbench.engines.endpoint.worker.v2_model import some_of
from pytest_ortbench.engines.seam import EngineRefusal, Inference
from pytest_ortbench.worker.generation.endpoint_requests import only_text
from pytest_ortbench.worker.generation.requests import (
    Prompts,
    generation_in,
    nothing,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ids = npt.NDArray[np.integer[Any]]


#: What a service may call a model; documents keep it.
_LONGEST_NAME = 500
#: Statuses of a service that has no list of its models.
_NO_LIST = (404, 405, 501)
_OPTION = "--ort-provider-option=endpoint.model="
_NAME_IT = f"Name the model as the service calls it, e.g. {_OPTION}gpt2"


class OpenAiEndpoint(Endpoint):
    """A language model that a service runs, asked for texts of so many tokens."""

    _name = ""

    def open(self) -> Inference:
        """Ask the service which model it has."""
        clients = self._opened()
        self._name = self.task.options.get("model") or self._only_model(clients)
        self._in_force = {
            "url": self._address().url,
            "protocol": OPENAI,
            "encoding": OPENAI,
            "model": self._name,
            **{key: value for key, value in self.task.options.items() if key == "ignore_eos"},
        }
        return _no_inference

    def requests(self, case: Case) -> OpenAiRequests:
        """Return what carries out the requests of a case."""
        _require_plain(case)
        return OpenAiRequests(self._opened(), self._asking)

    def sender_of(
        self, case: Case, *, timeout_s: float, percents: Sequence[float], holds_failures: bool
    ) -> EndpointSender:
        """Return what sends the requests of a case as they arrive.

        Raises:
            EngineRefusal: if the endpoint does not answer a first one.
        """
        _require_plain(case)
        asked, prompts = generation_in(case), Prompts(case, seed=os.getpid() + 1)

        def next_request() -> TokenRequest:
            return self._asking(prompts.draw(asked.prompt_tokens), asked.new_tokens)

        return exchanged(
            lambda: EndpointSender(
                self._address(),
                OPENAI,
                next_request,
                UncheckedTexts(),
                timeout_s=timeout_s,
                percents=percents,
                holds_failures=holds_failures,
            )
        )

    def _asking(self, prompt: Ids, new_tokens: int) -> TokenRequest:
        body = token_body(
            self._name,
            prompt[0].tolist(),
            new_tokens,
            ignores_end=self.task.options.get("ignore_eos") == "1",
        )
        return TokenRequest(url=self._address().url, body=body, new_tokens=new_tokens)

    def _only_model(self, clients: ThreadClients) -> str:
        """Return the only model that the service lists.

        Raises:
            EngineRefusal: if it lists none or several, or has no list.
        """
        url = self._address().models_url

        def list_of_models() -> Reply:
            try:
                return clients.run(lambda client: client.get(url))
            except ExchangeError as error:
                if error.status not in _NO_LIST:
                    raise
                text = f"the endpoint does not list its models at {url}: {error}"
                raise EngineRefusal(text, kind="unavailable", hint=_NAME_IT) from error

        names = _models(exchanged(list_of_models))
        if len(names) == 1:
            return names[0]
        if not names:
            raise EngineRefusal(
                f"the endpoint lists no model at {url}",
                kind="unavailable",
                hint="If the service has loaded no model, load one. If it has a model that it "
                f"does not list, name that model, e.g. {_OPTION}gpt2",
            )
        raise EngineRefusal(
            f"no model is named, and the endpoint has several: {some_of(names)}",
            kind="unavailable",
            hint=f"Name the model to measure, e.g. {_OPTION}{some_of(names[:1])}",
        )


class OpenAiRequests:
    """Carries out requests, one at a time.

    Args:
        clients: Send them.
        asking: Returns the request of a prompt and a number of new tokens.
    """

    def __init__(self, clients: ThreadClients, asking: Callable[[Ids, int], TokenRequest]) -> None:
        self._clients, self._asking = clients, asking

    def fill(self, ids: Ids) -> None:
        """Read tokens that stand before every prompt, which a service has no word for.

        Raises:
            EngineRefusal: always.
        """
        raise _no_depth(ids.shape[1])

    def request(
        self, prompt: Ids, new_tokens: int, *, at_first: Callable[[], object] = nothing
    ) -> GeneratedRequest:
        """Have a prompt read, and so many tokens written after it.

        Args:
            prompt: The tokens that are read.
            new_tokens: How many are written.
            at_first: Called once the first one is there.
        """
        asked = self._asking(prompt, new_tokens)
        started = time.perf_counter_ns()
        reply = exchanged(
            lambda: self._clients.run(lambda client: asked.send(client, lambda: _call(at_first)))
        )
        wall_ns = time.perf_counter_ns() - started
        # Of the later ones only the sum is known: parts of an answer are no tokens.
        later = max(1, reply.tokens - 1)
        steps = [reply.later_ns * (n + 1) // later - reply.later_ns * n // later
                 for n in range(reply.tokens - 1)]  # fmt: skip
        return GeneratedRequest(
            steps_ns=(reply.first_ns, *steps),
            wall_ns=wall_ns,
            prompt_tokens=prompt.shape[1],
            new_tokens=reply.tokens,
        )

    @property
    def written(self) -> Ids:
        """Tokens that were written, of which a service gives the text alone.

        Raises:
            EngineRefusal: always.
        """
        raise only_text("numbers")


def _call(at_first: Callable[[], object]) -> None:
    at_first()


def _no_inference(feeds: Mapping[str, Any]) -> Sequence[Any]:
    """Refuse a single inference.

    Raises:
        EngineRefusal: always.
    """
    del feeds
    raise only_text("scores")


def _require_plain(case: Case) -> None:
    """Refuse requests that the protocol has no words for.

    Raises:
        EngineRefusal: for several sequences at a time, and for tokens before the prompt.
    """
    asked = generation_in(case)
    if case.batch > 1:
        raise EngineRefusal(
            f"a request to an endpoint has one prompt, but --ort-batch-sizes asks for {case.batch}",
            hint="Leave --ort-batch-sizes out",
        )
    if asked.depth:
        raise _no_depth(asked.depth)


def _no_depth(depth: int) -> EngineRefusal:
    return EngineRefusal(
        "a request to an endpoint can't have tokens before its prompt, but --ort-depth asks for "
        f"{depth}",
        hint="Leave --ort-depth out",
    )


def _models(reply: Reply) -> list[str]:
    try:
        listed = json.loads(reply.body)
    except (ValueError, RecursionError):
        return []
    entries = listed.get("data") if isinstance(listed, dict) else None
    entries = entries if isinstance(entries, list) else []
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and len(name) <= _LONGEST_NAME]
