"""The first node of an exported graph whose value is not the source's.

Exporters write into each node which part of the source it comes from. A part agrees where one of
its nodes gives its value. A part that was fused with a later one (a convolution that took the
normalisation behind it) gives the value of that one, which counts as agreeing, too. A part whose
value says nothing, since it is empty or all NaN, is passed over.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_ortbench.convert.by_node import inner_graph, some_at_a_time
from pytest_ortbench.core.nearness import is_compared
from pytest_ortbench.core.own_folder import OwnFolder
from pytest_ortbench.passes.export_check.facts import FirstDifference
from pytest_ortbench.passes.export_check.questions import FindFirstDifference, SourcePart
from pytest_ortbench.passes.export_check.worker.likeness import figures_of, likeness_db
from pytest_ortbench.worker.accuracy import fitting
from pytest_ortbench.worker.sample_file import open_samples
from pytest_ortbench.worker.state import WorkerState

#: Key under which PyTorch's exporter writes the path of a node's module.
_SCOPES = "pkg.torch.onnx.name_scopes"
#: Later parts whose value a part may have that was fused with them.
_FUSED = 3


def find_first_difference(question: FindFirstDifference, state: WorkerState) -> FirstDifference:
    """Run the file with its inner values as outputs, and compare them with the source's parts."""
    state.import_runtime()
    state.enter("export-check")
    sample = next(iter(open_samples(Path(question.path)).samples()))
    values = dict(zip((part.path for part in question.parts), sample.outputs, strict=True))
    with OwnFolder("first-difference") as folder:
        graph = inner_graph(
            Path(question.case.model.path), folder, "file", question.case.session.custom_ops
        )
        feeds, missing = fitting(graph.session, sample.feeds)
        if missing:
            return FirstDifference(reason=f"nothing is fed to the input {missing!r}")
        nodes = nodes_of_parts(graph.producers, values)
        names = list(
            dict.fromkeys(
                value
                for group in nodes.values()
                for name in group
                for value in (name, *graph.producers[name].input)
                if value in graph.producers
            )
        )
        given: dict[str, Any] = {}
        for some in some_at_a_time(names):
            given.update(zip(some, graph.session.run(some, feeds), strict=True))
    return first_difference_of(
        question.parts, values, nodes, given, graph.producers, question.near_db
    )


def nodes_of_parts(
    producers: Mapping[str, Any], parts: Mapping[str, object]
) -> dict[str, list[str]]:
    """Return the values in the graph that nodes of each part give, in the order of the graph.

    Args:
        producers: The node that makes each value.
        parts: Values of parts by their paths.
    """
    nodes: dict[str, list[str]] = {}
    for name, node in producers.items():
        for path in paths_of(node):
            if path in parts:
                nodes.setdefault(path, []).append(name)
    return nodes


def paths_of(node: Any) -> tuple[str, ...]:
    """Return the paths of the parts that a node lies in, the outermost first."""
    for entry in getattr(node, "metadata_props", ()):
        if entry.key == _SCOPES:
            try:
                scopes = ast.literal_eval(entry.value)
            except (ValueError, SyntaxError):
                return ()
            # The last one is the operation itself.
            return tuple(str(scope) for scope in scopes[:-1])
    if not node.name.startswith("/"):
        return ()
    # As the exporter of TorchScript writes it: /blocks/blocks.0/conv/Conv.
    paths, path, before = [""], "", ""
    for scope in node.name.split("/")[1:-1]:
        inner = before and scope.startswith(f"{before}.")
        path = path + scope[len(before) :] if inner else f"{path}.{scope}".strip(".")
        before = scope
        paths.append(path)
    return tuple(paths)


def first_difference_of(
    parts: Sequence[SourcePart],
    values: Mapping[str, Any],
    nodes: Mapping[str, Sequence[str]],
    given: Mapping[str, Any],
    producers: Mapping[str, Any],
    near_db: float,
) -> FirstDifference:
    """Return the first part whose value no node of it gives.

    Args:
        parts: Parts of the source, in the order of their ends.
        values: What each of them gave.
        nodes: Values in the graph by part.
        given: What they are.
        producers: The node that makes each of them.
        near_db: Values that are nearer than this agree.
    """
    compared = matched = 0
    after = ""
    difference: FirstDifference | None = None
    for place, part in enumerate(parts):
        right = values[part.path]
        names = [name for name in nodes.get(part.path, ()) if given[name].shape == right.shape]
        if not names or not _says_something(right):
            continue
        compared += 1
        later = [values[other.path] for other in parts[place + 1 : place + 1 + _FUSED]]
        nearest_db = max(likeness_db(given[name], right) for name in names)
        if nearest_db >= near_db or any(
            likeness_db(given[names[-1]], other) >= near_db
            for other in later
            if other.shape == right.shape
        ):
            matched += 1
            after = after if difference is not None else part.path
        elif difference is None:
            node = producers[names[-1]]
            difference = FirstDifference(
                module=part.path,
                kind=part.kind,
                node=node.name or names[-1],
                op_type=node.op_type,
                sqnr_db=nearest_db if math.isfinite(nearest_db) else None,
                after=after,
                is_fed_wrong=_is_fed_wrong(node, given, values, near_db),
            )
    if difference is None:
        difference = FirstDifference(
            reason="no node of the file says which part of the source it comes from"
            if not compared
            else "every part that could be compared agrees, so the cause stands outside of them"
        )
    return replace(difference, compared=compared, matched=matched)


def _is_fed_wrong(
    node: Any, given: Mapping[str, Any], values: Mapping[str, Any], near_db: float
) -> bool:
    """Whether nothing that a node takes from other nodes is the value of a part."""
    fed = [given[name] for name in node.input if name in given]
    return bool(fed) and not any(
        likeness_db(value, right) >= near_db
        for value in fed
        for right in values.values()
        if value.shape == right.shape
    )


def _says_something(right: Any) -> bool:
    """Whether a value has anything to compare with: one that is empty, or all NaN, has not."""
    return any(map(is_compared, figures_of([right], [right], ["value"])))
