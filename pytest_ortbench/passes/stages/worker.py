"""A user's pre- and postprocessing around inference, each stage timed in the same process.

The file defines one or more of::

    def frames():                      # raw frames, called once; default: the case's own inputs
        return [read("a.jpg"), read("b.jpg")]

    def preprocess(frame):             # a raw frame to the model's inputs, by name
        return {"images": ...}

    def postprocess(outputs, frame):   # outputs by name; the frame may be left out
        ...
"""

from __future__ import annotations

import inspect
import itertools
import queue
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_ortbench.core.case import InputSpec
from pytest_ortbench.core.element_types import NUMPY_NAMES
from pytest_ortbench.core.python_profile import PythonProfile
from pytest_ortbench.core.python_profilers import profiler_of
from pytest_ortbench.passes.stages.facts import FrameBlock, StagesReady
from pytest_ortbench.passes.stages.questions import LoadStages, ProfileStages, RunFrames
from pytest_ortbench.schema.wire import from_plain
from pytest_ortbench.worker.input_files import size_options
from pytest_ortbench.worker.timing import median
from pytest_ortbench.worker.user_code import call, failed, load_file, stage_error
from pytest_ortbench.worker.warm_up import least_seconds, warm_up

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from pytest_ortbench.worker.measured import MeasuredCase

#: Raw frames that are taken of ``frames()``, which may have no end.
MOST_FRAMES = 100
#: Frames that may wait in front of a stage; more would hold memory and change nothing.
_WAITING = 2

_NAMES = ("frames", "preprocess", "postprocess")


#: Under which name the loaded stages are kept from one question to the next.
_STAGES = "stages"


def load_stages(question: LoadStages, measured: MeasuredCase) -> StagesReady:
    """Load the user's stages, send every frame through once, and warm up."""
    measured.enter("stages")
    case = measured.case
    stages = UserStages(Path(question.path), measured.live(), case.inputs, measured.feeds)
    measured.kept[_STAGES] = stages
    stages.check()
    warmed = warm_up(
        lambda count: array("q", stages.sequential(count).frame_ns),
        least_s=least_seconds(case.provider),
        budget_s=question.budget_s,
    )
    return StagesReady(
        functions=stages.functions,
        frames=len(stages.frames),
        typical_ns=round(median(warmed.durations_ns[-5:])),
    )


def run_frames(question: RunFrames, measured: MeasuredCase) -> FrameBlock:
    """Send frames through the stages that were loaded."""
    stages = _loaded(measured)
    count = question.count
    return stages.overlapped(count) if question.overlapped else stages.sequential(count)


def profile_stages(question: ProfileStages, measured: MeasuredCase) -> PythonProfile:
    """Look at the stages that were loaded with one of Python's profilers."""
    found = _loaded(measured).profiled(question.profiler, question.count)
    told = {"profiler": question.profiler, "rounds": question.count, "reason": "", **found}
    return from_plain(PythonProfile, told)


def _loaded(measured: MeasuredCase) -> UserStages:
    measured.enter("stages")
    stages = measured.kept.get(_STAGES)
    if not isinstance(stages, UserStages):
        raise RuntimeError("no stages are loaded")
    return stages


class UserStages:
    """A file of stages with the session that stands between them.

    Attributes:
        functions: What the file defines.
        frames: The raw frames that go round.

    Args:
        path: The file.
        session: The case's session.
        specs: The case's inputs: what ``preprocess`` has to make.
        feeds: The case's own inputs, which stand in for frames.

    Raises:
        WorkerError: if the file raises, or defines neither stage.
    """

    def __init__(
        self,
        path: Path,
        session: InferenceSession,
        specs: Sequence[InputSpec],
        feeds: Mapping[str, object],
    ) -> None:
        self._path = path
        self._run = session.run
        self._specs = specs
        self._outputs = [output.name for output in session.get_outputs()]
        module = load_file(path)
        self.functions = tuple(name for name in _NAMES if callable(getattr(module, name, None)))
        if not {"preprocess", "postprocess"} & set(self.functions):
            raise stage_error(
                f"{path.name} defined neither preprocess(frame) nor postprocess(outputs) when it "
                "was run",
                f"Define one of them at the top level of {path}, outside of any condition",
            )
        self._preprocess: Callable[[Any], Any] | None = getattr(module, "preprocess", None)
        self._postprocess = self._postprocess_of(module)
        self.frames = self._frames_of(module, feeds)

    def _postprocess_of(self, module: ModuleType) -> Callable[[Any, Any], object] | None:
        function = getattr(module, "postprocess", None)
        if function is None:
            return None
        names = self._outputs
        if _takes_two(function):
            return lambda values, frame: function(dict(zip(names, values, strict=True)), frame)
        return lambda values, _: function(dict(zip(names, values, strict=True)))

    def _frames_of(self, module: ModuleType, feeds: Mapping[str, object]) -> list[Any]:
        if "frames" not in self.functions:
            return [feeds]

        def taken() -> list[Any]:
            return list(itertools.islice(iter(module.frames()), MOST_FRAMES))

        frames: list[Any] = call(self._path, "frames()", taken)
        if not frames:
            raise stage_error(
                f"frames() of {self._path.name} returned no frame",
                "Return a list of at least one frame, as preprocess(frame) takes it",
            )
        return frames

    def check(self) -> None:
        """Send every frame through once, and look at what ``preprocess`` makes of it.

        Raises:
            WorkerError: if a stage raises, or the inputs are not those of the case.
        """
        for number, frame in enumerate(self.frames):
            feeds = frame
            if self._preprocess is not None:
                feeds = call(self._path, f"preprocess of frame {number}", self._preprocess, frame)
            self._check_feeds(number, feeds)
            values = self._run(None, feeds)
            if self._postprocess is not None:
                call(
                    self._path,
                    f"postprocess of frame {number}",
                    self._postprocess,
                    values,
                    frame,
                )

    def _check_feeds(self, number: int, feeds: object) -> None:
        is_made = self._preprocess is not None
        who = f"{'preprocess(frame)' if is_made else 'frames()'} in {self._path.name}"
        which = f"{'for' if is_made else 'as'} frame {number}"
        wanted = {spec.name: spec for spec in self._specs}
        if not isinstance(feeds, Mapping):
            raise stage_error(
                f"{who} returned a value of type {type(feeds).__name__} {which}, not a dictionary "
                "of arrays",
                f"Return a dictionary with an array for each input: {', '.join(wanted)}",
            )
        if set(feeds) != set(wanted):
            raise stage_error(
                f"{who} returned arrays for {_listed(feeds)} {which}, but the model takes "
                f"{_listed(wanted)}",
                "Return one array for each input of the model, under the name of the input",
            )
        for name, spec in wanted.items():
            made, asked = _described(feeds[name]), _asked(spec)
            if asked and made != asked:
                held = getattr(feeds[name], "shape", ())
                options = size_options(spec, spec.shape, held)
                raise stage_error(
                    f"{who} returned {name!r} as {made} {which}, but the case has {asked}",
                    f"Return {asked}"
                    + (options and f". To measure the shape {list(held)}, write {options}"),
                )

    def sequential(self, count: int) -> FrameBlock:
        """Time frames one after the other.

        Raises:
            WorkerError: if a stage raises.
        """
        frames, run = self.frames, self._run
        preprocess, postprocess = self._preprocess, self._postprocess
        times = [_room(count) for _ in range(4)]
        pre, inference, post, whole = times
        clock = time.perf_counter_ns
        index, stage = 0, ""
        cpu_before, wall_before = time.process_time_ns(), clock()
        try:
            for index in range(count):
                frame = frames[index % len(frames)]
                stage = "preprocess"
                start = clock()
                feeds = frame if preprocess is None else preprocess(frame)
                made = clock()
                stage = ""
                values = run(None, feeds)
                ran = clock()
                stage = "postprocess"
                if postprocess is not None:
                    postprocess(values, frame)
                end = clock()
                pre[index], inference[index] = made - start, ran - made
                post[index], whole[index] = end - ran, end - start
        except (Exception, SystemExit) as error:
            raise self.explained(stage, index, error) from error
        wall_ns = clock() - wall_before
        return FrameBlock(
            preprocess_ns=tuple(pre) if preprocess is not None else (),
            inference_ns=tuple(inference),
            postprocess_ns=tuple(post) if postprocess is not None else (),
            frame_ns=tuple(whole),
            wall_ns=wall_ns,
            cpu_ns=time.process_time_ns() - cpu_before,
        )

    def overlapped(self, count: int) -> FrameBlock:
        """Send frames through with a thread for each stage, inference in the calling one.

        What is counted lies between the first answer and the last, so filling up is left out.

        Raises:
            WorkerError: if a stage raises.
        """
        pipeline = _Pipeline(self, count)
        cpu_before = time.process_time_ns()
        pipeline.run()
        cpu_ns = time.process_time_ns() - cpu_before
        ends = pipeline.ends
        return FrameBlock(
            inference_ns=(),
            frame_ns=tuple(b - a for a, b in zip(pipeline.starts, ends, strict=True)),
            wall_ns=ends[-1] - ends[0],
            cpu_ns=cpu_ns,
        )

    def profiled(self, profiler: str, count: int) -> dict[str, Any]:
        """Send frames through while one of Python's profilers looks, and return what it found.

        Raises:
            WorkerError: if a stage raises.
        """
        make, infer, finish = self.steps()
        looking = profiler_of(profiler)
        index, stage = 0, ""
        # What the last frame has made is held until the profiler has looked.
        held: tuple[object, ...] = ()
        try:
            looking.begin()
            for index in range(count):
                frame = self.frames[index % len(self.frames)]
                stage = "preprocess"
                feeds = make(frame)
                stage = ""
                values = infer(feeds)
                stage = "postprocess"
                held = (feeds, values, finish(values, frame))
            found = looking.found()
        except (Exception, SystemExit) as error:
            raise self.explained(stage, index, error) from error
        del held
        return found

    def explained(self, stage: str, index: int, error: BaseException) -> BaseException:
        """An error of the user's code with its place; one of ONNX Runtime's as it is."""
        if not stage:
            return error
        return failed(self._path, f"{stage} of frame {index % len(self.frames)}", error)

    def steps(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[..., Any]]:
        """The three stages as functions; one that is missing hands on what it gets."""
        run = self._run
        return (
            self._preprocess or (lambda frame: frame),
            lambda feeds: run(None, feeds),
            self._postprocess or (lambda values, _: values),
        )


class _Pipeline:
    """Frames on their way through three threads with short queues between them."""

    def __init__(self, stages: UserStages, count: int) -> None:
        self._stages = stages
        self._count = count
        self._made: queue.Queue[Any] = queue.Queue(_WAITING)
        self._ran: queue.Queue[Any] = queue.Queue(_WAITING)
        self._error: BaseException | None = None
        self.starts, self.ends = _room(count), _room(count)

    def run(self) -> None:
        """Send all frames through.

        Raises:
            WorkerError: if a stage raises.
        """
        _, infer, _ = self._stages.steps()
        others = [
            threading.Thread(target=self._preprocess, daemon=True),
            threading.Thread(target=self._postprocess, daemon=True),
        ]
        for thread in others:
            thread.start()
        try:
            while (item := self._made.get()) is not None:
                index, feeds = item
                self._ran.put((index, infer(feeds)))
        except Exception as error:  # noqa: BLE001 - native errors have no common base class
            self._error = self._error or error
            self._drain(self._made)
        self._ran.put(None)
        for thread in others:
            thread.join()
        if self._error is not None:
            raise self._error

    def _preprocess(self) -> None:
        make, _, _ = self._stages.steps()
        frames, index = self._stages.frames, 0
        try:
            for index in range(self._count):
                if self._error is not None:
                    break
                self.starts[index] = time.perf_counter_ns()
                self._made.put((index, make(frames[index % len(frames)])))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's code raises
            self._error = self._stages.explained("preprocess", index, error)
        self._made.put(None)

    def _postprocess(self) -> None:
        _, _, finish = self._stages.steps()
        frames, index = self._stages.frames, 0
        try:
            while (item := self._ran.get()) is not None:
                index, values = item
                finish(values, frames[index % len(frames)])
                self.ends[index] = time.perf_counter_ns()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's code raises
            self._error = self._stages.explained("postprocess", index, error)
            self._drain(self._ran)

    @staticmethod
    def _drain(waiting: queue.Queue[Any]) -> None:
        """Take what still comes, so that nobody in front waits for ever."""
        while waiting.get() is not None:
            pass


def _takes_two(function: Callable[..., object]) -> bool:
    """Whether a second positional argument may be given."""
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _described(value: object) -> str:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return f"a {type(value).__name__}" if shape is None else f"{dtype} {list(shape)}"


def _asked(spec: InputSpec) -> str:
    """What numpy calls it; empty for what is no plain tensor, which is left to ONNX Runtime."""
    element = spec.type.removeprefix("tensor(").removesuffix(")")
    known = NUMPY_NAMES.get(element)
    # Strings come as objects or as numpy's own strings.
    return f"{known} {list(spec.shape)}" if known and element != "string" else ""


def _listed(names: Mapping[Any, object]) -> str:
    return ", ".join(str(name) for name in names) or "nothing"


def _room(count: int) -> array[int]:
    return array("q", bytes(8 * count))
