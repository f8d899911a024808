"""A case of a stored run, planned again: what runs comes from here, never from the document.

A run document is data. Of a stored case only names, numbers and choices out of fixed sets are
used; commands, libraries, options that may hold paths, and files come from the project's
configuration and the command line. What the stored case needs and nobody gives here is refused.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from pytest_ortbench.core.case import FIX_DIMS, Case
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.core.session_entries import SPINNING
from pytest_ortbench.planning.matrix import Plan, Planned
from pytest_ortbench.planning.request import CALLS, IO_MODES, SWITCH_POSITIONS, PlanRequest
from pytest_ortbench.planning.session_options import GRAPH_LEVELS
from pytest_ortbench.runtimes.project_file import entry_to_write

#: The label of the interpreter that runs the command.
_CURRENT = "current"
#: A plug-in may have a name that nobody here has heard of, but no other characters.
_CHANGED = ", so the file of the run was changed after the run"
_MEASURE_AGAIN = "Measure the model again, and name the new run with --run=latest"
_PROVIDER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedOptions:
    """What the command line gives for what no document is trusted with.

    Attributes:
        model: A model specification; empty where the project has the file.
        runtime: A runtime specification; empty where the project configures the stored one.
        inputs: Real inputs.
        session_options: Session options and config entries.
        provider_options: Provider options by alias.
        custom_ops: Libraries of custom operators.
    """

    model: str = ""
    runtime: str = ""
    inputs: Path | None = None
    session_options: Mapping[str, str] = field(default_factory=dict)
    provider_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    custom_ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAgain:
    """A case of this project's own, as the stored one was.

    Attributes:
        planned: What runs.
        notes: Where it differs from what was stored.
    """

    planned: Planned
    notes: tuple[str, ...] = ()


def runtime_of(stored: Case, given: TrustedOptions, configured: Collection[str], root: Path) -> str:
    """Return the specification of the runtime that stands for the stored one.

    Args:
        stored: The stored case.
        given: What the command line gives.
        configured: Names of the runtimes that the project configures.
        root: The project's folder.

    Raises:
        UsageError: if the project has none of that name and none was given.
    """
    if given.runtime:
        return given.runtime
    runtime = stored.runtime
    if runtime.label == _CURRENT:
        needed, keys = [], []
        if len(runtime.command) > 1:  # one word is the interpreter's path of back then
            needed.append(f"the command {shlex.join(runtime.command)!r} to start Python")
            keys.append('command = ["PROGRAM", "ARGUMENT"]')
        else:
            keys.append('python = "current"')
        if runtime.environment:
            several = "s" if len(runtime.environment) > 1 else ""
            named = _listed(tuple(runtime.environment))
            needed.append(f"the environment variable{several} {named}")
            values = ", ".join(
                f"{json.dumps(name)} = {json.dumps(value)}"
                for name, value in runtime.environment.items()
            )
            keys.append(f"environment = {{ {values} }}")
        if needed:
            where = entry_to_write(root, "runtimes", "own")
            entry = f"Write {' and '.join(keys)} under {where}"
            lack = _Lack(what=" and ".join(needed), entry=entry, option="--runtimes=own")
            raise _refused(stored, [lack])
        return _CURRENT
    if runtime.label in configured:
        return runtime.label
    what = f"the runtime {runtime.label!r}, which this project does not configure"
    where = entry_to_write(root, "runtimes", runtime.label)
    entry = f"To use it, configure it under {where}. To use another one, add --runtimes, e.g. "
    entry += "--runtimes=current"
    raise _refused(stored, [_Lack(what=what, entry=entry)])


def request_of(
    stored: Case, given: TrustedOptions, root: Path, catalogue: Collection[str] = ()
) -> PlanRequest:
    """Return what to plan so that the stored case comes out.

    Args:
        stored: The stored case.
        given: What the command line gives.
        root: The project's folder; model files are looked for below it only.
        catalogue: Names of the models in the project's catalogue.

    Raises:
        UsageError: if a choice is not known, or the model can't be told from what is here.
    """
    session, knobs = stored.session, stored.knobs
    settings: dict[str, str] = {}
    if session.arena_extend_strategy:
        settings["arena_extend_strategy"] = session.arena_extend_strategy
    for name in (
        "inter_op_num_threads",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "enable_cpu_mem_arena",
        "arena_initial_chunk_bytes",
    ):
        value = getattr(session, name)
        if value is not None:
            settings[name] = str(int(value))
    if session.execution_mode != "sequential":
        settings["execution_mode"] = session.execution_mode
    level, threads = session.graph_optimization_level, session.intra_op_num_threads
    if "opt" not in knobs and level != "all":
        settings["graph_optimization_level"] = level
    if "threads" not in knobs and threads is not None:
        settings["intra_op_num_threads"] = str(threads)
    for name, value, known in (
        ("graph_optimization_level", level, GRAPH_LEVELS),
        ("call", stored.call, CALLS),
        ("io", stored.io, IO_MODES),
        ("spin", knobs.get("spin", "on"), SWITCH_POSITIONS),
        ("tuning", knobs.get("tuning", "on"), SWITCH_POSITIONS),
        (FIX_DIMS, knobs.get(FIX_DIMS, "on"), SWITCH_POSITIONS),
        ("compiled", knobs.get("compiled", "off"), SWITCH_POSITIONS),
    ):
        if value not in known:
            raise UsageError(
                f"{name} is {value!r}, not one of {', '.join(known)}{_CHANGED}",
                place=stored.case_id,
                hint=_MEASURE_AGAIN,
            )
    for link in stored.provider.links:
        if not _PROVIDER.fullmatch(link.alias):
            raise UsageError(
                f"{link.alias!r} is not an execution provider{_CHANGED}",
                place=stored.case_id,
                hint="Get the unchanged file. If there is none, measure the model again, and name "
                "a case of the new run",
            )
    return PlanRequest(
        models=(given.model or _model_spec(stored, root, catalogue),),
        providers=(stored.provider.label,),
        precisions=(stored.variant.precision,),
        # A batch of 1 may be that of a model whose first size is fixed and is no batch.
        batch_sizes=() if stored.batch == 1 else (stored.batch,),
        dims={name: (size,) for name, size in stored.dims.items()},
        threads=(threads,) if "threads" in knobs and threads is not None else (),
        graph_opts=(level,) if "opt" in knobs else (),
        concurrency=(stored.concurrency,) if "concurrency" in knobs else (),
        sessions=(stored.sessions,) if "sessions" in knobs else (),
        calls=(stored.call,),
        spinning=(knobs["spin"],) if "spin" in knobs else (),
        tuning=(knobs["tuning"],) if "tuning" in knobs else (),
        fix_dims=(knobs[FIX_DIMS],) if FIX_DIMS in knobs else (),
        compiled=(knobs["compiled"],) if "compiled" in knobs else (),
        io=(stored.io,),
        inputs=given.inputs,
        session_options={**settings, **given.session_options},
        provider_options={alias: dict(pairs) for alias, pairs in given.provider_options.items()},
        custom_ops=given.custom_ops,
        seed=stored.seed,
    )


def choose_case(stored: Case, plan: Plan, given: TrustedOptions, root: Path) -> PlannedAgain:
    """Return the case of a plan that is the stored one.

    Args:
        stored: The stored case.
        plan: What its options give here.
        given: What the command line gives.
        root: The project's folder.

    Raises:
        UsageError: if none is, or the stored one needs what nobody gives here.
    """
    alike = [
        entry
        for entry in plan.entries
        if _without_model(entry.case) == _without_model(stored)
        # Options that were not given may be what such a knob came from: that is said below.
        or (_without_model(entry.case) <= _without_model(stored) and len(plan.entries) == 1)
    ]
    if not alike:
        names = ", ".join(entry.case.case_id for entry in plan.entries)
        reasons = "; ".join(f"{skip.what}: {skip.reason}" for skip in plan.skips)
        digests = {entry.case.model.digest for entry in plan.entries}
        raise UsageError(
            (
                f"{_file_name(stored)} was changed after the run, and now gives {names} in place "
                "of this case"
                if digests and stored.model.digest not in digests and not given.model
                else "this case can't be repeated here. With the settings of this project, its "
                "options give " + (names or f"no case{f' ({reasons})' if reasons else ''}")
            ),
            place=stored.case_id,
            hint="Name the model file in place of the case, e.g. "
            f"{_file_name(stored)} --providers={stored.provider.label}",
        )
    planned = alike[0]
    missing = list(_missing(stored, planned.case, root))
    if missing:
        raise _refused(stored, missing)
    here = planned.case.model.digest
    if here and here != stored.model.digest and not given.model:
        raise UsageError(
            f"{planned.case.model.path} is not the file that was measured: its SHA-256 is "
            f"{here[:12]}…, but that of the measured file is {stored.model.digest[:12]!r}…",
            place=stored.case_id,
            hint="If the file was changed on purpose, add --model="
            f"{shlex.quote(planned.case.model.path)}. If not, name the file that was measured: "
            "--model=FILE",
        )
    return PlannedAgain(planned=planned, notes=tuple(_differences(stored, planned.case)))


def _file_name(stored: Case) -> str:
    return PurePosixPath(stored.model.path).name


def _model_spec(stored: Case, root: Path, catalogue: Collection[str]) -> str:
    """What the planner calls the model: a name of a catalogue, or a file below ``root``.

    A stored path is a description. It is looked for in the project, by its end, and whether that
    file is the one that was measured is told by its digest.
    """
    kind, colon, name = stored.model.source.partition(":")
    if colon and kind in ("builtin", "zoo") and name != "all":
        return stored.model.source
    if colon and kind == "project" and name in catalogue:
        return name
    if not colon and stored.model.name in catalogue:
        return stored.model.name
    path = stored.model.path
    parts = (PureWindowsPath if "\\" in path else PurePosixPath)(path).parts
    for start in range(len(parts)):
        rest = parts[start:]
        # Nothing that leads out of the project: no root, no drive, no folder above.
        if any(part == ".." or set(part) & set("/\\:\0") for part in rest):
            continue
        candidate = root.joinpath(*rest)
        if candidate.is_file():
            return str(candidate)
    raise UsageError(
        f"the model of {stored.case_id} is not in this folder: the run measured {path!r}",
        hint="Name the file: --model=FILE",
    )


def _without_model(case: Case) -> set[str]:
    """The parts of a case's id behind the model's name, which depends on where the file lies."""
    return {
        f"precision {case.variant.precision}",
        f"provider {case.provider.label}",
        f"batch {case.batch}",
        *(f"{name}:{size}" for name, size in case.dims.items()),
        *(f"{name}:{value}" for name, value in case.knobs.items()),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lack:
    """What a stored case had and the planned one lacks.

    Attributes:
        what: In words.
        entry: What gives it in ``pyproject.toml``, as a step; empty for nothing.
        option: The option that gives it; empty for none.
    """

    what: str
    entry: str = ""
    option: str = ""


def _missing(stored: Case, planned: Case, root: Path) -> Iterator[_Lack]:
    """What the stored case had and this one lacks."""
    if stored.session.custom_ops and not planned.session.custom_ops:
        libraries = _listed(stored.session.custom_ops)
        yield _Lack(what=f"custom operators ({libraries})", option="--custom-ops=PATH")
    for key, value in stored.session.entries.items():
        if key not in planned.session.entries and key != SPINNING:
            option = f"--session-option={f'{key}={value}'!r}"
            yield _Lack(what=f"the session option {key!r}", option=option)
    # Links are as many, and in the same order: both have the same label.
    for before, now in zip(stored.provider.links, planned.provider.links, strict=True):
        for key, value in before.options.items():
            if key not in now.options:
                option = f"--provider-option={f'{now.alias}.{key}={value}'!r}"
                yield _Lack(what=f"the option {key!r} of {now.alias}", option=option)
        if before.library and not now.library:
            yield _Lack(
                what=f"a library of the provider ({before.library!r})",
                entry=f'Write library = "PATH" under {entry_to_write(root, "plugins", now.alias)}',
            )
    fed = [spec.path for spec in stored.inputs if spec.path]
    if fed and not any(spec.path for spec in planned.inputs):
        files = _listed(tuple(dict.fromkeys(fed)))
        yield _Lack(what=f"inputs from files ({files})", option="--inputs=PATH")


def _differences(stored: Case, planned: Case) -> Iterator[str]:
    """Where what runs is another thing than what was measured."""
    if planned.model.digest and planned.model.digest != stored.model.digest:
        yield (
            f"{planned.model.path} is not the measured file: its SHA-256 is "
            f"{planned.model.digest[:12]}…, but that of the measured file is "
            f"{stored.model.digest[:12]!r}…"
        )
    groups = [("session option", stored.session.entries, planned.session.entries)]
    groups += [
        (f"option of {link.alias}", earlier.options, link.options)
        for earlier, link in zip(stored.provider.links, planned.provider.links, strict=True)
    ]
    for what, before, now in groups:
        for key, value in now.items():
            if before.get(key) != value:
                yield f"the {what} {key} is {value!r} here, {before.get(key, 'unset')!r} in the run"


def _refused(stored: Case, missing: Sequence[_Lack]) -> UsageError:
    needs = ", ".join(lack.what for lack in missing)
    options = " ".join(lack.option for lack in missing if lack.option)
    steps = [lack.entry for lack in missing if lack.entry]
    steps += [f"Add to the command line: {options}"] if options else []
    return UsageError(
        f"the case was measured with {needs}. For safety, this is not taken from a stored run",
        place=stored.case_id,
        hint=". ".join(steps),
    )


def _listed(paths: tuple[str, ...]) -> str:
    return ", ".join(map(repr, paths))
