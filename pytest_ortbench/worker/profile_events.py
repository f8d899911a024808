"""Node events of an ONNX Runtime profile: read, put under their run and their enclosing node.

The profile is a Chrome trace, written one event a line when the event *ends*. Per thread an
enclosing event (a loop) therefore stands after the events inside it, which tells nesting exactly
where time stamps, whole microseconds, can't.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure

#: Nodes whose events contain those of their bodies, and that compute nothing themselves.
CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})

#: Nodes whose events contain those of a decoder, and that compute besides.
SEARCH = frozenset({"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"})

_SUFFIX = "_kernel_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """Type and shape of one value that a node read or wrote, in the profile's words."""

    type: str
    shape: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class NodeEvent:
    """One execution of one node.

    Attributes:
        name: Name of the node, made up by ONNX Runtime where the graph has none.
        op: Operator type.
        provider: Provider that executed it.
        index: Index of the node in its graph, as text.
        inputs: Tensor inputs. Packed weights, sequences and maps are not listed by ONNX Runtime.
        outputs: Tensor outputs.
        start_us: Start.
        duration_us: Duration, bodies included.
        run: Which call of ``run`` it belongs to, from 0.
        parent: The enclosing control-flow or search node.
        inside_us: Duration of the events directly inside it.
    """

    name: str
    op: str
    provider: str
    index: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    start_us: int
    duration_us: int
    run: int
    parent: NodeEvent | None = field(default=None, repr=False)
    inside_us: int = 0

    @property
    def own_us(self) -> int:
        """Duration without bodies; none for control flow, as gaps between nodes count nowhere."""
        if self.op in CONTROL_FLOW:
            return 0
        return max(self.duration_us - self.inside_us, 0)

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the node: its name and index, within its enclosing nodes."""
        outer = self.parent.key if self.parent is not None else ()
        return (*outer, f"{self.name}#{self.index}#{self.op}#{self.provider}")

    @property
    def partition(self) -> bool:
        """Whether this is a subgraph that the provider compiled.

        ONNX Runtime names such a node ``<provider>_<operator>_<number>``, its operator being what
        the provider calls the subgraph; seen with OpenVINO and with plug-in providers.
        """
        return self.name.startswith(f"{self.provider}_{self.op}_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Node events of the complete runs, or of what there is when none is complete.

    Attributes:
        events: The events, in the order in which they ended.
        runs: Complete runs, 1 at least.
        run_us: Duration of each complete run, as the profiler took it.
    """

    events: tuple[NodeEvent, ...]
    runs: int
    run_us: tuple[int, ...] = ()


def read_events(path: Path) -> Profile:
    """Read the node events of a profile file; a truncated one gives those of its complete runs.

    Args:
        path: What ``InferenceSession.end_profiling`` returned.

    Raises:
        WorkerError: if the file can't be read or holds no event at all.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _unreadable(path, f"{error.strerror or error}") from error
    per_thread: dict[str, list[NodeEvent]] = {}
    events: list[NodeEvent] = []
    runs = seen = 0
    run_us: list[int] = []
    for raw in _objects(text):
        seen += 1
        name = str(raw.get("name", ""))
        if name == "model_run":
            runs += 1
            run_us.append(_whole(raw.get("dur")))
            continue
        if raw.get("cat") != "Node" or not name.endswith(_SUFFIX):
            continue
        event = _event(raw, name.removesuffix(_SUFFIX), runs)
        unclaimed = per_thread.setdefault(str(raw.get("tid")), [])
        if event.op in CONTROL_FLOW or event.op in SEARCH:
            _claim(event, unclaimed)
        unclaimed.append(event)
        events.append(event)
    if not seen:
        raise _unreadable(path, "no event could be read from it")
    if runs:
        events = [event for event in events if event.run < runs]
    return Profile(events=tuple(events), runs=max(runs, 1), run_us=tuple(run_us))


def _claim(outer: NodeEvent, unclaimed: list[NodeEvent]) -> None:
    """Put the events that began after ``outer`` and ended before it under ``outer``."""
    while unclaimed and unclaimed[-1].run == outer.run and unclaimed[-1].start_us > outer.start_us:
        inner = unclaimed.pop()
        inner.parent = outer
        outer.inside_us += inner.duration_us


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the JSON objects of an array that may break off anywhere."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            # A damaged event ends at its line; the next line may be whole.
            line_end = text.find("\n", position)
            position = text.find("{", line_end) if line_end >= 0 else -1
            continue
        if isinstance(value, dict):
            yield value
        position = text.find("{", end)


def _event(raw: dict[str, object], name: str, run: int) -> NodeEvent:
    args = raw.get("args")
    facts: dict[str, object] = args if isinstance(args, dict) else {}
    return NodeEvent(
        name=name,
        op=str(facts.get("op_name", "")),
        provider=str(facts.get("provider", "")),
        index=str(facts.get("node_index", "")),
        inputs=_tensors(facts.get("input_type_shape")),
        outputs=_tensors(facts.get("output_type_shape")),
        start_us=_whole(raw.get("ts")),
        duration_us=_whole(raw.get("dur")),
        run=run,
    )


def _tensors(listed: object) -> tuple[Tensor, ...]:
    """Read ``[{"float": [4, 16]}, …]``."""
    if not isinstance(listed, list):
        return ()
    return tuple(
        Tensor(type=str(kind), shape=tuple(_whole(size) for size in shape))
        for entry in listed
        if isinstance(entry, dict)
        for kind, shape in entry.items()
        if isinstance(shape, list)
    )


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _unreadable(path: Path, why: str) -> WorkerError:
    return WorkerError(
        Failure(
            kind="error",
            phase="profile",
            message=f"the profile {path} is of no use: {why}",
            hint="Without it placement can't be proven; see if the temporary folder is full",
        )
    )
