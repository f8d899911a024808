"""What every project pays that merely has the plugin installed. Lists, not seconds.

The seconds are in ``benchmarks/plugin_start.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ortbench.passes.registry import option_groups

pytestmark = pytest.mark.live

#: Each of these takes longer to import than the plugin may cost, or starts something.
HEAVY = (
    "click",
    "jinja2",
    "jsonschema",
    "matplotlib",
    "msgspec",
    "numpy",
    "onnx",
    "onnxruntime",
    "psutil",
    "pynvml",
    "rich",
    "scipy",
    "tomli",
    "tomllib",
)
#: Packages of ours that belong to measuring; the front ends import them when they need them.
LATER = (
    "analysis",
    "convert",
    "engine",
    "fleet",
    "gate",
    "launch",
    "models",
    "report",
    "runtimes",
    "schema",
    "store",
    "worker",
)

#: Modules of ours that a project without tests of ours loads: hooks, options, and no more.
FOR_EVERY_PROJECT = (
    "plugin.case_options",
    "core",
    "core.dotted_name",
    "core.model_spec",
    "core.option",
    "core.placing",
    "core.version",
    "passes",
    "passes.registry",
    "plugin.option_sources",
    "plugin.options",
    "plugin",
    "plugin.named_functions",
    "plugin.controllers_turn",
    "plugin.foreign_logs",
    "plugin.hookspec",
    "plugin.model_files",
    "plugin.own_tests",
    "plugin.taken",
)


def _loaded_by(code: str) -> set[str]:
    """Names of the modules that ``code`` loads on top of pytest itself."""
    script = (
        "import json, sys, pytest\n"
        "before = set(sys.modules)\n"
        f"{code}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)), file=sys.__stdout__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    loaded: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(loaded)


def _heavy_among(modules: set[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in modules}
    ours = {f"pytest_ortbench.{name}" for name in LATER}
    return (tops & set(HEAVY)) | (modules & ours)


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    loaded = _loaded_by("import pytest_ortbench.plugin")
    assert "pytest_ortbench.plugin" in loaded
    assert _heavy_among(loaded) == set()


def test_a_run_without_tests_of_ours_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_it(): pass\n", encoding="utf-8")
    (tmp_path / "model.onnx").write_bytes(b"")
    loaded = _loaded_by(
        "from importlib import metadata\n"
        "names = {e.name for e in metadata.entry_points(group='pytest11')}\n"
        "arguments = [] if 'ortbench' in names else ['-p', 'pytest_ortbench.plugin']\n"
        # Other installed plugins may load what they like.
        "blocked = [f'-pno:{name}' for name in sorted(names - {'ortbench'})]\n"
        f"assert pytest.main([*arguments, *blocked, '-q', '-p', 'no:cacheprovider', "
        f"'--rootdir', {str(tmp_path)!r}, {str(tmp_path)!r}]) == 0"
    )
    assert {name for name in loaded if name.startswith("pytest_ortbench")} == {
        "pytest_ortbench",
        *(f"pytest_ortbench.{name}" for name in FOR_EVERY_PROJECT),
        *(group.__module__ for group in option_groups()),
    }
    assert _heavy_among(loaded) == set()


def test_the_check_sees_a_heavy_import() -> None:
    assert _heavy_among(_loaded_by("import rich.console, pytest_ortbench.store")) == {
        "rich",
        "pytest_ortbench.store",
    }
