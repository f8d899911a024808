"""In how many bits float32 is multiplied: in all of them, or in the ten of TF32."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.models.builders.check_models import PROBE_ROWS
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.facts import Evaluated
from pytest_ortbench.selfcheck.questions import Evaluate

#: Bits of the mantissa that a product keeps of its inputs.
FP32_BITS, TF32_BITS = 23, 10
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


def _probe() -> tuple[float, ...]:
    """1 + 2^-k for each k in turn."""
    return tuple(1 + 2.0 ** -(1 + row % FP32_BITS) for row in range(PROBE_ROWS))


def _look(bench: CheckBench) -> _Products:
    model = bench.model("mantissa")
    with bench.opened(bench.case(model)) as worker:
        default = worker.ask(Evaluate(values=_probe()))
    if bench.provider.name != _CUDA:
        return _Products(default=default)
    with bench.opened(bench.case(model, options={_SWITCH: "0"})) as worker:
        return _Products(default=default, without=worker.ask(Evaluate(values=_probe())))


def kept_bits(seen: Evaluated) -> int | None:
    """Return how many bits of the mantissa came out as they went in.

    ``None`` for outputs that have nothing to do with what was fed.
    """
    fed = _probe()
    if len(seen.values) != len(fed):
        return None
    bits = 0
    for k in range(1, FP32_BITS + 1):
        places = range(k - 1, len(fed), FP32_BITS)
        if any(abs(seen.values[place] - fed[place]) > 2.0 ** -(k + 2) for place in places):
            break
        bits = k
    return bits


def _judge(facts: _Products, provider: Provider) -> LineFinding:
    bits = kept_bits(facts.default)
    without = None if facts.without is None else kept_bits(facts.without)
    if not bits or (facts.without is not None and not without):
        return wrong("wrong product", "a product with the identity gives other values")
    amounts = [Amount(name="bits of the mantissa", value=float(bits))]
    if without is not None:
        amounts.append(Amount(name="with use_tf32=0", value=float(without)))
        if without < FP32_BITS:
            return wrong(
                "lowered", "TF32 was switched off, and products lose bits all the same", *amounts
            )
    if bits >= FP32_BITS:
        if provider.name == _CUDA and provider.options.get(_SWITCH, "1") != "0":
            return unchecked(
                "no TF32",
                "CUDA may multiply in TF32 and did not: GPUs before Ampere have none",
                *amounts,
            )
        return passed("float32", "float32 is multiplied in all of its bits", *amounts)
    if bits == TF32_BITS and provider.name in NVIDIA:
        return passed("TF32", "float32 is multiplied in TF32, as this provider does", *amounts)
    return wrong("lowered", "float32 is multiplied in fewer bits", *amounts)


CHECK = Check(name="fp32", about="bits in which float32 is multiplied", look=_look, judge=_judge)
