"""Node events of an ONNX Runtime profile: read, put under their run and their enclosing node.

The profile is a Chrome trace, written one event a line when the event *ends*. Per thread an
enclosing event (a loop) therefore stands after the events inside it, which tells nesting exactly
where time stamps, whole microseconds, can't.

ONNX Runtime's profiler holds a million events and drops the others; a full disk ends the file
anywhere. The last event of a run is ``model_run``, so a run that has one is whole.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pytest_ortbench.core.errors import WorkerError, says
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.provider_kinds import CPU
from pytest_ortbench.worker.device_events import (
    CATEGORY,
    DeviceEvent,
    device_event,
    put_under_nodes,
)

#: Nodes whose events contain those of their bodies, and that compute nothing themselves.
CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})

#: Nodes whose events contain those of a decoder, and that compute besides.
SEARCH = frozenset({"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"})

_SUFFIX = "_kernel_time"

#: What newer versions of ONNX Runtime write last where they dropped events.
_TRUNCATED = "profile_truncated"


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
        device_us: What a device computed for it, by its own clock; of a copy, what it took besides
            waiting for the device. ``None`` where the profile does not tell.
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
    device_us: int | None = None

    @property
    def own_us(self) -> int:
        """Duration without bodies; none for control flow, as gaps between nodes count nowhere."""
        if self.op in CONTROL_FLOW:
            return 0
        if self.device_us is not None:
            return self.device_us
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
        seen: Events of all kinds in the file, those of incomplete runs included.
        cut_after: Events after which the profile broke off before any run was complete, so that
            nodes are missing; ``None`` if there is a complete run.
        tells_device: Whether the durations of a device's nodes are those of the device.
    """

    events: tuple[NodeEvent, ...]
    runs: int
    run_us: tuple[int, ...] = ()
    seen: int = 0
    cut_after: int | None = None
    tells_device: bool = False


def read_events(path: Path) -> Profile:
    """Read the node events of a profile file; a truncated one gives those of its complete runs.

    The file is read line by line: a million events take 700 MB.

    Args:
        path: What ``InferenceSession.end_profiling`` returned.

    Raises:
        WorkerError: if the file can't be read or holds no event at all.
    """
    reading = _Reading()
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                for raw in _objects(line):
                    reading.take(raw)
    except OSError as error:
        why = says("The system", error.strerror or str(error))
        is_gone = isinstance(error, FileNotFoundError)
        raise _unreadable(path, "is missing" if is_gone else f"can't be read. {why}") from error
    if not reading.seen:
        raise _unreadable(path, "contains no event")
    return reading.profile()


@dataclass(slots=True)
class _Reading:
    """A profile while it is read: its complete runs, and the one that may still be cut off."""

    seen: int = 0
    whole: list[NodeEvent] = field(default_factory=list)
    run_us: list[int] = field(default_factory=list)
    current: list[NodeEvent] = field(default_factory=list)
    broken: list[NodeEvent] = field(default_factory=list)
    damaged: bool = False
    unclaimed: dict[str, list[NodeEvent]] = field(default_factory=dict)
    device: list[DeviceEvent] = field(default_factory=list)

    def take(self, raw: dict[str, object] | None) -> None:
        """Add one event, or a damaged one, ``None``."""
        if raw is None:
            self.damaged = True
            return
        name = str(raw.get("name", ""))
        if name == _TRUNCATED:
            return
        self.seen += 1
        if name == "model_run":
            self._end_run(raw)
        elif raw.get("cat") == "Node" and name.endswith(_SUFFIX):
            self._take_node(raw, name.removesuffix(_SUFFIX))
        elif raw.get("cat") == CATEGORY:
            event = device_event(name, _whole(raw.get("dur")))
            self.device += [] if event is None else [event]

    def _take_node(self, raw: dict[str, object], name: str) -> None:
        event = _event(raw, name, len(self.run_us))
        unclaimed = self.unclaimed.setdefault(str(raw.get("tid")), [])
        if event.op in CONTROL_FLOW or event.op in SEARCH:
            _claim(event, unclaimed)
        unclaimed.append(event)
        self.current.append(event)

    def _end_run(self, raw: dict[str, object]) -> None:
        if self.damaged:
            self.broken = self.broken or self.current
        else:
            self.whole += self.current
            self.run_us.append(_whole(raw.get("dur")))
        self.current, self.unclaimed, self.damaged = [], {}, False

    def profile(self) -> Profile:
        """What was read: of complete runs, or of what there is if none is."""
        if self.run_us:
            tells_device = not self.current and put_under_nodes(self.device, self._recorded())
            return Profile(
                tells_device=tells_device,
                events=tuple(self.whole),
                runs=len(self.run_us),
                run_us=tuple(self.run_us),
                seen=self.seen,
            )
        events = self.broken or self.current
        return Profile(events=tuple(events), runs=1, seen=self.seen, cut_after=self.seen)

    def _recorded(self) -> list[NodeEvent]:
        """The nodes that may have recorded what a device did."""
        return [
            event for event in self.whole if event.provider != CPU and event.op not in CONTROL_FLOW
        ]


def _claim(outer: NodeEvent, unclaimed: list[NodeEvent]) -> None:
    """Put the events that began after ``outer`` and ended before it under ``outer``."""
    while unclaimed and unclaimed[-1].run == outer.run and unclaimed[-1].start_us > outer.start_us:
        inner = unclaimed.pop()
        inner.parent = outer
        outer.inside_us += inner.duration_us


def _objects(line: str) -> Iterator[dict[str, object] | None]:
    """Yield the JSON objects of a line of an array, ``None`` for one that is damaged."""
    position = line.find("{")
    while position >= 0:
        try:
            value, end = _DECODER.raw_decode(line, position)
        except json.JSONDecodeError:
            yield _with_name_quoted(line)
            return  # the next line may be whole
        yield value
        position = line.find("{", end)


def _with_name_quoted(line: str) -> dict[str, object] | None:
    """Read an event whose node's name holds quotes or backslashes: *seen*, 1.24 writes it as is."""
    parts = _NAMED.fullmatch(line.strip())
    if parts is None:
        return None
    before, name, after = parts.groups()
    try:
        value = json.loads(f"{before}{json.dumps(name)}{after}")
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


_DECODER = json.JSONDecoder()
_NAMED = re.compile(r'(\{.*?"name" ?: ?)"(.*)"( ?, ?"args" ?: ?\{.*\}\}),?')


def _event(raw: dict[str, object], name: str, run: int) -> NodeEvent:
    args = raw.get("args")
    facts: dict[str, object] = args if isinstance(args, dict) else {}
    return NodeEvent(
        # Of a million events most repeat the words of earlier ones.
        name=sys.intern(name),
        op=sys.intern(str(facts.get("op_name", ""))),
        provider=sys.intern(str(facts.get("provider", ""))),
        index=sys.intern(str(facts.get("node_index", ""))),
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
    return _shared_tensors(
        tuple(
            (kind, tuple(map(_whole, shape)))
            for entry in listed
            if isinstance(entry, dict)
            for kind, shape in entry.items()
            if isinstance(shape, list)
        )
    )


@lru_cache(maxsize=4096)
def _shared_tensors(listed: tuple[tuple[str, tuple[int, ...]], ...]) -> tuple[Tensor, ...]:
    """The tensors, as one object for all events that list the same ones."""
    return tuple(Tensor(type=kind, shape=shape) for kind, shape in listed)


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _unreadable(path: Path, how: str) -> WorkerError:
    return case_error(
        f"ONNX Runtime's profile {path}, which shows where nodes ran, {how}",
        f"Make sure that the temporary folder {tempfile.gettempdir()} has room and keeps files, "
        "or name another one in the environment variable TMPDIR",
        kind="error",
        phase="profile",
    )
