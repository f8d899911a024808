"""In how many bits float32 is multiplied: in all of them, or in the ten of TF32."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.mantissa import (
    FLOAT32_BITS,
    TF32_BITS,
    format_words,
    kept_bits,
    mantissa_steps,
)
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.models.builders.check_models import PROBE_ROWS
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.facts import Evaluated
from pytest_ortbench.selfcheck.questions import Evaluate

#: The option by which CUDA multiplies in TF32 or not; TensorRT and others have it not.
_SWITCH = "use_tf32"
_CUDA = "CUDAExecutionProvider"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Products:
    """What products kept.

    Attributes:
        default: With the options as they are.
        without: With TF32 switched off; ``None`` where there is no such switch.
    """

    default: Evaluated
    without: Evaluated | None = None


def _look(bench: CheckBench) -> _Products:
    model, steps = bench.model("mantissa"), mantissa_steps(PROBE_ROWS)
    with bench.opened(bench.case(model)) as worker:
        default = worker.ask(Evaluate(values=steps))
    if bench.provider.name != _CUDA:
        return _Products(default=default)
    with bench.opened(bench.case(model, options={_SWITCH: "0"})) as worker:
        return _Products(default=default, without=worker.ask(Evaluate(values=steps)))


def _judge(facts: _Products, provider: Provider) -> LineFinding:
    bits = kept_bits(facts.default.values)
    without = None if facts.without is None else kept_bits(facts.without.values)
    if not bits or (facts.without is not None and not without):
        return wrong("wrong product", "a product with the identity gives other values")
    amounts = [Amount(name="bits of the mantissa", value=float(bits))]
    if without is not None:
        amounts.append(Amount(name="with use_tf32=0", value=float(without)))
        if without < FLOAT32_BITS:
            return wrong(
                "lowered", "TF32 was switched off, and products lose bits all the same", *amounts
            )
    if bits >= FLOAT32_BITS:
        if provider.name == _CUDA and provider.options.get(_SWITCH, "1") != "0":
            return unchecked(
                "no TF32",
                "CUDA may multiply in TF32 and did not: GPUs before Ampere have none",
                *amounts,
            )
        return passed("float32", "float32 is multiplied in all of its bits", *amounts)
    if bits == TF32_BITS and provider.name in NVIDIA:
        return passed("TF32", "float32 is multiplied in TF32, as this provider does", *amounts)
    return wrong(
        "lowered", "float32 is multiplied in fewer bits", *amounts, kept=format_words(bits)
    )


CHECK = Check(name="fp32", about="bits in which float32 is multiplied", look=_look, judge=_judge)
