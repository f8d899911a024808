"""The index of messages: what every kind means and what to do, and every error as it is written.

The kinds come from the tables that the code declares; what to do stands here, and a kind without it
fails the page. The errors are read from the sources: each call that makes one, by its class or by a
function with a parameter ``message``, with its message and its next step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "pytest_ortbench"

#: What to do about each kind of failure.
_FAILURES = {
    "unsupported": "Read the reason in the line of the case: it names the operator, shape or "
    "precision. Choose another [precision](../guides/precisions.md), "
    "[provider](../guides/providers.md) or [runtime](../guides/runtimes.md), or export the model "
    "anew.",
    "unavailable": "`ortbench doctor` says what is installed and why a provider does not run. "
    "Another distribution runs beside the present one with "
    "[`--ort-runtimes`](../guides/runtimes.md).",
    "fallback": "The provider took none of the nodes, so its time would be that of the CPU. "
    "`ortbench profile` shows which nodes went where; see "
    "[providers](../guides/providers.md).",
    "out_of_memory": "Lower the batch, the sizes (`--ort-dims`) or the number of sessions; the "
    "limit of a worker is `--ort-memory-limit`.",
    "timeout": "Raise `--ort-timeout`. The message names the phase that did not end: where it is "
    "the session's creation, a cache of the engine helps ([start-up](../guides/startup.md)).",
    "crash": "The library that ran the model died. The message names signal and phase, and "
    "`log_tail` of the document holds what it printed last. Try another runtime version with "
    "`--ort-runtimes`, and report it to its makers with the model.",
    "error": "The message holds what the library said. `-rs` and `ortbench show` print it in full.",
}

#: What to do about each verdict of a gate.
_VERDICTS = {
    "faster": "Nothing. It is for information and fails nothing.",
    "slower": "Look at the change. If it is meant, [accept it](../guides/accepting.md). "
    "`ortbench profile` on both sides shows the operators that account for it.",
    "same": "Nothing.",
    "inconclusive": "Run it on a quieter machine, with a longer `--ort-timeout`, or allow a larger "
    "margin (`--ort-gate=latency:5%`). With `--ort-gate-strict` it fails.",
    "incomparable": "The line of the case says which side lacks what. If inputs or sizes changed "
    "on purpose, accept it as `comparison`.",
    "less accurate": "Shown as *answers differ* where no labels and no NaN tell that the contender "
    "is the wrong side. Check the model. If its answers are meant to change, say how far they may "
    "([the answers of both sides](../guides/gating.md#the-answers-of-both-sides)).",
    "unjudged": "Both sides gave NaN, a side died over the inputs, or no output has the same name. "
    "Give real inputs (`--ort-inputs`), or rename the outputs.",
}

#: What to do where there is no verdict on the latency.
_CAUSES = {
    "inputs": "Feed both the same: `--ort-inputs` holds for both sides.",
    "status": "Fix the side that can't be measured. Its own line has the reason.",
    "machine": "Compare both sides in one run (`--ort-against`).",
    "device": "Compare with a stored run of the same device.",
    "workload": "Ask for the same sizes, threads and options as the stored run did.",
    "shared": "Compare both sides in one run (`--ort-against`).",
    "yardstick": "Measure again where the field that the reason names is the same, or compare both "
    "sides in one run (`--ort-against`); see [stored baselines](../guides/stored-baseline.md).",
    "canary": "Compare both sides in one run (`--ort-against`).",
    "unreached": "Run again, without what ended the run early or deselected the tests of the case.",
    "limits": "Record a run on the main branch first ([how](../guides/stored-baseline.md)).",
    "removed": "[Accept the removal](../guides/accepting.md), or bring the case back.",
    "time": "Raise `--ort-timeout`.",
    "budget": "Raise `--ort-budget`, or gate fewer cases.",
    "suite": "Gate fewer cases, or allow a larger margin.",
    "unconfirmed": "Nothing, or run it again on a quieter machine.",
    "launches": "Run it on a quieter machine, or allow a larger margin.",
    "margin": "Allow a larger margin, or run `ortbench gate --self-test` on a better machine.",
    "flags": "Do what the [flags](#flags) advise.",
    "statistics": "Run it on a quieter machine: the distribution of the times changed.",
    "median": "Fix the side without a number. Its own line has the reason.",
    "noise": "Compare both sides in one run (`--ort-against`).",
}

#: What the exit status of pytest and of the console tool says.
_EXITS = (
    ("`pytest`", "0", "every test passed", ""),
    (
        "`pytest`",
        "1",
        "a test failed, no case gave a number, or a file could not be written",
        "Read the last lines; `-rs` lists what was skipped.",
    ),
    ("`pytest`", "2", "the run was interrupted", "`--ort-resume` goes on where it stopped."),
    ("`pytest`", "4", "an option or its value is wrong", "The message names it."),
    ("`pytest`", "5", "no test was collected", "Name a model, or see `--collect-only`."),
    (
        "`pytest`",
        "75",
        "another run measured for longer than `--ort-wait` allows; nothing was measured",
        "Run it again later, or allow a longer time.",
    ),
    ("`ortbench`", "0", "fine", ""),
    ("`ortbench`", "1", "a limit failed, or a gate found something worse", ""),
    ("`ortbench`", "2", "the call is wrong", "The message names the value and what is known."),
    ("`ortbench`", "3", "nothing could be measured or shown", "The message says why."),
    ("`ortbench`", "130", "it was interrupted", ""),
)

#: Errors by the class that is raised, and what a page calls them.
_GROUPS = {
    "UsageError": "Options, markers and configuration",
    "ModelError": "Model files",
    "DocumentError": "Run documents",
    "ProtocolError": "Requests to a service",
    "EngineRefusal": "Engines and frameworks",
    "Failure": "Cases that gave no number",
}
_CLASSES = {
    "UsageError": "UsageError",
    "NoModelError": "UsageError",
    "UnknownSizeError": "UsageError",
    "MarkerError": "UsageError",
    "OrtbenchError": "UsageError",
    "ModelError": "ModelError",
    "ExportError": "ModelError",
    "DocumentError": "DocumentError",
    "NonsenseError": "DocumentError",
    "ForeignDocumentError": "DocumentError",
    "EngineRefusal": "EngineRefusal",
    "ProtocolError": "ProtocolError",
    "Failure": "Failure",
}
_VALUE = "…"
#: Stands for a next step that depends on the values.
_IN_THE_MESSAGE = "The message names it."


#: An option with its value, in a sentence of the code.
_OPTION = re.compile(r"(?<![\w`-])--[a-z][\w-]*(?:=[\w.:,*{}\[\]]*[\w}\]])?")


def as_code(sentence: str) -> str:
    """Return a sentence of the code with its options marked as code, which are not broken then."""
    return _OPTION.sub(r"`\g<0>`", sentence)


def kinds_blocks() -> Iterator[str]:
    """Yield the blocks of the page on kinds of messages."""
    from pytest_ortbench.core.flags import FLAGS
    from pytest_ortbench.core.gate import CAUSES, METRIC_VERDICTS, VERDICTS
    from pytest_ortbench.core.outcome import FAILURE_KINDS, PHASES

    yield (
        "What each word in the column *status*, each flag and each verdict means, what causes it, "
        "and what to do. [All errors](errors.md) lists every other message as it is printed."
    )
    yield "## Why a case gave no number"
    yield _table(
        ("status", "cause", "what to do"),
        [(f"`{kind}`", cause, _FAILURES[kind]) for kind, cause in FAILURE_KINDS.items()],
    )
    yield (
        "A failure names the phase in which it happened: "
        + ", ".join(f"`{phase}` ({doing})" for phase, doing in PHASES.items())
        + "."
    )
    yield "## Flags"
    yield (
        "A flag makes a number less sure. One that *bars* keeps the row out of rankings and gates. "
        "One that *blurs* leaves it there, but a difference within the intervals counts as a tie. "
        "One that *notes* only informs."
    )
    yield _table(
        ("flag", "it", "cause", "what to do"),
        [
            (f"`{flag.name}`", flag.severity, as_code(flag.meaning), as_code(flag.advice))
            for flag in FLAGS.values()
        ],
    )
    yield "## Verdicts of a gate"
    yield _table(
        ("verdict", "cause", "what to do"),
        [(f"`{verdict}`", cause, _VERDICTS[verdict]) for verdict, cause in VERDICTS.items()],
    )
    yield "Of metrics other than latency:"
    yield _table(
        ("verdict", "meaning"), [(f"`{name}`", text) for name, text in METRIC_VERDICTS.items()]
    )
    yield "## Why there is no verdict on a latency"
    yield _table(
        ("cause, as in the document", "what it is", "what to do"),
        [(f"`{cause}`", meaning, _CAUSES[cause]) for cause, meaning in CAUSES.items()],
    )
    yield "## Exit status"
    yield _table(("program", "status", "meaning", "what to do"), _EXITS)


@dataclass(frozen=True, order=True)
class Message:
    """An error as the code writes it, with a mark for each value.

    Attributes:
        text: What is wrong.
        hint: The next step, empty where none is written beside it.
        group: A key of the groups of errors.
    """

    text: str
    hint: str
    group: str


def errors_blocks() -> Iterator[str]:
    """Yield the blocks of the page on errors."""
    yield (
        "Every error and every reason of a failed case, as the code writes it; `⟨name⟩` and `…` "
        "stand for values. Search for the words of the message that you got. Many begin with the "
        "place of the value: an option, a file, a marker."
    )
    messages = sorted(
        set(_messages()), key=lambda message: re.sub(r"⟨[^⟩]*⟩|[…'.:= ]", "", message.text.lower())
    )
    for group, title in _GROUPS.items():
        rows = [
            (_cell(message.text), _cell(message.hint))
            for message in messages
            if message.group == group
        ]
        yield f"## {title}"
        yield _table(("message", "what to do"), rows)


@dataclass(frozen=True)
class _Maker:
    """A class or function that makes an error of a message and a next step.

    Attributes:
        group: A key of the groups of errors.
        message: The place of the message among the arguments.
        hint: That of the next step; without one it is given by name alone.
    """

    group: str
    message: int = 0
    hint: int | None = None


#: What a function that makes an error may return, and the group of it.
_RETURNED = {
    **_CLASSES,
    "WorkerError": "Failure",
    "RefusedCombination": "Failure",
    "InstallError": "UsageError",
}


def _messages() -> Iterator[Message]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]
    classes = {name: _Maker(group) for name, group in _CLASSES.items()}
    of_module = [dict(_makers(tree)) for tree in trees]
    # A name of one module alone may stand for something else in another.
    shared = {
        name: maker
        for makers in of_module
        for name, maker in makers.items()
        if not name.startswith("_")
    }
    for tree, own in zip(trees, of_module, strict=True):
        makers = {**classes, **shared, **own}
        for scope in _scopes(tree):
            told = dict(_told(scope))
            for node in _within(scope):
                if isinstance(node, ast.Call):
                    yield from _of_call(node, makers, told)


def _makers(tree: ast.Module) -> Iterator[tuple[str, _Maker]]:
    """Yield the functions of a module that make an error of a message, with their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            # A method is called without itself.
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
            returned = ast.unparse(node.returns)
            if returned in _RETURNED and "message" in names:
                hint = names.index("hint") if "hint" in names else None
                yield node.name, _Maker(_RETURNED[returned], names.index("message"), hint)


def _scopes(tree: ast.Module) -> Iterator[ast.Module | ast.FunctionDef]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield what a function or module consists of, but for the functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef):
            yield node
            yield from _within(node)


def _told(scope: ast.Module | ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of a function that stand for one text."""
    for node in _within(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _of_call(
    call: ast.Call, makers: Mapping[str, _Maker], told: Mapping[str, ast.expr]
) -> Iterator[Message]:
    name = ast.unparse(call.func).rpartition(".")[2]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    maker = makers.get(name)
    if maker is None:
        if "hint" not in keywords or not call.args:
            return
        maker = _Maker("Failure")
    hint_given = keywords.get("hint") or _argument(call, maker.hint)
    written = keywords.get("message") or _argument(call, maker.message)
    if isinstance(written, ast.Name):
        written = told.get(written.id)
    for text in _texts(written):
        if len(re.findall(r"[A-Za-z]{2,}", re.sub(r"⟨[^⟩]*⟩", "", text))) < 3:
            continue
        for hint in _texts(hint_given) or [_IN_THE_MESSAGE if hint_given else ""]:
            yield Message(text, hint.strip(f"{_VALUE} ") and hint, maker.group)


def _argument(call: ast.Call, place: int | None) -> ast.expr | None:
    return call.args[place] if place is not None and place < len(call.args) else None


def _texts(node: ast.expr | None) -> list[str]:
    """Return what an expression of text may be, with a mark for what is known only later."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = "".join(
            part.value.value
            if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Constant)
            else _value(part.value)
            if isinstance(part, ast.FormattedValue)
            else str(ast.literal_eval(part))
            for part in node.values
        )
        return [re.sub(f"{_VALUE}(?:{_VALUE})+", _VALUE, parts)]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body), *_texts(node.orelse)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _texts(node.left) or [_VALUE], _texts(node.right) or [_VALUE]
        return [a + b for a in left for b in right]
    return []


def _value(expression: ast.expr) -> str:
    """Return what stands for a value: the name that the code gives it, where it has one."""
    if isinstance(expression, ast.Name):
        return f"⟨{expression.id.strip('_').replace('_', ' ')}⟩"
    if isinstance(expression, ast.Attribute):
        return f"⟨{expression.attr.replace('_', ' ')}⟩"
    return _VALUE


def _cell(text: str) -> str:
    line = " ".join(text.split())
    return re.sub(r"([<>*_\[\]`\\|])", r"\\\1", line)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    lines.insert(1, tuple("---" for _ in lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
