"""What users see of stored documents, as text: every command, page and file that is made of them.

``tests/outputs/documents`` holds run documents of schema 1 that nobody edits: every pass, failures,
verdicts of gates, hostile names, machines to compare, two runs of one machine. What is made of them
lies in ``tests/outputs/expected``, and ``test_rendered_outputs.py`` compares. Where an output is
meant to change, this writes it anew (all of them, or those that are named)::

    python -m tests.rendered_outputs [NAME...]

Versions, places and pictures are left out, so that the text is the same on every machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any
from unittest import mock

from tests import environment
from tests.summarised import properties_of

TESTS = Path(__file__).parent
OUTPUTS = TESTS / "outputs"
DOCUMENTS, EXPECTED = OUTPUTS / "documents", OUTPUTS / "expected"

#: Documents by the name of their file in the folder that commands run in.
_NAMES = {
    **{path.name: path for path in sorted(DOCUMENTS.glob("*.json"))},
    "example.json": TESTS.parent / "results/example/run.json",
    "openvino.json": TESTS.parent / "results/example/openvino.json",
    "older.json": TESTS.parent / "results/example/onnxruntime-1.20.1.json",
    "golden.json": TESTS / "schema/golden/v1.json",
}

_PRICES = """\
currency = "EUR"
years = 3

[machines.desk]
price = 2400
power_price = 0.3
idle_power = 45

[machines.rack]
price = 6200
power_price = 0.3
idle_power = 80

[machines.edge]
price_per_hour = 0.09

[machines.loft]
price = 5
"""

_ACCEPTED = """\
[[accepted]]
case = "grown"
metric = "model_size"
worse_by = "25 %"
reason = "more classes"

[[accepted]]
case = "slow"
metric = "latency"
worse_by = "1 %"
reason = "the new head"

[[accepted]]
case = "vanished"
metric = "removed"
until = 2020-01-31
reason = "replaced"

[[accepted]]
case = "gone"
metric = "removed"
reason = "replaced"

[[accepted]]
case = "nothing"
reason = "no such case"
"""

#: Runs of one machine for a trend: day of the month and how much slower than the first.
_TREND = tuple((day, 1.0 if day < 6 else 1.2) for day in range(1, 11))


# -- the folder ------------------------------------------------------------------------------------


def lay_out(folder: Path) -> None:
    """Fill an empty folder with the documents and with what the commands take beside them."""
    for name, path in _NAMES.items():
        shutil.copy(path, folder / name)
    (folder / "machines.toml").write_text(_PRICES, encoding="utf-8")
    (folder / "accepted.toml").write_text(_ACCEPTED, encoding="utf-8")
    (folder / "cut.json").write_bytes((folder / "golden.json").read_bytes()[:900])
    document = json.loads((folder / "golden.json").read_bytes())
    (folder / "newer.json").write_text(json.dumps({**document, "schema_version": 99}), "utf-8")
    document["cases"][0]["batch"] = -5
    document["cases"][0]["measurements"][0]["samples"]["count"] = -1
    (folder / "senseless.json").write_text(json.dumps(document), encoding="utf-8")
    for day, factor in _TREND:
        document = json.loads((folder / "before.json").read_bytes())
        document["run_id"] = f"202601{day:02d}T030405Z-lab-{day:04d}"
        document["started_at"] = f"2026-01-{day:02d}T03:04:05Z"
        document["canary"]["durations_ns"] = [round(100_000 / factor)] * 50
        document["cases"] = document["cases"][:2]
        path = folder / "trend" / document["run_id"] / "run.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(document), encoding="utf-8")


@contextlib.contextmanager
def entered(folder: Path) -> Iterator[None]:
    """Make a folder the current one, without settings of the user's, and let nothing be drawn."""

    def draw(_canvas: object, stream: IO[bytes], **_options: object) -> None:
        stream.write(b"a picture")

    kept = {key: text for key, text in os.environ.items() if key not in environment.FORGOTTEN}
    before = Path.cwd()
    agg, svg = "backend_agg.FigureCanvasAgg.print_png", "backend_svg.FigureCanvasSVG.print_svg"
    with (
        mock.patch.dict(os.environ, kept, clear=True),
        mock.patch(f"matplotlib.backends.{agg}", draw),
        mock.patch(f"matplotlib.backends.{svg}", draw),
    ):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


# -- calls -----------------------------------------------------------------------------------------


def call(command: str) -> str:
    """Run one command of the tool in this process; return it, how it ended and what it printed."""
    from pytest_ortbench.cli.application import run

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run(shlex.split(command))
    text = f"$ ortbench {command}\n[{code}]\n{out.getvalue()}"
    if errors.getvalue():
        text += f"[stderr]\n{errors.getvalue()}"
    return text


def calls(*commands: str) -> Callable[[], str]:
    """Return what runs several commands one after the other."""
    return lambda: "\n".join(map(call, commands))


def page(command: str, *names: str) -> Callable[[], str]:
    """Return what runs a command and reads the pages that it writes."""

    def render() -> str:
        texts = [call(command)]
        for name in names:
            texts.append(f"{name}:\n{skeleton(Path(name).read_text(encoding='utf-8'))}")
        return "\n".join(texts)

    return render


class _Skeleton(HTMLParser):
    """Writes the elements and texts of a page, a line each; pictures and programs as a digest."""

    _KEPT = ("id", "class", "href", "title", "alt", "scope", "open", "colspan", "aria-label")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("style", "script"):
            self._inside = tag
        shown = [
            f' {name}="{value}"' if value is not None else f" {name}"
            for name, value in attrs
            if name in self._KEPT or name.startswith("data-")
        ]
        self.lines.append(f"<{tag}{''.join(shown)}>")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the parser passes it
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            digest = hashlib.sha256(data.encode()).hexdigest()[:12]
            self.lines.append(f"{self._inside} {digest}")
        elif data.strip():
            self.lines.append(" ".join(data.split()))


def skeleton(html: str) -> str:
    """Return the elements and texts of a page, without what was drawn."""
    reader = _Skeleton()
    reader.feed(html)
    reader.close()
    text = "\n".join(reader.lines)
    return re.sub(r'data:[\w/+]+;base64,[^"\s]+', "data:…", text) + "\n"


def files(command: str, folder: str) -> Callable[[], str]:
    """Return what runs a command and lists the files that it leaves in a folder."""

    def render() -> str:
        text = call(command)
        names = sorted(path.name for path in Path(folder).iterdir())
        return f"{text}{folder}: {' '.join(names)}\n"

    return render


def file(command: str, name: str) -> Callable[[], str]:
    """Return what runs a command and shows the text file that it writes."""
    return lambda: f"{call(command)}{name}:\n{Path(name).read_text(encoding='utf-8')}"


# -- what is no command ----------------------------------------------------------------------------


def _load(name: str) -> Any:
    from pytest_ortbench.store.documents import load

    return load(Path(name))


def junit() -> str:
    """Properties of every case and of every verdict."""
    from pytest_ortbench.gate.report.lines import gate_properties

    lines = []
    for name in ("passes.json", "failures.json", "hostile.json", "gated.json", "golden.json"):
        run = _load(name)
        lines.append(f"# {name}")
        for result in run.cases:
            lines += [f"{key}={value}" for key, value in properties_of(result)]
        for verdict in run.gate:
            lines += [f"{key}={value}" for key, value in gate_properties(verdict)]
    return "\n".join(lines) + "\n"


def prometheus() -> str:
    """Metrics for Prometheus of three runs."""
    from pytest_ortbench.report.entries import shown_run
    from pytest_ortbench.report.prometheus import render_prometheus

    names = ("passes.json", "failures.json", "hostile.json", "golden.json")
    return "".join(f"# {name}\n{render_prometheus(shown_run(_load(name)))}" for name in names)


def job_summary() -> str:
    """What a CI job shows of its runs."""
    from pytest_ortbench.report.ci.run_verdict import gate_complaints
    from pytest_ortbench.report.ci.summary import run_summary
    from pytest_ortbench.report.entries import shown_run

    names = ("passes.json", "failures.json", "hostile.json", "gated.json")
    return "".join(
        f"<!-- {name} -->\n{run_summary(shown_run(run), gate_complaints(run))}"
        for name in names
        for run in [_load(name)]
    )


def terminal() -> str:
    """The table that pytest ends with: in a narrow, a wide, a coloured and an old terminal."""
    from pytest_ortbench.report.entries import shown_run
    from pytest_ortbench.report.table import render_table

    texts = []
    for name in ("passes.json", "failures.json", "gated.json", "golden.json"):
        run = _load(name)
        for width, color, encoding in (
            (150, False, "utf-8"),
            (80, True, "utf-8"),
            (100, False, "ascii"),
        ):
            table = render_table(shown_run(run), width=width, color=color, encoding=encoding)
            shown = table.replace("\x1b", "ESC")
            texts.append(f"# {name}, {width} columns, {encoding}\n{shown.rstrip()}\n")
    return "\n".join(texts)


def help_of_commands() -> str:
    """Usage, text and options of every command, whatever the layout of click's version is."""
    import click

    from pytest_ortbench.cli.application import COMMANDS, application

    def shown(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
        context = click.Context(command, parent=parent, info_name=name)
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        yield f"== {usage}\n{' '.join((command.help or '').split())}"
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if record is not None:
                yield "  " + "  ".join(" ".join(part.split()) for part in record)
        yield (command.epilog or "").strip()
        for inner_name, inner in getattr(command, "commands", {}).items():
            yield from shown(inner, context, inner_name)

    context = click.Context(application, info_name="ortbench", **application.context_settings)
    lines = list(shown(application, None, "ortbench"))
    for name, entry in COMMANDS.items():
        command = application.get_command(context, name)
        assert command is not None
        lines += [f"{name}: {entry.help}", *shown(command, context, name)]
    return "\n".join(lines) + "\n"


def _pytest(*arguments: str, code: int = 0) -> str:
    """What pytest prints, with this plugin and no other."""
    from importlib import metadata

    plugins = metadata.entry_points(group="pytest11")
    blocked = [f"-pno:{entry.name}" for entry in plugins if entry.name != "ortbench"]
    if all(entry.name != "ortbench" for entry in plugins):
        blocked += ["-p", "pytest_ortbench.plugin"]
    paths = (str(TESTS.parent), os.environ.get("PYTHONPATH", ""))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *blocked, "-pno:cacheprovider", "--rootdir=.", *arguments],
        env={
            **{
                name: text for name, text in os.environ.items() if name not in environment.FORGOTTEN
            },
            "COLUMNS": "150",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def help_of_pytest() -> str:
    """Options and ini keys of ours in ``pytest --help``, an option or a key a line."""
    text = _pytest("--help")
    group = re.search(r"^ortbench: .*?(?=^\S)", text, re.MULTILINE | re.DOTALL)
    assert group is not None
    options = re.split(r"\n  (?=-)", group[0])
    keys = re.findall(r"^  ort_\w+ \(.*?(?=^  \S|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return "".join(f"{' '.join(entry.split())}\n" for entry in (*options, *keys))


def markers() -> str:
    """Markers of ours in ``pytest --markers``."""
    entries = re.split(r"\n\n+", _pytest("--markers"))
    return "".join(f"{entry}\n" for entry in entries if "ortbench" in entry.partition("(")[0])


_CONFTEST = """\
import pytest
from tests.plugin.conftest import drawn_numbers

@pytest.fixture(autouse=True)
def drawn(drawn_numbers):
    pass
"""

_TESTS = """\
import pytest

def test_latency(ortbench):
    assert ortbench.latency().p50 > 0

@pytest.mark.ortbench(limits=["latency_p90 <= 2 ms", "placement >= 95 %"])
def test_own_limits(ortbench):
    pass

@pytest.mark.ortbench(limits={"latency_p90": "2 ms"})
def test_wrong_marker(ortbench):
    pass
"""


def run_of_pytest() -> str:
    """What a run prints and leaves behind whose numbers are drawn: table, JUnit, metrics."""
    from xml.etree import ElementTree

    from onnx import TensorProto, helper, save

    folder = Path("run")
    folder.mkdir()
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "m", [x], [y])
    opset = [helper.make_opsetid("", 13)]
    save(helper.make_model(graph, ir_version=8, opset_imports=opset), folder / "relu.onnx")
    (folder / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (folder / "test_models.py").write_text(_TESTS, encoding="utf-8")
    os.chdir(folder)
    try:
        chosen = ("--ort-models=relu.onnx", "--ort-batch-sizes=1,8", "--ort-threads=1,2")
        held = ("--ort-limits=latency_p50<=1ms", "--ort-no-results")
        written = ("--ort-prometheus=metrics.txt", "--junitxml=junit.xml")
        texts = [_pytest("-v", "--tb=no", *chosen, *held, *written, code=1)]
        texts.append(_pytest("--ort-models=relu.onx", "--ort-providers=cpuu", code=4))
        texts += [
            f"{case.get('name')}: {entry.get('name')}={entry.get('value')}"
            for case in ElementTree.parse("junit.xml").iter("testcase")
            for entry in case.iter("property")
        ]
        metrics = Path("metrics.txt").read_text(encoding="utf-8")
        texts += [line for line in metrics.splitlines() if not line.startswith("ortbench_run_info")]
    finally:
        os.chdir("..")
    # What is said of the machine may be longer than a line.
    text = re.sub(
        r"^(platform|plugins:) .*\n|^machine .*\n(?: +\S.*\n)*",
        "",
        "\n".join(texts),
        flags=re.MULTILINE,
    )
    text = re.sub(r"[-=]{3,}", "---", text)
    text = re.sub(r'host="[^"]*"', 'host="HOST"', text)
    text = re.sub(r"about [\d a-z]+ \(estimate\)", "about SOME TIME (estimate)", text)
    return re.sub(r" in \d+\.\d+s.*", " in SOME TIME", text)


_COMPARED = "desk.json rack.json edge.json"

#: Everything that is compared, by the name of its file.
RENDERINGS: dict[str, Callable[[], str]] = {
    "show": calls(
        "show passes.json",
        "show failures.json",
        "show unfinished.json",
        "show hostile.json",
        "show golden.json",
        "show example.json",
        "show openvino.json",
        "show failures.json --filter=provider=cpu --sort=-latency_p50",
        "show failures.json --filter=status!=measured",
        "show passes.json --columns=p50,p99,rss,energy",
        "show failures.json --filter=nowhere",
        "show failures.json --sort=laten",
        "show failures.json --columns=p55",
        "show nowhere.json",
        "show cut.json",
        "show newer.json",
        "show senseless.json",
        "show latest",
        "shwo",
    ),
    "show-gated": calls("show gated.json", "show gated.json --filter=new"),
    "export-csv": calls(
        "export passes.json failures.json hostile.json golden.json --format=csv",
        "export example.json openvino.json older.json --filter=status=measured",
        "export failures.json --filter=nowhere",
    ),
    "export-json": calls("export passes.json failures.json unfinished.json --format=json"),
    "export-md": calls(
        "export hostile.json golden.json --format=md", "export passes.json --format=md -o rows.md"
    ),
    "report-passes": page("report passes.json -o passes.html", "passes.html"),
    "report-failures": page("report failures.json -o failures.html", "failures.html"),
    "report-hostile": page("report hostile.json -o hostile.html", "hostile.html"),
    "report-gated": page("report gated.json -o gated.html", "gated.html"),
    "report-golden": page("report golden.json -o golden.html", "golden.html"),
    "report-of-several": page(f"report {_COMPARED} -o machines.html", "machines.html"),
    "compare": calls(
        f"compare {_COMPARED}",
        f"compare {_COMPARED} --format=md",
        f"compare {_COMPARED} --format=csv",
        f"compare {_COMPARED} --by=precision --metric=latency_p99",
        f"compare {_COMPARED} --metric=energy_per_inference --baseline=rack",
        f"compare {_COMPARED} --filter=nowhere",
        "compare example.json openvino.json older.json",
        "compare failures.json --by=provider",
        "compare before.json after.json --by=time",
        "compare golden.json hostile.json",
        "compare desk.json desk.json",
        "compare desk.json rack.json --by=colour",
        "compare desk.json rack.json --metric=laten",
        "compare desk.json rack.json --rate=5",
    ),
    "compare-machines": calls(
        f"compare {_COMPARED} --machines=machines.toml",
        f"compare {_COMPARED} --machines=machines.toml --rate=900 --p99=20ms",
        f"compare {_COMPARED} --machines=machines.toml --rate=900 --p99=20ms --format=csv",
        f"compare {_COMPARED} --machines=machines.toml --rate=900 --p99=20ms --format=md",
        f"compare {_COMPARED} --machines=machines.toml --rate=900",
    ),
    "compare-page": page(
        f"compare {_COMPARED} --machines=machines.toml --format=html -o costs.html", "costs.html"
    ),
    "trend": calls("trend trend", "trend trend --plot=trend.png", "trend nowhere"),
    "gate": calls(
        "gate before.json after.json",
        "gate before.json after.json --strict",
        "gate before.json after.json --limits=peak_rss:20%,latency:20%,slow@latency:5%",
        "gate before.json after.json --limits=latency_p50:<=2ms,placement:>=95%",
        "gate before.json after.json --accepted=accepted.toml",
        "gate after.json before.json",
        "gate failures.json passes.json",
        "gate golden.json golden.json",
        "gate example.json older.json",
        "gate before.json",
        "gate before.json after.json --limits=laten:3%",
        "gate before.json after.json --limits=nowhere@latency:3%",
        "gate before.json cut.json",
    ),
    "plot": files("plot passes.json -o plots --p99=20ms", "plots"),
    "plot-of-several": files(f"plot {_COMPARED} -o several --format=svg", "several"),
    "schema": calls("schema"),
    "schema-of-documents": calls(
        f"schema {' '.join(_NAMES)}", "schema cut.json newer.json senseless.json nowhere.json"
    ),
    "badge": calls(
        "badge failures.json mobilenet_v2",
        "badge failures.json mobilenet_v2/native/cpu/b1 --metric=peak_rss --format=svg",
        "badge failures.json mobilenet_v2/native/cuda/b1",
        "badge failures.json nobody",
        "badge passes.json net/native/cpu/b1 --metric=energy_per_inference",
        "badge passes.json net -o badge.png",
    ),
    "accept": calls(
        "accept",
        "accept slow",
        "accept slow --reason=' '",
        "accept slow --reason=why --until=2020-01-31",
        "accept slow --reason=why --until=soon",
        "accept slow --reason=why --metric=laten",
        "accept slow --reason=why --worse-by=much",
        "accept slow --reason=why --run=after.json",
        "accept nobody --reason=why --run=gated.json",
        "accept --list --file=accepted.toml",
        "accept --list --file=nowhere.toml",
    ),
    "accept-written": file(
        "accept net --reason='a new kernel' --run=passes.json --until=2999-01-31 --file=new.toml",
        "new.toml",
    ),
    "merge": calls(
        "merge before.json after.json -o merged.json",
        "schema merged.json",
        "merge desk.json rack.json -o merged.json",
    ),
    "junit": junit,
    "prometheus": prometheus,
    "job-summary": job_summary,
    "terminal": terminal,
    "help-of-commands": help_of_commands,
    "help-of-pytest": help_of_pytest,
    "markers": markers,
    "run-of-pytest": run_of_pytest,
}


def rendered(name: str, folder: Path) -> str:
    """Return one output, made in a folder that was laid out, without what differs by machine."""
    with entered(folder):
        text = RENDERINGS[name]()
    for place, word in ((folder, "FOLDER"), (folder.resolve(), "FOLDER"), (TESTS.parent, "ROOT")):
        text = text.replace(str(place), word)
    text = re.sub(r"(pytest-ortbench) \d+\.\d[\w.+]*", r"\1 VERSION", text)
    # Where a function that a text mentions lies is nobody's business.
    text = re.sub(r"`pytest_ortbench\.[\w.]*\.(\w+)`", r"`\1`", text)
    text = re.sub(r"(today is) \d{4}-\d\d-\d\d", r"\1 DAY", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def expected(name: str) -> Path:
    """Return the file that holds an output."""
    return EXPECTED / f"{name}.txt"


def main(names: list[str]) -> None:
    """Write the expected outputs, and delete those that nothing makes any more."""
    with tempfile.TemporaryDirectory(prefix="outputs-") as name:
        folder = Path(name).resolve()
        lay_out(folder)
        for chosen in names or RENDERINGS:
            expected(chosen).write_text(rendered(chosen, folder), encoding="utf-8")
    for path in EXPECTED.glob("*.txt"):
        if path.stem not in RENDERINGS:
            path.unlink()


if __name__ == "__main__":
    main(sys.argv[1:])
