"""Write the pages of docs/reference from the code; with --check only say which are out of date.

Run it from anywhere after a change of a data type, command, option, metric or flag:

    python docs/generate.py
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(Path(__file__).parent))
import message_index  # scripts of this folder are no package

if TYPE_CHECKING:
    import click

FOLDER = Path(__file__).parent / "reference"
#: What was recorded of the operator tests of onnx.
OPERATORS = Path(__file__).parent.parent / "results" / "operators" / "table.json"
#: What was recorded of changed models, and of a run that was killed again and again.
MUTATIONS = OPERATORS.parents[1] / "mutations" / "table.json"
KILLS = OPERATORS.parents[1] / "faults" / "kills.json"
PLUGINS = OPERATORS.parents[1] / "plugins" / "table.json"
#: What real model files out of packages were fed, and how those of the catalogue fare without it.
BARE_FILES = Path(__file__).parent.parent / "results" / "bare-files"
_MANIFEST = Path(__file__).parent.parent / "tests" / "bare_files" / "manifest.toml"

_NOTE = "<!-- Written by docs/generate.py from the code: change it there. -->\n"


def page(title: str, *blocks: str) -> str:
    """Join the blocks of a page under its title."""
    return "\n\n".join([f"# {title}", _NOTE.strip(), *blocks]) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(headings), line("---" for _ in headings), *map(line, rows)])


def document_page() -> str:
    """Return the page on the fields of a run document."""
    from pytest_ortbench.core.run import SCHEMA_VERSION
    from pytest_ortbench.schema.json_schema import describe_type, document_types

    blocks = [
        f"Schema version {SCHEMA_VERSION}. `ortbench schema` prints the same as a JSON Schema, "
        "`ortbench schema RUN` checks a document.",
        "A document holds raw facts: durations in nanoseconds (`_ns`), seconds (`_s`), bytes, "
        "joules (`_j`), watts (`_w`). Percentiles, ratios and verdicts are computed from them "
        "each time. What was not measured is `null`, never 0, and a reason stands beside it; "
        "there is no NaN and no infinity. A case is identified by its id and the label of its "
        "runtime. While a run lasts, `journal.jsonl` holds a line with the `Run` without its "
        "cases, then one line for each `CaseResult`.",
        "Readers ignore fields that they don't know, read every older version, and refuse a "
        "newer one.",
    ]
    kinds = document_types()
    for kind in kinds:
        described = describe_type(kind)
        hints = typing.get_type_hints(kind)
        rows = [
            (
                f"`{field.name}`",
                _type_name(hints[field.name], kinds),
                "" if _is_required(field) else "yes",
                described.fields.get(field.name, ""),
            )
            for field in dataclasses.fields(kind)
        ]
        fields = table(("field", "type", "may be left out", "what it is"), rows)
        blocks += [f"## {kind.__name__}", described.summary, fields]
    return page("The run document", *blocks, *_bounds())


def _bounds() -> list[str]:
    """What the values of a document may be, beyond their types."""
    from pytest_ortbench.schema.bound_kinds import COUNT, LONGEST_NAME, LONGEST_TEXT
    from pytest_ortbench.schema.bounds import BOUNDS, UNITS

    units = [(f"`…{end}`", str(numbers)) for end, numbers in UNITS.items()]
    own = sorted(
        (f"`{kind.__name__}.{field}`", str(bound)) for (kind, field), bound in BOUNDS.items()
    )
    return [
        "## What the values may be",
        "A document is data, and may come from anybody. Its types alone would let it say that "
        "minus five inferences took no time, so every reader checks what it says before it "
        "computes with it, and refuses a document with one value that can't be: in one line that "
        "names the place, the value and the rule. `ortbench schema RUN` names every such value. "
        "The same rules hold on writing; a case whose result breaks one becomes a failed case.",
        "The unit in a field's name decides, the first that fits. Other whole numbers "
        f"{str(COUNT).removeprefix('must ')}, other numbers are any finite ones. A text has "
        f"{LONGEST_TEXT:,} characters at most, a name {LONGEST_NAME:,}.",
        table(("field", "rule"), units),
        "Some fields have a rule of their own:",
        table(("field", "rule"), own),
        "What stands together must agree: the count, the sum, the sum of squares, the extremes "
        "and the percentiles of samples with each other and with the durations that were kept; "
        "the lower end of an interval lies below its upper end; a case that was measured has a "
        "measurement, another one has a failure of its kind; each case is there once, and each of "
        "its workers; times of day are ISO 8601.",
    ]


def _is_required(field: dataclasses.Field[object]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _type_name(hint: object, kinds: Sequence[type]) -> str:
    """A type in words; types of the document link to their table."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in kinds:
        name = typing.cast(type, hint).__name__
        return f"[{name}](#{name.lower()})"
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {_type_name(arguments[0], kinds)}"
    if origin is tuple:
        return f"{len(arguments)} of {_type_name(arguments[0], kinds)}"
    if origin is dict:
        return f"object of {_type_name(arguments[1], kinds)}"
    if arguments:
        return " or ".join(_type_name(argument, kinds) for argument in arguments)
    words = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return words.get(typing.cast(type, hint), "null")


def commands_page() -> str:
    """Return the page on the console tool: what the help of each command says."""
    import click

    from pytest_ortbench.cli.application import COMMANDS, application

    parent = click.Context(application, info_name="ortbench", **application.context_settings)
    index = table(
        ("command", "what it does"),
        [(f"[{name}](#ortbench-{name})", entry.help) for name, entry in COMMANDS.items()],
    )
    blocks = [*_command_blocks(application, parent), index]
    for name in COMMANDS:
        command = application.get_command(parent, name)
        assert command is not None
        context = click.Context(command, parent=parent, info_name=name)
        blocks += [f"## ortbench {name}", *_command_blocks(command, context)]
        # Not by class: the group of all commands is one too, and was told above.
        for inner_name, inner in getattr(command, "commands", {}).items():
            inner_context = click.Context(inner, parent=context, info_name=inner_name)
            blocks.append(f"### {inner_context.command_path}")
            blocks += _command_blocks(inner, inner_context)
    return page("The console tool", *blocks)


def _command_blocks(command: click.Command, context: click.Context) -> Iterable[str]:
    """Usage, text, options and examples; not click's own layout, which changes with its version."""
    import inspect

    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```\n{usage}\n```"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield " ".join(paragraph.split())
    # Options only: what arguments are stands in the text.
    options = [each for each in command.params if each.param_type_name == "option"]
    if options:
        rows = [_option_row(option, context) for option in options]
        yield table(("option", "default", "meaning"), rows)
    for block in (command.epilog or "").split("\b\n"):
        title, _, lines = block.strip().partition("\n")
        if title == "Examples:":
            yield f"```\n{inspect.cleandoc(lines)}\n```"
        elif title:
            yield title


def _option_row(option: click.Parameter, context: click.Context) -> tuple[str, str, str]:
    import click

    assert isinstance(option, click.Option)
    choices = "|".join(option.type.choices) if isinstance(option.type, click.Choice) else ""
    value = "" if option.is_flag else f" {option.metavar or choices or option.type.name.upper()}"
    default = option.get_default(context)
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    shown = f"`{default}`" if isinstance(default, str | Path) and str(default) else ""
    return names, shown, option.help or ""


def metrics_page() -> str:
    """Return the page on metrics and the grammar of limits."""
    from pytest_ortbench.core.limits import OPERATORS
    from pytest_ortbench.core.metrics import METRICS, SIDE_METRICS
    from pytest_ortbench.core.units import FACTORS

    rows = [
        (f"`{m.name}`", f"`{m.column}`", m.unit, m.better, m.description) for m in METRICS.values()
    ]
    of_sides = [(f"`{m.name}`", m.unit, m.better, m.description) for m in SIDE_METRICS.values()]
    units = [
        (unit, ", ".join(f"`{name}`" for name in written if name))
        for unit, written in FACTORS.items()
        if any(written)
    ]
    return page(
        "Metrics and limits",
        "A metric has one name wherever it is written: in limits, in `ortbench show --sort`, in "
        "the `ortbench` fixture. Its column is the one of `ortbench export`.",
        table(("metric", "column", "unit", "better", "what it is"), rows),
        "Only a gate of two sides in one run (`--ort-against`) has these, and only `--ort-gate` "
        "and the marker's `gate` name them:",
        table(("metric", "unit", "better", "what it is"), of_sides),
        "In `ortbench export` the columns of a load hold numbers only where the case has one load. "
        "With several they are empty, since a row can't say which load they are of: `load` names "
        "them all, `load_valid` is 1 only if all are VALID, and `loads` holds the verdict and the "
        "numbers of each as a JSON list. Limits and JUnit take the first load.",
        "## Limits",
        "`metric op value unit`, e.g. `latency_p90 <= 30 ms`, `placement >= 95 %`. A value "
        "without an operator is an upper bound: `peak_rss: 500 MB`. A limit on a time, on bytes or "
        "on joules names its unit, since `5` could be seconds or milliseconds; without one the "
        "metric's own is meant in all others. Operators: "
        f"{', '.join(f'`{op}`' for op in OPERATORS)}.",
        "A limit is held against the value that is shown, not against its interval; a message says "
        "when the limit lies inside that. One on accuracy is held against the case's reference: of "
        "a file that is measured as it is, that is the file itself. So a limit sees what a "
        "precision made by `--ort-precisions` loses, and never what a file lost when it was "
        "quantised elsewhere. The gate compares the files of both sides.",
        "A limit that no value of the metric keeps, or every one, is refused: "
        "`latency_p90 <= -3 ms`, `placement >= 95` (without `%` 1 is all), "
        "`cpu_utilisation <= 500 %`, `placement: 100 %` (at most all).",
        table(("unit of the metric", "units that may be written"), units),
    )


def flags_page() -> str:
    """Return the page on validity flags."""
    from pytest_ortbench.core.flags import FLAGS

    meanings = {
        "bars": "The number is never ranked and never gated.",
        "blurs": "Differences inside the intervals do not count; a gate on them is inconclusive.",
        "notes": "For the reader; nothing else changes but what is said here.",
    }
    blocks = []
    for severity, meaning in meanings.items():
        rows = [
            (
                f"`{flag.name}`",
                message_index.as_code(flag.meaning),
                message_index.as_code(flag.advice),
            )
            for flag in FLAGS.values()
            if flag.severity == severity
        ]
        blocks += [f"## {severity}", meaning, table(("flag", "what was seen", "what to do"), rows)]
    return page(
        "Validity flags",
        "A flag is stored with a number and printed with it, wherever it goes.",
        *blocks,
    )


def options_page() -> str:
    """Return the page on pytest options and ini keys."""
    from pytest_ortbench.plugin.options import ROWS

    rows = [
        (
            f"`{row.flag}{f'={row.metavar}' if row.metavar else ''}`" if row.flag else "",
            f"`{row.ini}`",
            row.ini_type,
            _with_code(row.help),
        )
        for row in ROWS
    ]
    return page(
        "Options",
        "Every option has an ini key of the type that stands beside it, under "
        "`[tool.pytest.ini_options]`, or `[tool.pytest]` from pytest 9 on (`args` and `linelist`: "
        "a list of TOML; in pytest.ini items of `args` end at blanks, those of `linelist` at the "
        "end of a line). The command line wins over the ini file, and a marker wins "
        "for the axes that it names. Lists are repeatable; commas split them.",
        table(("option", "ini key", "type", "meaning"), rows),
    )


#: Of the fixture, what is for the plugin itself and for no test.
_NOT_FOR_TESTS = re.compile(r"_|need|found|hold|finish|problems|skipped|options|with_passes|view")


def fixture_page() -> str:
    """Return the page on the fixture and the marker."""
    from pytest_ortbench.core.placing import placed
    from pytest_ortbench.passes.registry import PASSES
    from pytest_ortbench.plugin.fixture import OrtBench
    from pytest_ortbench.plugin.measured import Measured, View
    from pytest_ortbench.plugin.options import MARKER_KEYWORDS

    members = placed(
        [
            *(_member(Measured, name) for name in vars(Measured) if not _NOT_FOR_TESTS.match(name)),
            _member(OrtBench, "measure"),
        ],
        [
            (place, _called(entry.load(offer), offer.rpartition(":")[2]))
            for entry in PASSES
            for place, offer in entry.offers
        ],
        lambda member: re.split(r"\W+", member[0])[1],
    )
    keywords = [(f"`{name}`", _markdown(entry.help)) for name, entry in MARKER_KEYWORDS.items()]
    return page(
        "Fixture and marker",
        "A test that takes the fixture `ortbench` becomes one item for each case of the matrix. "
        "The case is measured at the end of the test at the latest, whatever the test asks for.",
        _markdown(_doc(OrtBench)),
        "## Marker",
        "`@pytest.mark.ortbench(…)` wins over options and ini keys for what it names. The "
        "test must take the fixture: as an argument, by `usefixtures`, or through another fixture; "
        "else it is an error. A marker of a class or a module is for those of its tests that take "
        "it. On a parameter (`pytest.param(…, marks=…)`) only `limits` and `gate` count; axes "
        "there are an error. `unittest.TestCase` is not supported.",
        table(("keyword", "meaning"), keywords),
        "## What a test reads",
        "Of `ortbench`, and of what `ortbench.measure(…)` returns:",
        table(("of `ortbench`", "what it is"), members),
        "## A model that the test makes",
        _markdown(_doc(OrtBench.measure).partition("\nArgs:")[0]),
        table(("argument", "meaning"), _arguments(OrtBench.measure)),
        "[The guide](../guides/exporters.md) has examples.",
        "## Views",
        _markdown(_doc(View)),
        "A quantity compares with plain numbers in SI units and has `value`, `unit`, `low`, `high` "
        "and `samples`.",
        *(
            block
            for entry in PASSES
            for name, kind in entry.shown_to_tests
            for block in _shown(name, entry.load(kind))
        ),
    )


def _member(owner: type, name: str) -> tuple[str, str]:
    made = inspect.getattr_static(owner, name)
    if isinstance(made, property):
        return f"`{name}`", _in_a_cell(made.fget)
    return _called(made, name)


def _called(made: Callable[..., object], name: str) -> tuple[str, str]:
    """A function of the fixture, as a test calls it."""
    taken = list(inspect.signature(made).parameters.values())[1:]
    return f"`{name}({', '.join(parameter.name for parameter in taken)})`", _in_a_cell(made)


def _arguments(made: Callable[..., object]) -> list[tuple[str, str]]:
    """The arguments of a function, as its docstring describes them."""
    described = _doc(made).partition("\nArgs:")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", described, re.MULTILINE)
    return [(f"`{name}`", _markdown(" ".join(text.split()))) for name, text in entries]


def _shown(name: str, kind: type) -> tuple[str, ...]:
    """What a pass shows to tests beside views, with its properties."""
    properties = [member for member, made in vars(kind).items() if isinstance(made, property)]
    return (
        f"## A {name}",
        _markdown(_doc(kind)),
        table((f"of a {name}", "what it is"), [_member(kind, member) for member in properties]),
    )


def _in_a_cell(made: object) -> str:
    """A docstring in one line, without the list of its arguments."""
    return " ".join(_markdown(_doc(made).partition("\nArgs:")[0]).split())


def hooks_page() -> str:
    """Return the page on hooks."""
    from pytest_ortbench.plugin import hookspec

    blocks = []
    for name, hook in vars(hookspec).items():
        if name.startswith("pytest_ortbench_"):
            taken = ", ".join(inspect.signature(hook).parameters)
            blocks += [f"## {name}({taken})", _markdown(_doc(hook))]
    return page("Hooks", _markdown(_doc(hookspec)), *blocks)


def _doc(made: object) -> str:
    return inspect.getdoc(made) or ""


def _markdown(text: str) -> str:
    """Turn a docstring's literals and examples into Markdown's."""
    text, _, example = text.partition("Example::\n")
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.replace("``", "`")).strip()
    if not example:
        return text
    return f"{text}\n\n```python\n{inspect.cleandoc(example).strip()}\n```"


def _with_code(text: str) -> str:
    return re.sub(r"(--[a-z][\w-]*(?:=\S+[^\s.,;)])?)", r"`\1`", text)


def operators_page() -> str:
    """Return the page on what was measured of every operator test of onnx."""
    recorded = json.loads(OPERATORS.read_text(encoding="utf-8"))
    rows = sorted(recorded["operators"].items())
    total = [sum(counts[index] for _, counts in rows) for index in range(6)]
    versions = recorded["versions"]
    share = 100 * total[4] / total[1]
    blocks = [
        f"What became of the {total[0]:,} operator tests that onnx {versions['onnx']} brings, "
        f"on ONNX Runtime {versions['onnxruntime']} and the CPU: of {total[1]:,} that a plain "
        f"session runs, {total[2]:,} are measured with the inputs of the test, {total[4]:,} "
        f"({share:.1f} %) with drawn ones. Outputs are as the test expects wherever those of the "
        f"plain session are: {total[3]:,}. Beyond these, {total[5]:,} are measured, and right, "
        "whose tensors a plain session can't be given as arrays (bfloat16, small floats, small "
        "integers, bare numbers).",
        "Planning, drawing, session, timed blocks, placement and diagnosis are the product's own; "
        "each model is measured in a fork of one process. Made by "
        "`python -m tests.operators.driver RECORDS`, which can be stopped and resumed, and "
        "`… --write`. What is drawn, and why, stands in [models](../guides/models.md).",
        table(
            ("operator", "tests", "a session runs", "given inputs", "right", "drawn", "beyond"),
            ([f"`{name}`", *map(str, counts)] for name, counts in rows),
        ),
        "## Not measured",
        table(
            ("test", "inputs", "outcome", "reason"),
            (
                (f"`{item['name']}`", item["inputs"], item["status"], _one_cell(item["reason"]))
                for item in recorded["not_measured"]
            ),
        ),
    ]
    return page("Operators", *blocks)


def changed_models_page() -> str:
    """Return the page on what became of changed models, and of a run that was killed."""
    recorded = json.loads(MUTATIONS.read_text(encoding="utf-8"))
    kills = json.loads(KILLS.read_text(encoding="utf-8"))
    versions, bases = recorded["versions"], recorded["outcomes"]
    forms = ("as it is", "converted")
    counts = [counted for base in bases.values() for counted in base.values()]
    statuses = sorted({status for counted in counts for status in counted})
    rows = [
        [base, form, *(str(by_form.get(form, {}).get(status, 0)) for status in statuses)]
        for base, by_form in bases.items()
        for form in forms
    ]
    total = [
        str(
            sum(
                by_form.get(form, {}).get(status, 0) for by_form in bases.values() for form in forms
            )
        )
        for status in statuses
    ]
    steps = kills["kills"]
    stored, lost = steps[-1]["after"], sum(len(step["lost"]) for step in steps)
    blocks = [
        f"{recorded['models']:,} models were changed at random by what a part of an ONNX file "
        "means: nodes dropped, doubled, reordered and made cyclic, operators and attributes out of "
        "range or of another type, shapes negative and huge, weights of a wrong size, external "
        "data cut, overlapping or elsewhere, unknown operator sets and domains, recursive "
        "functions, deep graphs, control and bidirectional characters, bytes cut and flipped "
        "inside of fields. Each went through `ortbench models inspect`, planning, measuring with "
        "a reference, and a conversion (in turns fp16, bf16, int8-dynamic, int4, simplified, "
        f"optimized), with onnx {versions['onnx']} and ONNX Runtime {versions['onnxruntime']} on "
        "the CPU.",
        f"Faults: {len(recorded['faults'])}. A fault is a traceback, an end of the host's process, "
        "a wait without end in it, a failure without a reason of one line, a reason that is an "
        "exception of Python, a control character on the terminal, and a document that does not "
        "read back. `crash` and `timeout` are those of a worker: the process of the measured model "
        "or of a converting tool ended or did not end, and the run went on.",
        table(("model", "form", *statuses), [*rows, ["**all**", "", *total]]),
        "Made by `python -m tests.mutations.model_trial RECORD.jsonl`, which can be stopped and "
        "resumed, and `… --write`. `--seeds=7` does one of them again.",
        "## A run that is killed",
        f"A run of {len(kills['wanted'])} cases was ended with `kill -9` {len(steps)} times: every "
        "other time behind a new case, else at any moment from its start on. Stored cases that "
        f"were lost: {lost}. The last run took the {stored} that were stored, measured the others, "
        f"and its document holds each of the {len(kills['cases'])} once. Made by "
        "`python -m tests.faults.kill_trial --write`.",
    ]
    return page("Changed models", *blocks)


def bare_files_page() -> str:
    """Return the page on real model files that were named without any option."""
    recorded = json.loads((BARE_FILES / "table.json").read_text(encoding="utf-8"))
    files = tomllib.loads(_MANIFEST.read_text(encoding="utf-8"))
    rows = [(files[record["name"]], record) for record in recorded]
    blocks = [
        f"{len(rows)} model files that ship inside packages of PyPI and npm, named as a user would "
        "name them (`pytest FILE`), without an option: what each input was fed and why, and our "
        "p50 beside a loop written by hand around `InferenceSession.run`. The ratio is the median "
        "of paired rounds in one run; each round times both, in turns and in random order, on "
        "the same values. Made by `python -m tests.bare_files.driver RECORDS`, which fetches the "
        "packages by their own clients, and `… --write`. How sizes and values are chosen stands in "
        "[What a model is fed where nobody says it](../guides/default-workload.md).",
        table(
            ("model", "what it is", "kind", "p50", "ours ÷ by hand", "items", "accuracy"),
            (
                (
                    f"`{record['name']}`",
                    file["description"],
                    file["kind"],
                    _milliseconds(record.get("p50_ms")),
                    _ratio(record),
                    _items(record),
                    _accuracy(record),
                )
                for file, record in rows
            ),
        ),
        "## What each input was fed",
        table(
            ("model", "input", "shape", "sizes", "values", "why"),
            (
                (
                    f"`{record['name']}`",
                    f"`{fed['name']}`",
                    " × ".join(map(str, fed["shape"])) or "one number",
                    fed["sizes"],
                    fed["values"],
                    _one_cell(fed["why"]),
                )
                for _, record in rows
                for fed in record["fed"]
            ),
        ),
        "## Where they come from",
        table(
            ("model", "package", "member", "licence", "SHA-256"),
            (
                (
                    f"`{record['name']}`",
                    f"{file['package']} ({file['registry']})",
                    f"`{file['member']}`",
                    file["licence"],
                    f"`{file['sha256'][:16]}…`",
                )
                for file, record in rows
            ),
        ),
        *_catalogue_blocks(),
    ]
    return page("Real files, named alone", *blocks)


def _catalogue_blocks() -> Iterable[str]:
    recorded = json.loads((BARE_FILES / "catalogue.json").read_text(encoding="utf-8"))
    yield "## Models of the catalogue, named as files"
    yield (
        "Each model of the [catalogue](../guides/models.md) in three forms: by its name there, as "
        "a copy of its file, which is known by its SHA-256, and saved anew, so that only its graph "
        "and its metadata are left to go by. Made by `python -m tests.bare_files.catalogue_forms "
        "--write`."
    )
    yield table(
        ("model", "precision", "by name", "as a file", "saved anew", "fed by name", "saved anew"),
        (
            (
                f"`zoo:{row['model']}`",
                row["precision"],
                *(_accuracy(row[form]) for form in ("zoo", "file", "anew")),
                _shapes(row["zoo_fed"]),
                _shapes(row["anew_fed"]),
            )
            for row in recorded
        ),
    )
    yield (
        "Where metadata tells the size (`imgsz`), a file that lost it is fed a default, and the "
        "run asks whether that is what the model gets. The answers of a detector are positions in "
        "pixels: they grow with the image, and what int8 rounds does not, so the larger image has "
        "more decibels."
    )
    yield table(
        ("model", "precision", "by name", "without metadata", "fed by name", "without metadata"),
        (
            (
                f"`zoo:{row['model']}`",
                row["precision"],
                *(_accuracy(row[form]) for form in ("zoo", "stripped")),
                *(_shapes(row[f"{form}_fed"]) for form in ("zoo", "stripped")),
            )
            for row in recorded
            if "stripped" in row
        ),
    )


def _shapes(fed: dict[str, Sequence[int]]) -> str:
    shapes = (" × ".join(map(str, shape)) for shape in fed.values() if shape)
    return ", ".join(dict.fromkeys(shapes))


def _milliseconds(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 1000:
        return f"{value / 1000:.3g} s"
    return f"{value:.3g} ms" if value >= 0.1 else f"{1e3 * value:.3g} µs"


def _ratio(record: dict[str, Any]) -> str:
    if "ratio" not in record:
        return record["reason"] or record["status"]
    rounds = len(record["ratios"])
    return f"{record['ratio']:.3f}" + ("" if rounds >= 15 else f" ({rounds} rounds, busy)")


def _items(record: dict[str, Any]) -> str:
    return f"1 inference: {record['no_batch']}" if record["no_batch"] else str(record["items"])


def _accuracy(record: dict[str, Any]) -> str:
    """Decibels and flags, or why there are none."""
    if record["status"] != "measured":
        return f"{record['status']}: {_one_cell(record['reason'])}"
    sqnr = record["sqnr_db"]
    text = record.get("accuracy") or ("" if sqnr is None else f"{sqnr:.0f} dB")
    return ", ".join([text, *record["flags"]])


def _one_cell(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:159] + "…"


def other_plugins_page() -> str:
    """Return the page on trials beside other plugins, versions of pytest and Python."""
    recorded = json.loads(PLUGINS.read_text(encoding="utf-8"))
    trials = [trial for trial in recorded["trials"] if not trial.get("is_refused")]
    refused = [trial for trial in recorded["trials"] if trial.get("is_refused")]
    pythons = list(dict.fromkeys(trial["python"] for trial in trials))
    versions = list(dict.fromkeys(trial["version"]["pytest"] for trial in trials))
    outcome = {
        (trial["python"], trial["version"]["pytest"], tuple(trial["plugins"])): trial["faults"]
        for trial in trials
    }

    def cell(python: str, version: str, plugins: tuple[str, ...]) -> str:
        if (python, version, plugins) not in outcome:
            return "not tried"
        return "see below" if outcome[python, version, plugins] else "good"

    sets = list(dict.fromkeys(tuple(trial["plugins"]) for trial in trials))
    faults = [
        f"- Python {python}, pytest {version}, {', '.join(plugins)}: {_one_cell(fault)}"
        for (python, version, plugins), found in outcome.items()
        for fault in found
    ]
    faults += [f"- Too old: {_one_cell(fault)}" for trial in refused for fault in trial["faults"]]
    products = Counter(trial.get("product", "an earlier one") for trial in recorded["trials"])
    too_old = ", ".join(sorted({trial["version"]["pytest"] for trial in refused}))
    blocks = [
        f"A small project with tests of its own and items of ours, in {len(trials)} "
        "combinations of Python, pytest and other plugins: the fifteen most downloaded that pytest "
        "loads, and seven further ones. *Good*: its own tests end in the same way with and without "
        "us, with and without options of the others; our items are measured; the exit status is "
        "the same.",
        "Made by `python -m tests.plugins.driver WORK --python=…`, which can be stopped and "
        "resumed, and `… --write`. Trials by the commit of this product: "
        f"{', '.join(f'{commit} ({count})' for commit, count in products.items())}.",
        *(
            [
                f"pytest {too_old} is too old and refused in one line, on {len(refused)} versions "
                "of Python; its own tests run with `-p no:ortbench`."
            ]
            if refused
            else []
        ),
        "## Without other plugins",
        table(
            ("Python", *(f"pytest {version}" for version in versions)),
            ([python, *(cell(python, version, ()) for version in versions)] for python in pythons),
        ),
        f"## Each plugin alone, on Python {pythons[-1]}",
        table(
            ("plugin", "version", *(f"pytest {version}" for version in versions)),
            (
                [name, number, *(cell(pythons[-1], version, (name,)) for version in versions)]
                for name, number in recorded["plugins"].items()
            ),
        ),
        "## Drawn sets of four",
        table(
            ("plugins", "Python", f"pytest {versions[0]}", f"pytest {versions[-1]}"),
            (
                [
                    ", ".join(plugins),
                    python,
                    cell(python, versions[0], plugins),
                    cell(python, versions[-1], plugins),
                ]
                for plugins in sets
                if len(plugins) > 1
                for python in pythons
            ),
        ),
        *(["## Faults", "\n".join(faults)] if faults else []),
    ]
    return page("Other plugins", *blocks)


def messages_page() -> str:
    """Return the page on kinds of messages."""
    return page("Messages: cause and what to do", *message_index.kinds_blocks())


def errors_page() -> str:
    """Return the page on errors, which only the site has."""
    return page("All errors", *message_index.errors_blocks())


#: Pages that only the site has, since they would change with every sentence of the code.
SITE_PAGES: dict[str, Callable[[], str]] = {"errors.md": errors_page}

PAGES: dict[str, Callable[[], str]] = {
    "document.md": document_page,
    "commands.md": commands_page,
    "options.md": options_page,
    "metrics.md": metrics_page,
    "flags.md": flags_page,
    "messages.md": messages_page,
    "fixture.md": fixture_page,
    "hooks.md": hooks_page,
    "operators.md": operators_page,
    "changed-models.md": changed_models_page,
    "bare-files.md": bare_files_page,
    "other-plugins.md": other_plugins_page,
}


def outdated() -> list[str]:
    """Return the names of the pages that differ from what the code says."""
    return [
        name
        for name, make in PAGES.items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_text(encoding="utf-8") != make()
    ]


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or with ``--check`` name those that are out of date."""
    stale = outdated()
    for name in stale:
        if "--check" in arguments:
            sys.stderr.write(f"{FOLDER / name} is out of date: run python docs/generate.py\n")
        else:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
