"""Divide a suite over the workers of a cluster, by model, and make one run of what comes back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pytest_ortbench.core.errors import DocumentError, UsageError
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.core.run import Commit, Run, Shard
from pytest_ortbench.core.units import counted
from pytest_ortbench.core.version import VERSION
from pytest_ortbench.core.whole_file import replace_file
from pytest_ortbench.fleet.hosts.cluster import Began, Cluster, Ended
from pytest_ortbench.fleet.hosts.facts import LATEST_S, ShardedRun
from pytest_ortbench.fleet.hosts.parcel import Parcel, SentFile, sent_file
from pytest_ortbench.fleet.hosts.records import write_record
from pytest_ortbench.fleet.hosts.returned import LONGEST_REASON, short_reason
from pytest_ortbench.store.documents import read
from pytest_ortbench.store.folder import DOCUMENT, JOURNAL
from pytest_ortbench.store.merge import merge_shards, mergeable_kinds

_SHARDS = "shards"
_AGAIN = (
    "Run the command again with --resume=latest. If this happens twice, report it as a defect of "
    "pytest-ortbench"
)


@dataclass
class Sharding:
    """A suite, and what became of its models so far.

    Attributes:
        run: What is stored of it.
        folder: Where that lies, and the documents of the shards.
        tell: Told of progress.
    """

    run: ShardedRun
    folder: Path
    tell: Callable[[str], None]

    def measure(self, cluster: Cluster, files: Sequence[SentFile]) -> None:
        """Have the models that lack a document measured; keep what comes back at once.

        Raises:
            UsageError: if a worker can't take part, the suite has no case, or its files changed.
            KeyboardInterrupt: if it was interrupted; what workers ran is ended then.
        """
        with OwnFolder("shards") as private:
            parcel, order = self._packed(files, private)
            cluster.send(parcel, self.run.tag)
            try:
                if not self.run.models:
                    self._plan(cluster, order)
                self._gather(cluster, parcel, order)
            except BaseException:
                cluster.stop(self.run.tag)
                raise
            finally:
                self._note_interrupted(cluster.began(self.run.tag))
                write_record(self.run, self.folder)
                cluster.clear(self.run.tag)

    def _packed(self, files: Sequence[SentFile], private: Path) -> tuple[Parcel, str]:
        """Return what is sent, and the digest of the file that tells workers what it is."""
        parcel = Parcel(files=tuple(files), wheels={}, offline=True, arguments=self.run.arguments)
        content = {"files": parcel.project(), "arguments": list(self.run.arguments)}
        path = private / "order.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        order = sent_file(path, "")
        if self.run.project not in ("", order.digest):
            raise UsageError(
                f"the files that are sent to the workers have changed since the run {self.run.tag} "
                "began",
                place="--resume",
                hint="Start a new run: in place of --resume, write "
                f"{shlex.join(('--', *self.run.arguments))}",
            )
        self.run = replace(self.run, project=order.digest)
        return replace(parcel, wheels={path.name: order}), order.digest

    def _plan(self, cluster: Cluster, order: str) -> None:
        plan = cluster.plan(self.run.tag, order, self.run.arguments)
        if not plan.models:
            raise UsageError(
                "pytest found no case on a worker. pytest printed there: "
                f"{short_reason(plan.output)!r}",
                place="fleet shard",
                hint=f"To see why, run here: {shlex.join(('pytest', *self.run.arguments))}. If it "
                "finds cases here, the workers lack a file: name it, e.g. --send=models",
            )
        self.run = replace(self.run, models=plan.models)
        write_record(self.run, self.folder)
        total = sum(plan.models.values())
        self.tell(f"{counted(total, 'case')} of {counted(len(plan.models), 'model')}")

    def _gather(self, cluster: Cluster, parcel: Parcel, order: str) -> None:
        left = self.left()
        for model, ending in cluster.measure(self.run.tag, order, left, parcel):
            shard = self._kept(model, ending)
            self.run = replace(self.run, shards=(*self.run.shards, shard))
            write_record(self.run, self.folder)
            where = f" on {shard.worker}" if shard.worker else ""
            self.tell(f"{model}: {shard.state}{where} {shard.reason}".rstrip())

    def _kept(self, model: str, ending: Ended | str) -> Shard:
        """Keep the document of an answer in the run's folder, and say what it came to."""
        if isinstance(ending, str):
            return Shard(
                name=f"none-{len(self.run.shards)}",
                state="failed",
                worker="",
                models=(model,),
                reason=short_reason(ending),
            )
        codes = {**self.run.codes, ending.attempt: ending.code}
        self.run = replace(self.run, codes=codes)
        output = f"pytest ended with exit status {ending.code}: {ending.output}"
        failed = Shard(
            name=ending.attempt,
            state="failed",
            worker=ending.name[:LONGEST_REASON],
            models=(model,),
            reason=short_reason(output),
        )
        if not ending.document:
            return failed
        try:
            path = self._path(ending.attempt, JOURNAL if ending.file == JOURNAL else DOCUMENT)
            if path.exists():
                raise DocumentError(
                    f"the worker {ending.name!r} sent results of the model {model!r} a second "
                    "time, in place of those that are missing",
                    place=str(path),
                    hint=_AGAIN,
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, ending.document)
            run = _of_model(read(path).run, model, str(path))
        except DocumentError as error:
            return replace(failed, reason=short_reason(str(error)))
        complete = len(run.cases) >= self.run.models.get(model, 0) and run.finished_at is not None
        return replace(
            failed,
            state="measured" if complete else "failed",
            started_at=run.started_at,
            reason="" if complete else failed.reason,
        )

    def _path(self, attempt: str, name: str) -> Path:
        return self.folder / _SHARDS / f"{attempt}{Path(name).suffix}"

    def _note_interrupted(self, told: Sequence[Began]) -> None:
        """List the attempts that began and that nobody answered for: their worker was lost."""
        known = {shard.name for shard in self.run.shards}
        lost = tuple(
            Shard(
                name=began.attempt,
                state="interrupted",
                worker=began.name[:LONGEST_REASON],
                models=began.models,
                started_at=_time(began.began),
                reason="its worker was lost",
            )
            for began in told
            if began.attempt not in known
        )
        self.run = replace(self.run, shards=(*self.run.shards, *lost))

    def left(self) -> list[str]:
        """Return the models that no worker measured to the end."""
        measured = {
            model
            for shard in self.run.shards
            if shard.state == "measured"
            for model in shard.models
        }
        return [model for model in self.run.models if model not in measured]

    def passed(self) -> bool:
        """Say whether every model was measured, each by a pytest that ended with status 0."""
        measured = [shard.name for shard in self.run.shards if shard.state == "measured"]
        return not self.left() and all(self.run.codes.get(name) == 0 for name in measured)

    def merged(self, *, apart: bool, commit: Commit | None = None) -> list[Run]:
        """Return one run of all documents; if asked for, one for each kind of machine.

        A model that was measured again counts as it was measured last. Shards of another kind of
        machine than most are failed, unless they are kept apart.

        Args:
            apart: Whether they are kept apart.
            commit: State of the project that was sent.
        """
        runs = self._documents()
        kinds = mergeable_kinds(runs) or [[]]
        if not apart:
            for name in (name for kind in kinds[1:] for name in kind):
                self._fail(name, "its machine or its runtime is of another kind than the others")
            kinds = kinds[:1]
        merged = []
        for kind in filter(None, kinds):
            others = {name for other in kinds if other is not kind for name in other}
            models = {model: name for name in kind for model in self._shard(name).models}
            expected = sum(self.run.models.values())
            if apart:
                expected = sum(self.run.models.get(model, 0) for model in models)
            run = merge_shards(
                {name: runs[name] for name in kind},
                [shard for shard in self.run.shards if shard.name not in others],
                expected=expected,
                arguments=self.run.arguments,
            )
            merged.append(replace(run, commit=commit))
        return merged

    def _documents(self) -> dict[str, Run]:
        """Return the documents by the names of their shards: the last one of each model."""
        runs: dict[str, tuple[str, Run]] = {}
        for shard in self.run.shards:
            for name in (DOCUMENT, JOURNAL):
                path = self._path(shard.name, name)
                if shard.state == "interrupted" or not path.is_file():
                    continue
                try:
                    run = _of_model(read(path).run, shard.models[0], str(path))
                except (DocumentError, IndexError):
                    continue
                before = runs.get(shard.models[0])
                if before is None or len(run.cases) >= len(before[1].cases):
                    runs[shard.models[0]] = (shard.name, run)
        return dict(runs.values())

    def _shard(self, name: str) -> Shard:
        return next(shard for shard in self.run.shards if shard.name == name)

    def _fail(self, name: str, reason: str) -> None:
        self.run = replace(
            self.run,
            shards=tuple(
                replace(shard, state="failed", reason=reason) if shard.name == name else shard
                for shard in self.run.shards
            ),
        )


def refuse_mixed(facts: Mapping[str, Mapping[str, Any]], *, apart: bool) -> None:
    """Refuse workers of another version, and machines that are not alike unless kept apart.

    Args:
        facts: What each worker says of itself, by its name.
        apart: Whether machines may differ.

    Raises:
        UsageError: with the facts that differ.
    """
    for worker, told in facts.items():
        version = told.get("pytest-ortbench")
        if version != VERSION:
            raise UsageError(
                f"the worker {worker!r} has pytest-ortbench {version}, but this machine has "
                f"{VERSION}",
                place="fleet shard",
                hint="In the Python environment of the worker, run: pip install "
                f"pytest-ortbench=={VERSION}. Then start the worker again",
            )
    if apart:
        return
    (first, expected), *others = facts.items()
    for worker, told in others:
        for name in {**expected["stable"], **told["stable"]}:
            values = [entry["stable"].get(name) for entry in (expected, told)]
            if values[0] != values[1]:
                raise UsageError(
                    f"the workers {first!r} and {worker!r} differ in {name}: "
                    f"{_shown(first, values[0])}, {_shown(worker, values[1])}",
                    place="fleet shard",
                    hint=f"To get one run.json, use workers with the same {name}. To get one for "
                    "each kind of machine, add --mixed=apart",
                )


def _shown(worker: str, value: object) -> str:
    return f"{worker!r} has {'none' if value is None else repr(value)}"


def _of_model(run: Run, model: str, place: str) -> Run:
    """Return a run whose cases are all of the model that was asked for.

    Raises:
        DocumentError: if one is not.
    """
    for result in run.cases:
        if result.case.model.name != model and not result.case.model.is_made:
            raise DocumentError(
                f"a worker was asked to measure the model {model!r}, but sent results of the model "
                f"{result.case.model.name!r}, so they are not used",
                place=place,
                hint=_AGAIN,
            )
    return run


def _time(seconds: float) -> str:
    if not 0 <= seconds <= LATEST_S:
        return ""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
