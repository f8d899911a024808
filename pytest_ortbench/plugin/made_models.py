"""Models that a test makes while it runs: measured as those of the matrix, named by the test."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_ortbench.core.errors import DocumentError, NoModelError, OrtbenchError, UsageError
from pytest_ortbench.plugin.judges import Judges
from pytest_ortbench.plugin.marked_paths import folders_of, placed_specs, with_folders
from pytest_ortbench.plugin.marker import (
    AXES,
    BY_FLAG,
    MarkerValues,
    marker_error,
    marker_of,
    read_marker,
)
from pytest_ortbench.plugin.measured import Measured
from pytest_ortbench.plugin.own_tests import planned_of
from pytest_ortbench.worker.array_archive import write_arrays

if TYPE_CHECKING:
    from pytest_ortbench.planning.matrix import Plan, Planned
    from pytest_ortbench.planning.request import PlanRequest
    from pytest_ortbench.plugin.bench import Bench

#: A message of protobuf is not larger.
_MOST_BYTES = 2**31 - 1

_NAMED = "Give each model a name of its own, e.g. ortbench.measure(path, name='small')"

_TOO_LARGE = UsageError(
    "the model is larger than 2 GB, the most that one protobuf message can hold",
    place="ortbench.measure",
    hint="Save the model with onnx.save(model, path, save_as_external_data=True), and pass the "
    "path",
)


class Serialised(Protocol):
    """A model that gives its bytes, as ``onnx.ModelProto`` does."""

    def SerializeToString(self) -> bytes:
        """Return the bytes of the file."""


class MadeModels:
    """Measures the models that one test makes.

    Args:
        bench: The run.
        item: The test.

    Attributes:
        entries: Cases so far.
        problems: What the test fails with when it is over, each with the name of its case.
    """

    def __init__(self, bench: Bench, item: pytest.Item) -> None:
        self._bench = bench
        self._item = item
        self._place = f"{item.nodeid}, ortbench.measure"
        self._names: set[str] = set()
        self.entries: list[Planned] = []
        self.problems: list[str] = []

    def measure(
        self,
        model: str | os.PathLike[str] | bytes | bytearray | memoryview | Serialised,
        *,
        name: str,
        inputs: str | os.PathLike[str] | Mapping[str, object] | None,
        check: bool,
        keywords: Mapping[str, Any],
    ) -> Measured:
        """Measure one; see :meth:`~pytest_ortbench.plugin.fixture.OrtBench.measure`."""
        place: Path | None = None
        try:
            values = self._values(keywords)
            called = self._called(name)
            request = values.apply(self._bench.collection.request_for((self._spec(model),)))
            request = replace(request, made=called)
            if inputs is not None:
                place = self._inputs(inputs)
                request = replace(request, inputs=place)
            plan = self._planned_once(self._bench.collection.plan_made(request), request)
            Judges.of(self._bench).admit(self._item, request, plan, values)
        except OrtbenchError as error:
            given = {**keywords, "models": model, **({} if inputs is None else {"inputs": inputs})}
            if isinstance(inputs, Mapping):  # the file that was made of them is no user's
                error.message = error.message.replace(repr(str(place)), "the mapping")
            raise pytest.fail.Exception(self._told(error, given), pytrace=False) from None
        try:
            self._bench.expect(plan.entries)
        except DocumentError as error:
            # As a result that can't be stored: the document at the end has it.
            self._bench.warn(str(error))
        measured = Measured(self._bench, plan.entries, values.limits)
        self.entries += plan.entries
        self._note_if_unseen()
        self._hold(measured, plan, check=check)
        return measured

    def _told(self, error: OrtbenchError, given: Mapping[str, object]) -> str:
        """What is wrong, as of what the call or a marker of the test names if that is to blame."""
        keyword = BY_FLAG.get(error.place)
        if keyword not in given:
            return marker_error(error, self._item) or str(error)
        if isinstance(error, NoModelError):
            error = with_folders(error, self._item, given["models"])
        place = self._place if keyword == "models" else f"{self._place}, {keyword}"
        return str(UsageError(error.message, place=place, hint=error.hint))

    def _note_if_unseen(self) -> None:
        """Say that the test ran for models of the run besides, since its call was not seen."""
        if planned_of(self._item) is None:
            return
        if AXES["models"] in marker_of(self._item).axes:
            return
        test = self._item.nodeid.partition("[")[0]
        remark = (
            f"{test} calls ortbench.measure inside another function, which pytest can't see when "
            "it collects, so the test also ran for each model of the run. Pass the method from "
            "the test: helper(ortbench.measure, …)"
        )
        if remark not in self._bench.remarks:
            self._bench.remarks.append(remark)

    def _values(self, keywords: Mapping[str, Any]) -> MarkerValues:
        """What the call asks for, and the markers of the test where it says nothing."""
        if "models" in keywords:
            raise UsageError(
                "the call has the keyword models=, but measures only the model that it is given "
                "as its first argument",
                place=self._place,
                hint="Leave models= out",
            )
        marks = [pytest.mark.ortbench(**keywords).mark, *self._item.iter_markers("ortbench")]
        return read_marker(marks, place=self._place, folders=folders_of(self._item))

    def _called(self, name: str) -> str:
        """The name of the model: that of the test, and what tells it from others of the test."""
        if name in self._names:
            without = f"under the name {name!r}" if name else "without a name"
            raise UsageError(
                f"the test already measured a model {without}", place=self._place, hint=_NAMED
            )
        self._names.add(name)
        file, *inner = self._item.nodeid.split("::")
        place = self._bench.collection.place_of(self._item.path) or file
        test, bracket, parameters = "/".join(inner).partition("[")
        parts = (place, test, parameters.removesuffix("]") if bracket else "", name)
        return "/".join(part for part in parts if part)

    def _spec(
        self, model: str | os.PathLike[str] | bytes | bytearray | memoryview | Serialised
    ) -> str:
        """The model as ``--ort-models`` takes it; bytes are written to a file."""
        if isinstance(model, str | os.PathLike):
            return self._file(model)
        if isinstance(model, bytearray | memoryview):
            model = bytes(model)
        if not isinstance(model, bytes):
            model = _serialised(model, self._place)
        if len(model) > _MOST_BYTES:
            raise _TOO_LARGE
        path = self._bench.folder_of_made() / "model.onnx"
        path.write_bytes(model)
        return str(path)

    def _file(self, path: str | os.PathLike[str]) -> str:
        """A file as any function of Python takes it, whatever folder the test has gone to.

        What is not there is looked for as that of a marker.
        """
        written = os.fsdecode(path)
        if Path(written).exists():
            return str(Path(written).absolute())
        return placed_specs([written], folders_of(self._item))[0]

    def _inputs(self, inputs: str | os.PathLike[str] | Mapping[str, object]) -> Path:
        if not isinstance(inputs, Mapping):
            return Path(self._file(inputs))
        path = self._bench.folder_of_made() / "inputs.npz"
        write_arrays(path, inputs)
        return path

    def _planned_once(self, plan: Plan, request: PlanRequest) -> Plan:
        """The plan; where a test is run again, with the cases that it had before."""
        if not plan.entries:
            reasons = "; ".join(f"{skip.what}: {skip.reason}" for skip in plan.skips)
            if not reasons:
                raise UsageError(
                    f"the model has none of the precisions {', '.join(request.precisions)}",
                    place=self._place,
                    hint="Write a precision that it has, e.g. precisions=['native']",
                )
            raise UsageError(
                f"every case of the model was left out: {reasons}",
                place=self._place,
                hint="Name a provider or precision that can run the model, in --ort-providers or "
                "--ort-precisions",
            )
        entries = []
        for entry in plan.entries:
            earlier = self._bench.planned.get(entry.case.key)
            if earlier is not None and earlier.case.model.digest != entry.case.model.digest:
                raise UsageError(
                    "the test ran before, and measured another model as "
                    f"{entry.case.case_id} (SHA-256 {earlier.case.model.digest[:12]}…, now "
                    f"{entry.case.model.digest[:12]}…)",
                    place=self._place,
                    hint="Make the same model each time the test runs, e.g. with a fixed random "
                    "seed",
                )
            entries.append(earlier or entry)
        return replace(plan, entries=tuple(entries))

    def _hold(self, measured: Measured, plan: Plan, *, check: bool) -> None:
        """Measure the cases and judge them now, while their files are there.

        What is wrong is told when the test is over, but for a case that gives no number.
        """
        judging = Judges.of(self._bench).judging
        without = []
        for case, planned in zip(measured.cases, plan.entries, strict=True):
            if case.failure is None:
                wrong = case.problems(self._item, judging.at_end)
            else:
                without.append(case)
                wrong = judging.at_end(self._item, planned)
            self.problems += [f"{case.name}: {text}" for text in wrong]
        if check:
            for case in without:
                _ = case.result


def _serialised(model: object, place: str) -> bytes:
    """The bytes of a model that gives them."""
    give = getattr(model, "SerializeToString", None)
    if give is None:
        raise UsageError(
            f"the model is of type {type(model).__name__}, not a path, bytes or a ModelProto",
            place=place,
            hint="Pass the path of its ONNX file. If it has none, export it to one first",
        )
    try:
        return bytes(give())
    except Exception as error:
        size = getattr(model, "ByteSize", None)
        if size is not None and size() > _MOST_BYTES:
            raise _TOO_LARGE from error
        raise
