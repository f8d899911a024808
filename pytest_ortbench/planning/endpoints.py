"""Endpoints among what runs a model: options, plans, and what they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.endpoint_address import (
    ENCODINGS,
    FORMS,
    OPENAI,
    EndpointAddress,
    address_of,
    holds_credentials,
    holds_secrets,
    host_of,
    service_of,
    slashed_name,
)
from pytest_ortbench.core.errors import UsageError, did_you_mean
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.failures import case_failure
from pytest_ortbench.core.option_text import OptionText
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.planning.axes import split_list
from pytest_ortbench.planning.no_decoder import why_no_decoder
from pytest_ortbench.planning.request import PlanRequest

#: What it is called among providers, and the option that holds its address.
ALIAS, URL = "endpoint", "url"
PLACE = "--ort-endpoint"
_ENCODING = "--ort-endpoint-encoding"
_ADD_ADDRESS = f"Add the address, e.g. {PLACE}=http://HOST:PORT/v2/models/NAME/infer"
_OWN_SENDER = f"send the requests with a Python function: {PLACE}={FORMS['custom']}"
#: The precision of a file as it is.
NATIVE = "native"


def read_endpoint(written: OptionText) -> str:
    """Read the address of an endpoint."""
    address = parse_address(written.last, place=written.place)
    if address.protocol == "grpc":
        refuse_without("tritonclient", "grpc", place=written.place)
        return address.url
    if not address.file:
        refuse_without("aiohttp", ALIAS, place=written.place)
        return address.url
    path = written.base / address.file
    if not path.is_file():
        raise UsageError(
            f"the file {str(path)!r} does not exist",
            place=written.place,
            hint="Correct the path",
        )
    return f"custom:{path.resolve()}:{address.function}"


def parse_address(text: str, *, place: str) -> EndpointAddress:
    """Read the address of an endpoint.

    Args:
        text: As written.
        place: Where, for messages.

    Raises:
        UsageError: for what is no address of a protocol that is known, and for one with a password
            or a query, since it would stand in documents.
    """
    if holds_secrets(text):
        named = holds_credentials(text)
        raise UsageError(
            f"the address contains {'a user name or a password' if named else 'a query'}, which "
            "would be stored with the results",
            place=place,
            hint="Write the address without it, and set the environment variable "
            "ORTBENCH_ENDPOINT_AUTHORIZATION to 'Basic VALUE', where VALUE is USER:PASSWORD in "
            "base64"
            if named
            else "If the service accepts the header Authorization, leave the query out, and put "
            "the header's value into the environment variable ORTBENCH_ENDPOINT_AUTHORIZATION. If "
            f"not, {_OWN_SENDER}",
        )
    address = address_of(text)
    slashed = slashed_name(text) if address is None else ""
    if slashed:
        plain = slashed.replace("/", "-")
        raise UsageError(
            f"the name of a model can't contain '/', but {slashed!r} does",
            place=place,
            hint=f"If you can't rename the model at the service, {_OWN_SENDER}. If you can, call "
            f"it e.g. {plain}, and write "
            + text.replace(f"/models/{slashed}/", f"/models/{plain}/"),
        )
    host = host_of(text) if address is None and not _completed(text) else ""
    if host:
        raise UsageError(
            f"the path in {text!r} belongs to no protocol that is known here",
            place=place,
            hint="If the service has the Open Inference Protocol, write "
            f"{FORMS['v2'].replace('http://HOST:PORT', host)}. If not, {_OWN_SENDER}",
        )
    if address is None:
        raise UsageError(
            f"{text!r} is not the address of an endpoint" if text else "the address is empty",
            place=place,
            hint=f"Write {_completed(text) or _forms(text)}",
        )
    return address


def _completed(text: str) -> str:
    """Return an incomplete address completed; empty if no address can be made of it."""
    whole = text if "://" in text else f"http://{text}"
    stem = whole.rstrip("/")
    tried = (
        whole,
        stem,
        f"{stem}/infer",
        f"{stem}/completions",
        whole.replace("/chat/completions", "/completions"),
        f"{text}:FUNCTION",
    )
    return next((address for address in tried if address_of(address)), "")


def _forms(text: str) -> str:
    """Return how addresses are written, with the host and port of what was written."""
    service = service_of(text) or (service_of(f"http://{text}") if ":" in text else "")
    tensors, texts = (
        FORMS[form].replace("http://HOST:PORT", service or "http://HOST:PORT")
        for form in ("v2", OPENAI)
    )
    return (
        f"{tensors} or {FORMS['grpc']}. For a language model, write {texts}. For a Python function "
        f"that sends the requests, write {FORMS['custom']}"
    )


def read_encodings(written: OptionText) -> tuple[str, ...]:
    """Read the ways in which tensors are written to an endpoint."""
    names = tuple(dict.fromkeys(split_list(written.texts, place=written.place)))
    for name in names:
        if name not in ENCODINGS:
            raise UsageError(
                f"{name!r} is not a known encoding of tensors",
                place=written.place,
                hint=did_you_mean(name, ENCODINGS),
            )
    return names


def refuse_without_endpoint(
    *, value: tuple[str, ...], place: str, endpoint: str, serve: str
) -> None:
    """Refuse encodings for no endpoint."""
    if value and serve and not endpoint:
        raise UsageError(
            "the option has no effect on a service that --ort-serve starts",
            place=place,
            hint="Leave the option out",
        )
    if value and not endpoint:
        raise UsageError(
            "the option has an effect only together with --ort-endpoint",
            place=place,
            hint=_ADD_ADDRESS,
        )


def with_endpoint(request: PlanRequest) -> PlanRequest:
    """Return a request with its endpoint among what runs the models.

    Raises:
        UsageError: if it names two addresses.
    """
    if not request.endpoint:
        return request
    given = request.provider_options.get(ALIAS, {})
    if given.get(URL, request.endpoint) != request.endpoint:
        raise UsageError(
            f"the address {request.endpoint!r} differs from that of "
            f"--ort-provider-option={ALIAS}.{URL}",
            place=PLACE,
            hint=f"Leave out --ort-provider-option={ALIAS}.{URL}. If the address in this option is "
            f"the right one, write it in {PLACE}",
        )
    devices = request.endpoint_encodings
    protocol = parse_address(request.endpoint, place=PLACE).protocol
    if protocol == "grpc" and "json" in devices:
        raise UsageError(
            "json has no effect on a gRPC endpoint, to which tensors are sent as bytes",
            place=_ENCODING,
            hint="Leave the option out",
        )
    if protocol == OPENAI:
        if devices:
            raise UsageError(
                "the option has no effect on an endpoint of a language model, to which text is "
                "sent, not tensors",
                place=_ENCODING,
                hint="Leave the option out",
            )
        devices = (OPENAI,)
    named = tuple(f"{ALIAS}:{device}" for device in devices) or (ALIAS,)
    is_named = any(spec.partition(":")[0].strip() == ALIAS for spec in request.providers)
    providers = request.providers
    if devices:
        # Whoever says how tensors are written wants no row of another way.
        providers = tuple(spec for spec in providers if spec.strip() != ALIAS)
    if devices or not is_named:
        providers = tuple(dict.fromkeys((*providers, *named)))
    options = {**request.provider_options, ALIAS: {**given, URL: request.endpoint}}
    return replace(request, providers=providers, provider_options=options)


def refuse_several(models: Sequence[object], request: PlanRequest) -> None:
    """Refuse an endpoint for several models, of which it runs one at most.

    Raises:
        UsageError: if there are several.
    """
    if request.endpoint and len(models) > 1:
        raise _several(len(models))


def refuse_several_targets(cases: Sequence[Case]) -> None:
    """Refuse an endpoint for several models of a run, each of which has a plan of its own.

    Raises:
        UsageError: if there are several.
    """
    served = [
        case for case in cases if case.provider.is_endpoint and case.provider.options.get(URL)
    ]
    models = {case.model.path for case in served}
    if len(models) > 1:
        raise _several(len(models))


def _several(count: int) -> UsageError:
    return UsageError(
        f"an endpoint runs one model, but this run has {count} models",
        place=PLACE,
        hint="Name only the file of the model that the endpoint runs",
    )


def writes_texts(provider: Provider) -> bool:
    """Return whether an endpoint carries out requests to a language model, and nothing else."""
    return provider.is_endpoint and provider.device == OPENAI


def endpoint_refusal(case: Case) -> Failure | None:
    """Return why an endpoint can't be asked for a case; ``None`` if it can."""
    if not case.provider.options.get(URL):
        return case_failure(
            "the provider 'endpoint' needs the address of a service, and none is given",
            _ADD_ADDRESS,
            kind="unavailable",
        )
    if writes_texts(case.provider) and case.generation is None:
        if case.model.decoder is None:
            return case_failure(
                f"the endpoint writes text, but {case.model.name!r} was not recognised as a "
                f"language model: {why_no_decoder(case.model)}",
                "If it is a language model, export it with the usual names of inputs and outputs. "
                "If not, name an endpoint that takes tensors, e.g. "
                f"{PLACE}=http://HOST:PORT/v2/models/NAME/infer",
            )
        return case_failure(
            "this endpoint only answers prompts with text, but the case is a single inference on "
            "tensors",
            "Leave out the options that ask for single inferences: --ort-inputs, --ort-dims or "
            "--ort-generate=off",
        )
    if (
        case.provider.device in ENCODINGS
        and parse_address(case.provider.options[URL], place=PLACE).file
    ):
        return case_failure(
            f"the encoding {case.provider.device!r} has no effect, since the function of a custom "
            "endpoint writes the tensors",
            f"Leave {_ENCODING} out. If --ort-providers names {case.provider.label}, write "
            f"{ALIAS} in place of it",
        )
    if case.variant.precision != NATIVE:
        return case_failure(
            "an endpoint runs the file that its service has loaded, so precision "
            f"{case.variant.precision} can't be measured there",
            f"To measure the endpoint, leave {case.variant.precision} out of --ort-precisions. To "
            f"measure {case.variant.precision}, {_elsewhere(case)}",
        )
    if case.session.intra_op_num_threads is not None:
        option = (
            "--ort-threads"
            if "threads" in case.knobs
            else "--ort-session-option=intra_op_num_threads"
        )
        return case_failure(
            f"{option} has no effect on an endpoint, which sets its own threads",
            f"To measure the endpoint, leave {option} out. To measure with {option}, "
            f"{_elsewhere(case)}",
        )
    return None


def _elsewhere(case: Case) -> str:
    """Return the step to a run without the endpoint of a case: all that names it is to go."""
    named = [PLACE, *((_ENCODING,) if case.provider.device in ENCODINGS else ())]
    return f"write e.g. --ort-providers=cpu, and leave out {' and '.join(named)}"
