"""Going on with an interrupted run: which cases it had finished, and whether it was the same.

A stored result is data: what it says of its case is compared with the case that is planned now,
and from then on only the planned one stands in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import DocumentError
from pytest_ortbench.core.file_digest import content_of
from pytest_ortbench.core.outcome import CaseResult
from pytest_ortbench.core.secrets import masked
from pytest_ortbench.store.documents import foreign_note, list_runs, load


def plan_fingerprint(
    cases: Iterable[Case],
    environment: Mapping[str, str] | None = None,
    files: Iterable[str] = (),
) -> str:
    """Return a digest that two plans share exactly if they would measure the same.

    Args:
        cases: The planned cases; their order does not matter, nor where the model files lie (the
            files' digests count). Of other files, such as real inputs, content and place count.
        environment: Further facts that must agree: host, versions of ONNX Runtime.
        files: Paths of further files whose content decides, such as calibration data.

    Returns:
        32 hexadecimal digits.
    """
    cases = list(cases)
    lines = sorted(_canonical(case) for case in cases)
    lines.append(msgspec.json.encode(environment or {}, order="sorted"))
    read = {path for case in cases for path in case.further_files()}.union(files)
    lines += [
        f"{path}\0{content_of(path)}".encode("utf-8", "backslashreplace")
        for path in sorted(read)
        if path
    ]
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumable:
    """What an interrupted run, or several, left of a plan.

    Attributes:
        results: The measured cases by their key.
        runs: Ids of the runs that they come from, the newest first.
        foreign: What to say of files of other tools in the folder; empty where there are none.
    """

    results: dict[tuple[str, str], CaseResult] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    foreign: str = ""


def resumable(
    root: Path,
    plan: str,
    cases: Iterable[Case],
    *,
    others: bool = False,
    with_less: bool = False,
) -> Resumable:
    """Return the measured cases of the interrupted runs of a plan, and whose they are.

    Runs count from the newest back to the last one that was complete (a resumed run may have been
    interrupted again), which counts itself if it died while plots were made of it; one whose budget
    had no time for some cases is not complete. Where two have the same case, the newer one does. A
    case that failed is not among them: it is worth another try. Nor is one that is not as it is
    planned now.

    Args:
        root: The results folder.
        plan: What :func:`plan_fingerprint` says of the plan.
        cases: The planned cases; they stand in the results instead of the stored ones.
        others: Whether tests make further models while they run: cases of such models are among
            the results as they were stored, and whoever plans one compares it with its own.
        with_less: Whether results count that had less time than usual, because of a budget.
    """
    planned = {case.key: case for case in cases}
    results: dict[tuple[str, str], CaseResult] = {}
    runs: list[str] = []
    stored_runs = list_runs(root)
    for stored in stored_runs:
        if not plan or stored.plan != plan:
            continue
        try:
            run = load(stored.path)
        except DocumentError:
            if stored.complete and stored.settled:
                break
            # Its head could be read and its cases can't: then there is nothing to take from it.
            continue
        is_complete = stored.complete and not any(result.lacks_time for result in run.cases)
        if is_complete and stored.settled:
            break
        fresh = [
            taken
            for result in run.cases
            if result.status == "measured"
            and result.case.key not in results
            and (with_less or result.budget is None)
            and (taken := _fitting(result, planned, others=others)) is not None
        ]
        results.update((result.case.key, result) for result in fresh)
        if fresh:
            runs.append(run.run_id)
        if is_complete:
            break
    return Resumable(results=results, runs=tuple(runs), foreign=foreign_note(stored_runs))


def _fitting(
    result: CaseResult, planned: Mapping[tuple[str, str], Case], *, others: bool
) -> CaseResult | None:
    case = planned.get(result.case.key)
    if case is not None:
        return taken_over(result, case)
    return result if others and result.case.model.is_made else None


def taken_over(result: CaseResult, planned: Case) -> CaseResult | None:
    """Return a stored result as one of a planned case; ``None`` if it is of another case.

    Of the stored case nothing stays but what was observed of a made variant: digest, size, facts
    of its making. Its path is that of the plan, empty until the variant is made.

    Args:
        result: As it was stored.
        planned: The case as it is planned now.
    """
    stored, variant = result.case, planned.variant
    if stored.variant.precision != variant.precision:
        return None
    if variant.digest:
        compiled = stored.variant.compilation
        held = stored.variant.digest if compiled is None else compiled.source_digest
        if held != variant.digest:
            return None
        if compiled is None:
            variant = replace(variant, extent=stored.variant.extent)
        else:
            variant = replace(stored.variant, path=variant.path)
    else:  # still to be made
        if not variant.recipe.items() <= stored.variant.recipe.items():
            return None
        variant = replace(stored.variant, path=variant.path)
    # What is stored has no secrets in it.
    if masked(_as_planned(stored)) != masked(_as_planned(planned)):
        return None
    return replace(result, case=replace(planned, variant=variant))


def _as_planned(case: Case) -> Case:
    """The case without places, its variant, and what tests ask for on top of the plan.

    What a test made or wrote lies elsewhere each time: of the files of such a case content counts.
    """
    if case.model.is_made:
        held = case.file_contents
        inputs, expected = (
            tuple(replace(spec, path=held.get(spec.path, spec.path)) for spec in specs)
            for specs in (case.inputs, case.expected)
        )
        case = replace(case, inputs=inputs, expected=expected, file_contents={})
    return replace(
        case,
        model=replace(case.model, path=""),
        variant=replace(case.variant, recipe={}, path="", digest="", size_bytes=0,
                        external_files=(), notes=(), extent=None, compilation=None),
        sampling=replace(case.sampling, min_samples=0),
    )  # fmt: skip


def _canonical(case: Case) -> bytes:
    """The case as bytes, without what says where files lie instead of what is in them."""
    placeless = replace(
        case,
        model=replace(case.model, path=""),
        variant=replace(case.variant, path=""),
    )
    try:
        return msgspec.json.encode(_as_first_written(placeless), order="sorted")
    except UnicodeEncodeError:  # a file name that is not UTF-8
        return repr(placeless).encode("utf-8", "backslashreplace")


def _as_first_written(case: Case) -> Any:
    """Plain values of a case as version 1 of the document had them, so that its plans go on."""
    plain = msgspec.to_builtins(case)
    # What later versions found out about the model: its digest says as much.
    del (
        plain["expected"],
        plain["no_batch"],
        plain["model"]["decoder"],
        plain["model"]["zero_share"],
        plain["model"]["compressed_bytes"],
    )
    del plain["model"]["told_sizes"], plain["model"]["is_made"], plain["variant"]["unchecked"]
    del plain["variant"]["on_calibration"], plain["variant"]["compilation"]
    del plain["model"]["weights_as_inputs"], plain["model"]["subnormal_weights"]
    for tensor in (*plain["model"]["inputs"], *plain["model"]["outputs"]):
        del tensor["roles"], tensor["length_axis"]
    for entry, spec in zip(plain["inputs"], case.inputs, strict=True):
        entry["resolved"] = [size.text for size in spec.resolved]
        # The content of the file says as much as how it was made, and how many sets it holds.
        del entry["prepared"], entry["sets"]
    if case.provider.is_execution_provider:
        del plain["provider"]["role"]
    for name in ("enable_mem_reuse", "arena_extend_strategy", "arena_initial_chunk_bytes"):
        if plain["session"][name] in (None, ""):
            del plain["session"][name]
    for entry in fields(case):
        if "added_later" in entry.metadata and getattr(case, entry.name) == entry.default:
            del plain[entry.name]
    if not case.session.fixed_dims:
        del plain["session"]["fixed_dims"]
    if not case.provider.then:
        del plain["provider"]["then"]
    for name in ("endurance_s", "endurance_per_s", "endurance_faults", "python_profile"):
        if not plain["sampling"][name]:
            del plain["sampling"][name]
    if not case.sampling.text:
        del plain["sampling"]["text"]
    if case.model.exported_from is None:
        del plain["sampling"]["export_check"]
    if case.sampling.yardstick == "auto":
        del plain["sampling"]["yardstick"]
    if not case.model.compiled:
        del plain["model"]["compiled"]
    if case.model.encoder is None:
        del plain["model"]["encoder"]
    if case.model.first_step is None:
        del plain["model"]["first_step"]
    if case.model.exported_from is None:
        del plain["model"]["exported_from"]
    if case.dataset is not None and case.dataset.boxes is None:
        del plain["dataset"]["boxes"]
    return plain
