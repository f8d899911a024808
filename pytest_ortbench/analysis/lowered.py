"""What products of float32 keep: where they lose bits, and which options they confirm. Pure."""

from __future__ import annotations

import msgspec

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.mantissa import BFLOAT16_BITS, FLOAT32_BITS, format_words
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.precision import computed_precision

_OPENVINO = "OpenVINOExecutionProvider"
#: Options by which a provider or engine multiplies float32 in all of its bits, by its name.
_FULL_PRECISION = {
    _OPENVINO: """'{alias}.load_config={{"CPU": {{"INFERENCE_PRECISION_HINT": "f32"}}}}'""",
    "OpenVINO": "{alias}.INFERENCE_PRECISION_HINT=f32",
    "MNN": "{alias}.precision=high",
    "ncnn": "{alias}.fp16=0",
}
#: What OpenVINO calls the types in which it computes, and the bits that their products keep.
_HINT = "INFERENCE_PRECISION_HINT"
_HINTED_BITS = {"f32": FLOAT32_BITS, "bf16": BFLOAT16_BITS}
#: Where it computes if no device is named.
_USUAL_DEVICE = "CPU"


def lowered_words(result: CaseResult) -> str:
    """Say that products of float32 lose bits, and which option keeps all; empty if they don't.

    Args:
        result: Any case; what float32 would lose says nothing of another precision.
    """
    bits = result.kept_bits
    if bits is None or bits >= FLOAT32_BITS or computed_precision(result.case) != "fp32":
        return ""
    words = f"products keep {format_words(bits)}"
    compiling = _compiling_links(result)
    option = _FULL_PRECISION.get(compiling[0].name, "") if len(compiling) == 1 else ""
    if not option:
        return words
    return f"{words}; --ort-provider-option={option.format(alias=compiling[0].alias)} keeps all"


def _compiling_links(result: CaseResult) -> list[Provider]:
    """What multiplied where no profile shows it: the provider, or links of its chain."""
    provider, placement = result.case.provider, result.placement
    if placement is None or not placement.links:
        return [provider]
    ran = {link.provider for link in placement.links if link.partitions}
    return [link for link in provider.links if link.name in ran]


def is_seen(option: str, result: CaseResult) -> bool:
    """Whether products keep just the bits that an option asks for.

    Args:
        option: As doubts name it: alias and key with a dot between.
        result: The case with its options.
    """
    compiling = _compiling_links(result)
    if result.kept_bits is None or len(compiling) != 1:
        return False
    alias, _, key = option.partition(".")
    return alias == compiling[0].alias and result.kept_bits == _asked_bits(compiling[0], key)


def _asked_bits(provider: Provider, key: str) -> int | None:
    """The bits that an option asks for and nothing besides; ``None`` for any other option."""
    if (provider.name, key) != (_OPENVINO, "load_config"):
        return None
    try:
        devices = msgspec.json.decode(provider.options.get(key, ""), type=dict[str, dict[str, str]])
    except msgspec.DecodeError:
        return None
    settings = devices.get(provider.device or _USUAL_DEVICE, {})
    is_alone = len(devices) == 1 and settings.keys() == {_HINT}
    return _HINTED_BITS.get(settings[_HINT]) if is_alone else None
