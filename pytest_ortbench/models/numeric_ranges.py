"""Rules for inputs whose numbers lie in a range: domains of functions, scales, probabilities."""

from __future__ import annotations

from pytest_ortbench.models.consumers import always, input_name, rule
from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding

#: Operators whose results are NaN outside these ranges, so that nothing after them can be judged.
_DOMAINS: tuple[tuple[float, float, tuple[str, ...]], ...] = (
    (0.05, 1.0, ("Log", "Sqrt", "Reciprocal", "ReduceLogSum")),
    (-0.9, 0.9, ("Acos", "Asin", "Atanh")),
    (1.1, 2.0, ("Acosh",)),
    (0.0, 1.0, ("Bernoulli",)),
)
for _low, _high, _operators in _DOMAINS:
    for _operator in _operators:
        _why = f"{_operator} is defined there"
        always(ConsumerFinding(kind="uniform", low=_low, high=_high, why=_why), (_operator, 0))

_SCALES = (
    *(("DequantizeLinear", 1), ("QuantizeLinear", 1)),
    *((name, index) for name in ("QLinearConv", "QLinearMatMul") for index in (1, 4, 6)),
    *((f"com.microsoft::QLinear{name}", index) for name in ("Add", "Mul") for index in (1, 4, 6)),
    *(("com.microsoft::DequantizeLinear", 1), ("com.microsoft::QuantizeLinear", 1)),
    *(("com.microsoft::MatMulNBits", 2), ("com.microsoft::DynamicQuantizeMatMul", 2)),
    *(("com.microsoft::MatMulIntegerToFloat", index) for index in (2, 3)),
)
always(ConsumerFinding(kind="uniform", low=0.01, high=0.1, why="scale, above zero"), *_SCALES)
always(
    ConsumerFinding(kind="uniform", low=0.5, high=1.5, why="BatchNormalization variance"),
    ("BatchNormalization", 4),
)
always(
    ConsumerFinding(kind="uniform", low=-1.0, high=1.0, why="a recurrent state, bounded by tanh"),
    *(("LSTM", 5), ("LSTM", 6), ("GRU", 5), ("RNN", 5)),
    *(("com.microsoft::DynamicQuantizeLSTM", index) for index in (5, 6)),
)
always(
    ConsumerFinding(kind="uniform", low=-1.0, high=1.0, why="GridSample coordinates"),
    ("GridSample", 1),
    ("com.microsoft::GridSample", 1),
)


@rule(("Pow", 0))
def _base(use: Use, flow: Dataflow) -> ConsumerFinding | None:
    """A base above zero, unless its exponent is known to be whole."""
    exponent = flow.constant(use.scope, input_name(use, 1))
    if exponent is not None and bool((exponent == exponent.round()).all()):
        if bool((exponent >= 0).all()):
            return None
    elif use.reads_integers:
        return None
    return ConsumerFinding(kind="uniform", low=0.05, high=1.0, why="Pow is defined there")


@rule(("Pow", 1))
def _exponent(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    if not use.reads_integers:
        return None
    return ConsumerFinding(low=0, high=3, why="Pow exponent")


@rule(("Clip", 1))
def _least(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    lowest = "0" if use.reads_integers else "-1"
    return ConsumerFinding(values=(lowest,), why="Clip minimum")


@rule(("Clip", 2))
def _most(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    highest = "9" if use.reads_integers else "1"
    return ConsumerFinding(values=(highest,), why="Clip maximum")


for _index, _number, _what in (
    (0, "8", "mel bands"),
    (1, "64", "length of the transform"),
    (2, "16000", "sampling rate in Hz"),
    (3, "0", "lowest frequency in Hz"),
    (4, "8000", "highest frequency in Hz"),
):
    always(
        ConsumerFinding(values=(_number,), why=f"MelWeightMatrix {_what}"),
        ("MelWeightMatrix", _index),
    )
