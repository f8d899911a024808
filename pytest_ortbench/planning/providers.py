"""Execution providers as people write them: from specifications to providers, and their options."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ortbench.core.case import CHAIN, Provider
from pytest_ortbench.core.errors import UsageError, did_you_mean, nearest
from pytest_ortbench.core.outcome import RuntimeInfo
from pytest_ortbench.core.provider_kinds import (
    BY_NAME,
    CPU,
    KINDS,
    SHARED_HARDWARE,
    ProviderKind,
    known_kind,
)
from pytest_ortbench.core.run import Skip
from pytest_ortbench.engines.engine_kind import EngineKind
from pytest_ortbench.engines.registry import ALIASES, engine_kind
from pytest_ortbench.planning.axes import parse_settings, split_list
from pytest_ortbench.planning.devices import device_options
from pytest_ortbench.planning.option_tables import TABLES

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOffer:
    """What a runtime says it has.

    Attributes:
        available: Full names of its providers, plug-ins included.
        devices: What can stand behind the colon, by full name, where the provider tells.
        problems: Why a plug-in that is there can't be used, by its full name.
        libraries: Libraries of plug-ins that the project has configured, by full name.
        aliases: Full names by the alias that the project gave them.
    """

    available: tuple[str, ...] = ()
    devices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def observed(self, info: RuntimeInfo) -> RuntimeOffer:
        """Return it with what a worker observed."""
        return replace(
            self,
            available=tuple(dict.fromkeys((*info.available_providers, *info.plugin_providers))),
            devices=info.provider_devices,
            problems=info.plugin_problems,
        )


_PLACE = "--ort-providers"
_SUFFIX = "ExecutionProvider"


def _is_known(word: str) -> bool:
    """Whether a word is a name of ours, of a provider or of an engine."""
    return word in ALIASES or known_kind(word) is not None


def _suggested() -> tuple[str, ...]:
    """What a misspelt word may stand for."""
    providers = [alias for alias, kind in KINDS.items() if kind.is_suggested]
    return (*providers, *ALIASES, ALL)


def split_specs(texts: str | Iterable[str], *, place: str = _PLACE) -> tuple[str, ...]:
    """Split ``cpu,openvino:HETERO:GPU,CPU`` into ``("cpu", "openvino:HETERO:GPU,CPU")``.

    A comma separates in front of ``all``, an alias (as spelled, in lower case) or a full name, and
    behind a name without a device.

    Raises:
        UsageError: for an empty item.
    """
    items = split_list(texts, place=place, starts_item=_starts_spec)
    return tuple(spec for item in items for spec in _without_devices_apart(item))


def _without_devices_apart(item: str) -> Iterator[str]:
    """Split off what a comma follows that no device can have: ``cpu`` in ``cpu,my-plugin``."""
    head, comma, rest = item.partition(",")
    if comma and rest.strip() and ":" not in head.rpartition(CHAIN)[2]:
        yield head.strip()
        yield from _without_devices_apart(rest.strip())
    else:
        yield item


def _starts_spec(rest: str) -> bool:
    word = re.split(rf"[:,{CHAIN}]", rest, maxsplit=1)[0].strip()
    if word == ALL or _is_known(word) or word.endswith(_SUFFIX):
        return True
    return bool(word) and engine_kind(word) is not None


def parse_provider(
    spec: str,
    *,
    available: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
    place: str = _PLACE,
    platform: str = sys.platform,
) -> Provider:
    """Read one specification: ``cuda:1``, ``CUDAExecutionProvider``, ``openvino:GPU~cpu``.

    Args:
        spec: Alias or full name, and a device behind a colon; of a chain those of each link.
        available: Full names that the runtime has, for providers that we have never heard of.
        aliases: Full names by the alias that the project gave them.
        place: Where it was written.
        platform: ``sys.platform`` of the machine that measures, for names of libraries.

    Raises:
        UsageError: if no such provider is known, the device does not fit it, or the chain can't
            be one.
    """
    links = [
        _parse_link(link, available, aliases or {}, place, platform)
        for link in _links_of(spec, place)
    ]
    _require_distinct(spec, links, place)
    return Provider.chain(links)


def _links_of(spec: str, place: str) -> list[str]:
    """Specifications of the links of a chain, that of a provider by itself alone.

    Raises:
        UsageError: for a link that can't be one, whatever a runtime has.
    """
    links = [link.strip() for link in spec.split(CHAIN)]
    if len(links) == 1:
        return links
    for link in links:
        word = link.partition(":")[0].strip()
        if not word:
            raise UsageError(
                f"a provider is missing in the chain {spec!r}",
                place=place,
                hint=f"Write {named}, or add the missing provider"
                if (named := CHAIN.join(filter(None, links)))
                else f"Write one provider on each side of {CHAIN}, e.g. openvino{CHAIN}cpu",
            )
        if word == ALL:
            raise UsageError(
                f"{ALL!r} means several providers, but each place of the chain {spec!r} takes one",
                place=place,
                hint=f"Name the provider, e.g. openvino{CHAIN}cpu",
            )
        if word not in KINDS and word not in BY_NAME and engine_kind(word) is not None:
            raise UsageError(
                f"{word!r} runs models in place of ONNX Runtime, but the chain {spec!r} can have "
                "only execution providers of ONNX Runtime",
                place=place,
                hint=f"Name {word} alone: --ort-providers={link}. To measure each by itself, write "
                f"--ort-providers={','.join(dict.fromkeys(links))}",
            )
    return links


def _require_distinct(spec: str, links: Sequence[Provider], place: str) -> None:
    """Refuse a provider that is there twice: *seen*, ONNX Runtime ignores the second one."""
    names = [link.name for link in links]
    twice = next((link for link in links if names.count(link.name) > 1), None)
    if twice is not None:
        apart = list(dict.fromkeys(link.label for link in links))
        first: dict[str, str] = {}
        for link in links:
            first.setdefault(link.name, link.label)
        raise UsageError(
            f"{spec!r} names {twice.alias} twice, but a session has each provider once",
            place=place,
            hint=f"Write {CHAIN.join(first.values())}"
            + (f". To measure each by itself, write {','.join(apart)}" if len(apart) > 1 else ""),
        )


def _parse_link(
    spec: str,
    available: Sequence[str],
    aliases: Mapping[str, str],
    place: str,
    platform: str,
) -> Provider:
    word, _, device = (part.strip() for part in spec.partition(":"))
    kind, own = known_kind(word), _configured(word, aliases)
    if own is not None and (kind is None or kind.name != own.name):
        kind = own
    engine = None if kind is not None or word in available else engine_kind(word)
    if engine is not None:
        return _on_engine(engine, device, place)
    if kind is None and word in available:
        # A plug-in that we do not know, under its own name.
        kind = ProviderKind(alias=word, name=word, device="hardware")
    if kind is None:
        raise _unknown(word, available, place)
    if not device:
        if ":" in spec:
            raise UsageError(
                f"{spec!r} has no device after the colon",
                place=place,
                hint=f"Write {word} for the default device, or add the device",
            )
        return Provider(alias=kind.alias, name=kind.name)
    device, options = device_options(kind, device, place, platform)
    return Provider(alias=kind.alias, name=kind.name, device=device, options=options)


def _on_engine(kind: EngineKind, device: str, place: str) -> Provider:
    if device and not kind.takes_device:
        raise UsageError(
            f"{kind.alias} does not take the device {device!r}",
            place=place,
            hint=f"Write {kind.alias}, without a device",
        )
    if kind.devices and device and device not in kind.devices:
        raise UsageError(
            f"'{kind.alias}:{device}' is not known",
            place=place,
            hint=f"Write one of: {', '.join(f'{kind.alias}:{known}' for known in kind.devices)}",
        )
    return Provider(alias=kind.alias, name=kind.title, device=device, role=kind.role)


def is_known(spec: str, aliases: Mapping[str, str]) -> bool:
    """Whether a specification is understood without asking a runtime what it has."""
    return spec == ALL or all(
        _is_known(word) or bool(_configured(word, aliases)) for word in spec_words(spec)
    )


def spec_words(spec: str) -> tuple[str, ...]:
    """Return the names in a specification without devices: one, or one for each link."""
    return tuple(link.partition(":")[0].strip() for link in spec.split(CHAIN))


def _configured(word: str, aliases: Mapping[str, str]) -> ProviderKind | None:
    """A provider that has its alias from the project's configuration."""
    for alias, name in aliases.items():
        if word in (alias, name):
            return ProviderKind(alias=alias, name=name, device="hardware")
    return None


def check_specs(specs: Iterable[str], *, place: str = _PLACE) -> None:
    """Check specifications before any runtime was asked what it has.

    A name that we do not know may still be a plug-in of the runtime, which :func:`expand` decides;
    only one that is nearly a known one (``cdua``, ``CpuExecutionProvider``) is refused already.

    Raises:
        UsageError: for a misspelt provider, or a device that does not fit.
    """
    for spec in specs:
        if spec == ALL:
            continue
        # What may be a plug-in is one for now.
        unknown = tuple(word for word in spec_words(spec) if _may_be_plugin(word))
        if CHAIN in spec or not unknown:
            parse_provider(spec, available=unknown, place=place)


def expand(
    specs: Sequence[str],
    offer: RuntimeOffer,
    *,
    runtime: str = "",
    platform: str = sys.platform,
) -> tuple[list[Provider], list[Skip]]:
    """Turn specifications into providers, and say what ``all`` left out.

    Args:
        specs: As typed; ``all`` among them means every available one except Azure's, each device
            of one provider apart where it has several.
        offer: What the runtime says it has: a claim, not a proof.
        runtime: Label of the runtime, for the skips.
        platform: ``sys.platform`` of the machine that measures.

    Returns:
        The providers, each once, the CPU first under ``all`` since all others are compared with
        it; one that is named stays named even if ``all`` has it too, so that it fails and is not
        skipped where it can't be had. And the skips.

    Raises:
        UsageError: for an unknown provider or a device that does not fit.
    """
    found: dict[str, Provider] = {}
    skips: dict[Skip, None] = {}

    def parse(spec: str) -> Provider:
        known = (*offer.available, *offer.problems)
        provider = parse_provider(spec, available=known, aliases=offer.aliases, platform=platform)
        return provider.of_links(
            lambda link: replace(link, library=offer.libraries.get(link.name, ""))
        )

    split = split_specs(specs)
    named = {spec: parse(spec) for spec in split if spec != ALL}
    named_aliases = {provider.alias for provider in named.values() if not provider.then}
    for spec in split:
        if spec != ALL:
            found.setdefault(named[spec].label, named[spec])
            continue
        for name in sorted(offer.available, key=lambda name: name != CPU):
            alias, kind = parse(name).alias, BY_NAME.get(name)
            if alias in named_aliases:
                continue
            if kind is not None and not kind.in_all:
                skips[Skip(what=alias, reason=_NOT_IN_ALL, runtime=runtime)] = None
                continue
            for device in _devices_in_all(name, offer):
                provider = replace(parse(f"{name}:{device}" if device else name), named=False)
                found.setdefault(provider.label, provider)
        for name, reason in offer.problems.items():
            alias = parse(name).alias
            if alias not in named_aliases:
                skips[Skip(what=alias, reason=reason, runtime=runtime)] = None
    return list(found.values()), list(skips)


def _devices_in_all(name: str, offer: RuntimeOffer) -> Sequence[str]:
    """Devices that ``all`` means, empty for the provider's default."""
    devices = offer.devices.get(name, ())
    # QNN has no default everywhere: *seen*, none on x86, where its simulator runs.
    if len(devices) > 1 or (devices and name == "QNNExecutionProvider"):
        return devices
    return ("",)


_ALL_NAMES = "To list them all, run: ortbench providers --known"
_OPTION_EXAMPLE = "cuda.use_tf32=1"
_NOT_IN_ALL = (
    "it sends requests to a remote service and runs no node of a graph, so 'all' leaves it out"
)


def parse_provider_options(
    texts: str | Iterable[str], *, place: str = "--ort-provider-option"
) -> dict[str, dict[str, str]]:
    """Read ``ALIAS.KEY=VALUE`` pairs into options by alias.

    The key goes on behind the first dot, whatever it holds: ``webgpu.ep.webgpu.key=1`` is the
    option ``ep.webgpu.key`` of ``webgpu``. A full name in the alias' place is as good.

    Raises:
        UsageError: for a pair of another form, an unknown provider, or a key with two values.
    """
    options: dict[str, dict[str, str]] = {}
    for key, value in parse_settings(texts, place=place, example=_OPTION_EXAMPLE).items():
        word, dot, option = key.partition(".")
        if not word or not option:
            made = _OPTION_EXAMPLE if word and dot else _with_owner(option or key, value)
            raise UsageError(
                f"'{key}={value}' has no option between '.' and '='"
                if word and dot
                else f"'{key}={value}' does not say which provider has the option",
                place=place,
                hint=f"Write PROVIDER.OPTION=VALUE, e.g. {made}",
            )
        kind = known_kind(word) or engine_kind(word)
        if kind is None and not _may_be_plugin(word):
            raise _unknown(word, (), place)
        alias = kind.alias if kind else word
        given = options.setdefault(alias, {})
        if given.get(option, value) != value:
            raise UsageError(
                f"{alias}.{option} has two values, {given[option]!r} and {value!r}",
                place=place,
                hint=f"Set it once, e.g. {alias}.{option}={value}",
            )
        given[option] = value
    return options


def _with_owner(key: str, value: str) -> str:
    """An option behind the first provider that has it: ``cuda``, where many have."""
    having = [alias for alias in ("cuda", *TABLES) if key in TABLES[alias]]
    return f"{having[0]}.{key}={value}" if having else _OPTION_EXAMPLE


def refuse_unused_options(
    options: Mapping[str, Mapping[str, str]],
    specs: Sequence[str],
    *,
    place: str = "--ort-provider-option",
) -> None:
    """Refuse options of providers that were not asked for: they would change nothing.

    Args:
        options: By alias, or by full name for a provider that has no alias of ours.
        specs: Every specification of a provider in the run; with ``all`` among them, any provider
            is asked for, also one that this machine doesn't have.
        place: Where the options were written.

    Raises:
        UsageError: for the first such provider.
    """
    split = split_specs(specs) if specs else ()
    words = [word for spec in split for word in spec_words(spec)]
    if not words or ALL in words:
        return
    kinds = [known_kind(word) or engine_kind(word) for word in words]
    asked = {kind.alias for kind in kinds if kind is not None} | set(words)
    if not all(kinds):
        # The project or a runtime gives this provider its other name, which isn't known here.
        options = {alias: given for alias, given in options.items() if alias in KINDS}
    for alias, given in options.items():
        if alias not in asked:
            option, value = next(iter(given.items()))
            raise UsageError(
                f"{alias}.{option} is an option of {alias}, but the requested "
                f"providers are {', '.join(dict.fromkeys(split))}",
                place=place,
                hint=f"If {alias} is to be measured, add {alias} to --ort-providers. If not, "
                f"leave out {alias}.{option}={value}",
            )


def _may_be_plugin(word: str) -> bool:
    """Whether a runtime could have a provider of this name that we have never heard of."""
    if _is_known(word) or not word or "," in word:
        return False
    if word.endswith(_SUFFIX):
        # Full names resemble each other by their ending; only a wrong capital is surely an error.
        return word.lower() not in {name.lower() for name in BY_NAME}
    return not nearest(word, sorted(_suggested()))


def _unknown(word: str, available: Sequence[str], place: str) -> UsageError:
    if "," in word:
        # The comma did not separate because no known provider follows it: that one is misspelt.
        pieces = [piece.strip() for piece in word.split(",")]
        unknown = [piece for piece in pieces if not _is_known(piece)]
        word = unknown[0] if unknown else word
    if not word:
        return UsageError(
            "the name of an execution provider is missing",
            place=place,
            hint="Write e.g. cpu, or cuda:0 for a device",
        )
    several = SHARED_HARDWARE.get(word.lower())
    if several is not None:
        return UsageError(
            f"{word!r} is hardware, and several execution providers run on it",
            place=place,
            hint=f"Name one: {several}",
        )
    names = (*BY_NAME, *available) if word.endswith(_SUFFIX) else (*_suggested(), *available)
    return UsageError(
        f"{word!r} is not a known execution provider",
        place=place,
        hint=did_you_mean(word, names, "" if nearest(word, names) else _ALL_NAMES),
    )
