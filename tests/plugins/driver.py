"""Try our items beside other plugins, over versions of pytest and Python; record how both end.

    python -m tests.plugins.driver WORK --python=python3.10 --python=python3.13 [--write]

WORK keeps the environments and one line a trial, so a call that was stopped goes on. ``--write``
makes ``results/plugins/table.json`` of it, from which docs/generate.py makes a page.

A trial is the small project of ``projects.py``, run four times: its own tests without our plugin;
all tests; then both again with the options of the other plugins (where these have some, the runs
without are made with the newest pytest only). It is good if the own tests end in
the same way with and without us, all of our items are measured, and the exit status is 0. Versions
of pytest and the plugins lie in folders of their own, which come before the packages of the
environment on ``PYTHONPATH``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.plugins.projects import FURTHER, PLUGINS, Plugin, write_project

ROOT = Path(__file__).parents[2]
#: Where ``--write`` puts what is recorded.
RESULTS = ROOT / "results" / "plugins" / "table.json"
#: The oldest declared version of pytest, and the last three minor versions.
PYTESTS = ("8.4.*", "9.0.*", "9.1.*", "9.2.*")
#: An older one, which an installation without dependencies leaves in place: it is refused.
TOO_OLD = "8.3.*"
#: How many sets of four plugins are drawn, and from which seed.
SETS, SEED = 5, 20261129
#: How long one run may take, in seconds.
_TIMEOUT_S = 300.0

Outcomes = dict[str, str]


@dataclass(frozen=True)
class Trial:
    """What is tried: one Python, one version of pytest, some plugins."""

    python: str
    pytest: str
    plugins: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """How one run of pytest ended.

    Attributes:
        status: Its exit status.
        own: Outcome of each test of the project, by name.
        ours: Outcome of each of our items, by name.
        text: The end of what it printed.
    """

    status: int
    own: Outcomes
    ours: Outcomes
    text: str


def trials(pythons: Sequence[str]) -> Iterator[Trial]:
    """Return what to try: every pair of versions, the drawn sets, and each plugin alone.

    No plugin is tried with every version of pytest on every Python; every set with the oldest and
    the newest pytest on every Python; each plugin alone with every version of pytest on the newest
    Python, the further ones with the oldest and the newest.

    Args:
        pythons: The interpreters, the oldest first.
    """
    names = [plugin.name for plugin in PLUGINS]
    draw = random.Random(SEED)
    sets = [tuple(sorted(draw.sample(names, 4))) for _ in range(SETS)]
    for python, version in itertools.product(pythons, (TOO_OLD, *PYTESTS)):
        yield Trial(python, version, ())
    ends, between = (PYTESTS[-1], PYTESTS[0]), PYTESTS[1:-1]
    for version, name in itertools.product(ends, [*(other.name for other in FURTHER), *names]):
        yield Trial(pythons[-1], version, (name,))
    for python, version, chosen in itertools.product(reversed(pythons), ends, sets):
        yield Trial(python, version, chosen)
    for version, name in itertools.product(reversed(between), names):
        yield Trial(pythons[-1], version, (name,))


class Environments:
    """The environments of one work folder: others' parts are made once, this product each time.

    Args:
        folder: The work folder.

    Attributes:
        product: The commit of this product.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._refreshed: set[str] = set()
        self.product = _commit()

    def interpreter(self, python: str) -> Path:
        """Return the interpreter of the environment with this product."""
        place = self._folder / "environments" / Path(python).name
        inside = place / "bin" / "python"
        if not (place / "made").exists():
            shutil.rmtree(place, ignore_errors=True)
            subprocess.run([python, "-m", "venv", str(place)], check=True)
            _install(inside, f"{ROOT}[cpu]")
            (place / "made").touch()
            self._refreshed.add(python)
        if python not in self._refreshed:
            _install(inside, "--no-deps", "--force-reinstall", str(ROOT))
            self._refreshed.add(python)
        return inside

    def overlay(self, python: str, *requirements: str) -> Path:
        """Return a folder with these distributions, for ``PYTHONPATH``."""
        name = "+".join(requirements).replace("*", "x").replace("==", "-")
        place = self._folder / "overlays" / Path(python).name / name
        if not (place / "made").exists():
            shutil.rmtree(place, ignore_errors=True)
            _install(self.interpreter(python), "--target", str(place), *requirements)
            (place / "made").touch()
        return place


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _install(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--no-warn-conflicts", *arguments]
    subprocess.run(command, check=True, env=_environment())


def _environment(*paths: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "CI"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    return kept


def record(environments: Environments, trial: Trial, folder: Path) -> dict[str, Any]:
    """Try one, and return what came out.

    Args:
        environments: Where things are installed.
        trial: What is tried.
        folder: A folder of its own, which is emptied.
    """
    python = environments.interpreter(trial.python)
    plugins = tuple(plugin for plugin in (*PLUGINS, *FURTHER) if plugin.name in trial.plugins)
    paths = [environments.overlay(trial.python, f"pytest=={trial.pytest}")]
    for plugin in plugins:
        paths.append(environments.overlay(trial.python, plugin.name, *plugin.needs))
    with_options = tuple(itertools.chain.from_iterable(plugin.options for plugin in plugins))
    runs = {}
    for name, options in {"plain": (), "options": with_options}.items():
        if name == "options" and not options:
            continue
        if name == "plain" and with_options and trial.pytest != PYTESTS[-1]:
            continue
        for side, more in {"without": ("-p", "no:ortbench"), "beside": ()}.items():
            runs[f"{name}_{side}"] = _run(python, paths, plugins, folder, (*options, *more))
    is_refused = trial.pytest == TOO_OLD
    return {
        **asdict(trial),
        "faults": _faults_of_refused(runs) if is_refused else _faults(runs),
        "is_refused": is_refused,
        "product": environments.product,
        "version": _version(python, paths),
    }


def _run(
    python: Path,
    paths: Sequence[Path],
    plugins: tuple[Plugin, ...],
    folder: Path,
    options: tuple[str, ...],
) -> Ended:
    shutil.rmtree(folder, ignore_errors=True)
    write_project(folder, plugins, _model())
    command = [str(python), "-m", "pytest", "-q", "--junit-xml=junit.xml", *options]
    if "no:ortbench" in options:
        command += ["--ignore=tests/test_models.py"]
    else:
        command += ["--ort-providers=cpu", "--ort-time=0.05", "--ort-workers=1"]
        command += ["--ort-no-results", "--ort-json=run.json"]  # no plots, which take half the time
    ended = subprocess.run(
        command,
        cwd=folder,
        env=_environment(*paths),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    outcomes = _outcomes(folder / "junit.xml")
    ours = {name: outcome for name, outcome in outcomes.items() if "test_models" in name}
    own = {name: outcome for name, outcome in outcomes.items() if name not in ours}
    return Ended(ended.returncode, own, ours, (ended.stdout + ended.stderr)[-2000:])


def _outcomes(path: Path) -> Outcomes:
    if not path.is_file():
        return {}
    outcomes = {}
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = min(kinds, default="passed")
    return outcomes


def _faults(runs: dict[str, Ended]) -> list[str]:
    """Return what is wrong: a run and a reason each."""
    faults = []
    for name in ("plain", "options"):
        if f"{name}_beside" not in runs:
            continue
        without, beside = runs[f"{name}_without"], runs[f"{name}_beside"]
        if beside.own != without.own or not beside.own:
            faults.append(f"{name}: own tests end otherwise beside us: {beside.text}")
        # A test that needs the options of its plugin fails without them, beside us or not.
        right = without.status if name == "plain" and "options_beside" in runs else 0
        if beside.status != right or without.status != right:
            faults.append(
                f"{name}: exit {beside.status}, {without.status} without us: {beside.text}"
            )
        if set(beside.ours.values()) != {"passed"}:
            faults.append(f"{name}: our items: {beside.ours}: {beside.text}")
    return faults


def _faults_of_refused(runs: dict[str, Ended]) -> list[str]:
    """Return what is wrong where pytest is too old: all must end in one line, own tests run."""
    without, beside = runs["plain_without"], runs["plain_beside"]
    faults = []
    if without.status or not without.own:
        faults.append(f"own tests without us: exit {without.status}: {without.text}")
    lines = beside.text.strip().splitlines()
    if beside.status != 4 or len(lines) != 1:
        faults.append(f"exit {beside.status}, {len(lines)} lines: {beside.text}")
    return faults


def _version(python: Path, paths: Sequence[Path]) -> dict[str, str]:
    """Return the versions that were loaded."""
    code = (
        "import json, platform, importlib.metadata as m;"
        "print(json.dumps({'python': platform.python_version(), 'pytest': m.version('pytest')}))"
    )
    ended = subprocess.run(
        [str(python), "-c", code],
        env=_environment(*paths),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(ended.stdout))


def _model() -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def write(records: Sequence[dict[str, Any]], versions: dict[str, str]) -> None:
    """Write the table of what was recorded."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    for line in records:
        line["python"] = line["version"]["python"]
    text = json.dumps({"plugins": versions, "trials": list(records)}, indent=1, sort_keys=True)
    RESULTS.write_text(text + "\n")


def _plugin_versions(environments: Environments, python: str) -> dict[str, str]:
    versions = {}
    for plugin in (*PLUGINS, *FURTHER):
        place = environments.overlay(python, plugin.name, *plugin.needs)
        stem = plugin.name.replace("-", "_")
        (found,) = place.glob(f"{stem}-[0-9]*.dist-info")
        versions[plugin.name] = found.name.removesuffix(".dist-info").removeprefix(f"{stem}-")
    return versions


def main() -> int:
    """Run what is not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--python", action="append", required=True, help="oldest first")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    environments = Environments(asked.work.resolve())
    journal = asked.work / "trials.jsonl"
    lines = journal.read_text().splitlines() if journal.exists() else []
    records = [json.loads(line) for line in lines]
    done = {(line["python"], line["pytest"], tuple(line["plugins"])) for line in records}
    for trial in trials(asked.python):
        if (trial.python, trial.pytest, trial.plugins) in done:
            continue
        tried = record(environments, trial, asked.work.resolve() / "project")
        records.append(tried)
        with journal.open("a") as file:
            file.write(json.dumps(tried) + "\n")
        print(trial.python, trial.pytest, *trial.plugins, "bad" if tried["faults"] else "good")
    if asked.write:
        write(records, _plugin_versions(environments, asked.python[-1]))
    return int(any(line["faults"] for line in records))


if __name__ == "__main__":
    sys.exit(main())
