"""The files under ``deploy/``: images, manifests, and what they promise about the service."""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from pytest_ortbench.cli.serve import command as serve
from pytest_ortbench.core.units import parse_duration
from tests.beside_packages import ROOT, interpreter_beside, run_beside
from tests.environment import FORGOTTEN
from tests.serving.served import looked_up

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def instructions() -> Iterator[tuple[str, str]]:
    """Every instruction of the Dockerfile with its arguments."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


@dataclass
class Image:
    """What the instructions of one target make in folders of this machine, without an engine.

    Attributes:
        context: The folder that is built from.
        variables: Arguments and environment, with the values that paths have here.
        given: The arguments that the build was given, which the recipe's own values give way to.
        entrypoint: Its command.
        command: The arguments that it gets by default.
        check: The command that tells whether it is healthy.
        user: Whom it runs as.
    """

    context: Path
    variables: dict[str, str]
    given: Mapping[str, str]
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    check: list[str] = field(default_factory=list)
    user: str = ""

    def build(self, target: str) -> None:
        """Carry out the instructions of a target and of what it is made from."""
        parents: dict[str, str] = {}
        stages: dict[str, list[tuple[str, str]]] = {"": []}
        name = ""
        for word, rest in instructions():
            if word == "FROM":
                parent, _, name = rest.partition(" AS ")
                parents[name], stages[name] = parent, []
            else:
                stages[name].append((word, rest))
        chain = [target]
        while parents.get(chain[0]) in stages:
            chain.insert(0, parents[chain[0]])
        for stage in chain:
            for word, rest in stages[stage]:
                getattr(self, f"_{word.lower()}")(rest)

    def _filled(self, text: str) -> str:
        names = r"\$\{?(\w+)\}?"
        return re.sub(names, lambda match: self.variables.get(match[1], ""), text)

    def _arg(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self.variables[name] = self.given.get(name, self._filled(value))

    def _env(self, rest: str) -> None:
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            self.variables[name] = self.given.get(name, self._filled(value))

    def _copy(self, rest: str) -> None:
        source, target = self._filled(rest).split()
        Path(target).mkdir(parents=True, exist_ok=True)
        paths = sorted(self.context.glob(source))
        assert paths, source
        for path in paths:
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copy(path, target)

    def _run(self, rest: str) -> None:
        done = subprocess.run(
            ["sh", "-c", rest], env=self.variables, cwd=self.context, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    def _user(self, rest: str) -> None:
        self.user = rest

    def _entrypoint(self, rest: str) -> None:
        self.entrypoint = json.loads(rest)

    def _cmd(self, rest: str) -> None:
        self.command = json.loads(rest)

    def _healthcheck(self, rest: str) -> None:
        self.check = json.loads(rest.partition("CMD ")[2])

    def _expose(self, rest: str) -> None:
        assert rest == "8000"

    def _workdir(self, rest: str) -> None:
        assert rest.startswith("/")


def manifests() -> dict[str, dict[str, Any]]:
    """Every object of the manifests, by its kind."""
    texts = [path.read_text() for path in sorted(KUBERNETES.glob("*.yaml"))]
    return {each["kind"]: each for text in texts for each in yaml.safe_load_all(text)}


def container(kind: str) -> dict[str, Any]:
    """The only container of an object."""
    (only,) = manifests()[kind]["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def test_options_of_the_service_are_known():
    """Options in the manifest, and in the image, are those of ``ortbench serve``."""
    known = {name for parameter in serve.params for name in parameter.opts}
    options = container("Deployment")["args"]
    (entrypoint,) = [
        rest for word, rest in instructions() if word == "ENTRYPOINT" and "serve" in rest
    ]
    options += re.findall(r"--[\w-]+", entrypoint)
    assert len(options) == 6
    assert {option.partition("=")[0] for option in options} <= known


def test_a_pod_has_time_to_answer_what_it_took():
    """The grace period is more than twice the longest answer and the wait for connections."""
    options = dict(option[2:].split("=") for option in container("Deployment")["args"])
    longest_s = sum(parse_duration(options[name], place=name) for name in ("drain", "timeout"))
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > 2 * longest_s


def test_probes_ask_paths_that_the_service_has():
    from pytest_ortbench.serving import app

    source = Path(app.__file__).read_text()
    only = container("Deployment")
    paths = {
        only[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")
    }
    assert paths == {"/v2/health/live", "/v2/health/ready"}
    assert all(f'"{path}"' in source for path in paths)


def test_images_and_pods_are_not_root():
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users == ["10001", "10001"]
    for kind in ("Deployment", "Job"):
        context = manifests()[kind]["spec"]["template"]["spec"]["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, 10001)


@pytest.mark.heavy
@pytest.mark.needs("network")
def test_the_manifests_are_valid(tmp_path):
    """By the schemas of Kubernetes, unknown fields refused."""
    python = interpreter_beside(("kubernetes-validate",))
    program = str(Path(python).with_name("kubernetes-validate"))
    for path in sorted(KUBERNETES.glob("*.yaml")):
        run_beside(program, "--strict", str(path), folder=tmp_path)
    (tmp_path / "wrong.yaml").write_text(
        (KUBERNETES / "service.yaml").read_text().replace("replicas: 2", "replica: 2")
    )
    wrong = run_beside(program, "--strict", "wrong.yaml", folder=tmp_path, may_fail=True)
    assert wrong.returncode != 0


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to build from: a wheel of the product, and a model."""
    folder = tmp_path_factory.mktemp("context")
    (folder / "models").mkdir()
    onnx.save(looked_up(), folder / "models" / "model.onnx")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


def built(target: str, context: Path, folder: Path) -> Image:
    """Build a target with its paths below a folder, in an environment that holds nothing else."""
    (folder / "bin").mkdir(parents=True)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (folder / "bin" / "python").symlink_to(base)
    given = {name: str(folder / name.lower()) for name in ("WHEELS", "VENV", "MODELS")}
    given["ORTBENCH_CACHE"] = str(folder / "cache")
    # Where an index of packages has to be named, its variables are part of the machine.
    index = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_", "REQUESTS_"))
    }
    start = {**index, "PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}
    assert not set(start) & set(FORGOTTEN)
    image = Image(context, start, given)
    image.build(target)
    return image


@pytest.mark.heavy
@pytest.mark.needs("network")
def test_the_image_of_the_service_serves(context, tmp_path):
    """Its steps, entry point and health check run without a container engine."""
    image = built("service", context, tmp_path)
    process = subprocess.Popen(
        [*image.entrypoint, "--host=127.0.0.1", "--port=0"],
        env=image.variables,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[3].split(":")[2].split("/")[0])
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", "/v2/models/model/ready")
            assert connection.getresponse().status == 200
        check = [word.replace(":8000/", f":{port}/") for word in image.check]
        assert subprocess.run(check, env=image.variables, check=False).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.communicate()
    assert (
        subprocess.run(
            check, env=image.variables, stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 1
    )


@pytest.mark.heavy
@pytest.mark.needs("network")
def test_the_image_of_the_runner_measures(context, tmp_path):
    """It writes a document of the models that are mounted."""
    image = built("runner", context, tmp_path)
    work = tmp_path / "work"
    shutil.copytree(context / "models", work / "models")
    environment = {**image.variables, "ORTBENCH_MACHINE_LOCK": str(tmp_path / "lock")}
    command = [*image.entrypoint, *image.command, "--ort-time=0.2", "--ort-workers=1"]
    done = subprocess.run(
        command, env=environment, cwd=work, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert len(list((work / "results").glob("*/run.json"))) == 1
