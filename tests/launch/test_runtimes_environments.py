"""Environments: made once, checked, kept by content, never half."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import onnxruntime
import pytest

from pytest_ortbench.core.case import Runtime
from pytest_ortbench.core.errors import WorkerError
from pytest_ortbench.core.outcome import Failure, RuntimeInfo
from pytest_ortbench.launch.launcher import ProcessLauncher
from pytest_ortbench.runtimes.environment_facts import check_works
from pytest_ortbench.runtimes.environments import Environments
from pytest_ortbench.runtimes.installer import InstallError, UvInstaller, find_uv
from pytest_ortbench.runtimes.interpreters import Interpreter
from pytest_ortbench.runtimes.specs import RequirementList, parse_spec
from pytest_ortbench.schema.case_questions import ProfilePlacement, TimeBlock
from tests.launch.cases import case_of, relu
from tests.launch.fake_installer import HERE, FakeInstaller, stand_in_check

pytestmark = pytest.mark.live


def listed(text: str) -> RequirementList:
    """A requirement list as it is typed."""
    parsed = parse_spec(text, ())
    assert isinstance(parsed, RequirementList)
    return parsed


class Made(Environments):
    """Environments in a test's folder, with the stand-in; keeps what was said."""

    def __init__(
        self,
        folder: Path,
        installer: FakeInstaller | None = None,
        interpreters: Sequence[Interpreter] = (HERE,),
        check: Callable[[Path], RuntimeInfo] = stand_in_check,
    ) -> None:
        self.said: list[str] = []
        self.installer = installer or FakeInstaller()
        super().__init__(
            folder,
            notify=self.said.append,
            installer=lambda: self.installer,
            interpreters=lambda: interpreters,
            check=check,
        )


def failure_of(environments: Environments, text: str, *, python: str = "") -> Failure:
    """Why an environment can't be made."""
    with pytest.raises(WorkerError) as caught:
        environments.ensure(listed(text), python=python)
    failure = caught.value.failure
    assert (failure.kind, failure.phase) == ("unavailable", "start")
    # Nothing that is half done stays.
    left = (
        {path.name for path in environments.folder.iterdir()}
        if environments.folder.is_dir()
        else set()
    )
    assert {name for name in left if name.startswith(".making")} == set()
    return failure


def test_an_environment_is_made_once_and_works(tmp_path: Path) -> None:
    environments = Made(tmp_path / "cache", check=check_works)
    made = environments.ensure(listed("onnxruntime==1.20.1"))
    assert made.manifest.label == "onnxruntime-1.20.1"
    assert made.folder.name == f"onnxruntime-1.20.1-{made.manifest.digest}"
    assert made.manifest.requests == (
        f"onnxruntime==1.20.1 for Python {sys.version_info[0]}.{sys.version_info[1]}",
    )
    assert made.manifest.packages == {"numpy": "2.4.6", "onnxruntime": "1.20.1"}
    assert made.manifest.onnxruntime == onnxruntime.__version__
    assert made.manifest.size_bytes > 0
    for part in (" onnxruntime-1.20.1 ", f"Python {HERE.text} ", "stand-in"):
        assert part in environments.said[0]
    assert environments.said[1].startswith("made onnxruntime-1.20.1: ")
    # It was renamed when it was complete; its interpreter is right all the same.
    code = "import sys; print(sys.prefix)"
    done = subprocess.run(
        [made.python, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == made.folder
    launcher = ProcessLauncher()
    runtime = Runtime(label="made", command=(str(made.python),), isolated=True)
    assert launcher.inspect(runtime).distributions == {"onnxruntime": "1.20.1"}
    launcher.close()

    later = Made(tmp_path / "cache")
    assert later.ensure(listed("onnxruntime == 1.20.1")) == made
    assert later.installer.made == []
    assert later.said == []


def test_lists_that_lead_to_the_same_packages_share_one(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    pinned = environments.ensure(listed("onnxruntime==1.20.1"))
    newest = environments.ensure(listed("onnxruntime"))
    assert newest.folder == pinned.folder
    assert len(newest.manifest.requests) == 2
    assert [each.folder for each in environments.all()] == [pinned.folder]
    # Both are known from here on, without asking any index.
    assert environments.ensure(listed("onnxruntime")) == newest
    assert len(environments.installer.made) == 2


def test_another_version_is_another_environment(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    environments.ensure(listed("onnxruntime==1.20.1"))
    environments.ensure(listed("onnxruntime==1.32.0+plugin==2"))
    assert [each.manifest.label for each in environments.all()] == [
        "onnxruntime-1.20.1",
        "onnxruntime-1.32.0+plugin-2",
    ]


def test_an_old_version_gets_numpy_1(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    made = environments.ensure(listed("onnxruntime==1.18.1"))
    assert environments.installer.installed == [["onnxruntime==1.18.1", "numpy<2"]]
    assert made.manifest.packages["numpy"] == "1.26.4"


def test_an_old_version_that_was_not_pinned_gets_numpy_1(tmp_path: Path) -> None:
    environments = Made(tmp_path, FakeInstaller(newest={"onnxruntime": "1.18.1"}))
    made = environments.ensure(listed("onnxruntime<1.19"))
    assert environments.installer.installed == [
        ["onnxruntime<1.19"],
        ["onnxruntime<1.19", "numpy<2"],
    ]
    assert made.manifest.packages == {"numpy": "1.26.4", "onnxruntime": "1.18.1"}
    assert made.manifest.label == "onnxruntime-1.18.1"


def test_the_users_own_numpy_is_left_alone(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    environments.ensure(listed("onnxruntime==1.18.1+numpy==1.24.4"))
    assert environments.installer.installed == [["onnxruntime==1.18.1", "numpy==1.24.4"]]


# -- what interrupts it ---------------------------------------------------------------------------


def test_an_interrupted_creation_leaves_nothing(tmp_path: Path) -> None:
    environments = Made(tmp_path, FakeInstaller(interrupt=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        environments.ensure(listed("onnxruntime==1.20.1"))
    assert environments.all() == []
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    environments.installer.interrupt = None
    assert environments.ensure(listed("onnxruntime==1.20.1")).python.exists()


_KILLED = """
import sys, time
from pathlib import Path
from tests.launch.fake_installer import FakeInstaller
from tests.launch.test_runtimes_environments import Made, listed

class Slow(FakeInstaller):
    def install(self, folder, requirements):
        super().install(folder, requirements)
        Path(sys.argv[1], "reached").touch()
        time.sleep(6000)

Made(Path(sys.argv[1], "cache"), Slow()).ensure(listed("onnxruntime==1.20.1"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_creation_is_never_used_and_swept_later(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path)], cwd=root)
    deadline = time.monotonic() + 600
    while not (tmp_path / "reached").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    environments = Made(tmp_path / "cache")
    (left,) = environments.folder.glob(".making-*")
    assert environments.all() == []
    made = environments.ensure(listed("onnxruntime==1.20.1"))
    assert environments.installer.made == [sys.version_info[1]]
    assert made.folder != left
    assert not left.exists()


def test_an_environment_whose_python_is_gone_is_made_again(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    made = environments.ensure(listed("onnxruntime==1.20.1"))
    made.python.unlink()
    made.python.symlink_to(tmp_path / "removed")
    assert environments.all() == []
    again = environments.ensure(listed("onnxruntime==1.20.1"))
    assert again.folder == made.folder
    assert again.python.exists()
    assert len(environments.installer.made) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 99}'])
def test_a_folder_without_a_whole_manifest_is_no_environment(tmp_path: Path, content: str) -> None:
    environments = Made(tmp_path)
    made = environments.ensure(listed("onnxruntime==1.20.1"))
    (made.folder / "ortbench.json").write_text(content)
    assert environments.all() == []


def test_another_platforms_environment_is_not_used(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    made = environments.ensure(listed("onnxruntime==1.20.1"))
    manifest = made.folder / "ortbench.json"
    plain = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**plain, "platform": "linux-riscv64"}))
    environments.ensure(listed("onnxruntime==1.20.1"))
    assert len(environments.installer.made) == 2


def test_two_at_a_time_make_one(tmp_path: Path) -> None:
    both = [Made(tmp_path), Made(tmp_path)]
    found: list[Path] = []

    def ensure(environments: Made) -> None:
        found.append(environments.ensure(listed("onnxruntime==1.20.1")).folder)

    threads = [threading.Thread(target=ensure, args=(each,)) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert len(found) == 2
    assert len(set(found)) == 1
    assert sum(len(each.installer.made) for each in both) == 1


def test_removing(tmp_path: Path) -> None:
    environments = Made(tmp_path)
    made = environments.ensure(listed("onnxruntime==1.20.1"))
    environments.ensure(listed("onnxruntime==1.32.0"))
    environments.remove(made)
    assert [each.manifest.label for each in environments.all()] == ["onnxruntime-1.32.0"]
    assert not made.folder.exists()


# -- reasons --------------------------------------------------------------------------------------


def python(minor: int) -> Interpreter:
    """A Python of another version than it has."""
    return Interpreter(path=sys.executable, version=(3, minor, 5))


def built_for(*minors: int) -> InstallError:
    return InstallError("no wheels with a matching tag", pythons=minors)


def test_the_python_that_fits_is_taken(tmp_path: Path) -> None:
    installer = FakeInstaller(refuse={13: built_for(8, 9, 10, 11)})
    here = [python(13), python(14), python(12), python(11), python(10)]
    environments = Made(tmp_path, installer, here)
    environments.ensure(listed("onnxruntime==1.15.1"))
    assert installer.made == [13, 11]


@pytest.mark.parametrize(
    ("minors", "here", "text", "reason", "hint"),
    [
        (
            (8, 9, 10, 11),
            (13, 12),
            "onnxruntime==1.15.1",
            "its packages are built for Python 3.8 to 3.11, and none of these is here "
            "(found 3.13.5, 3.12.5)",
            "uv python install 3.11",
        ),
        (
            (11, 12, 13, 14),
            (10,),
            "onnxruntime==1.32.0",
            "its packages are built for Python 3.11 to 3.14, and none of these is here "
            "(found 3.10.5)",
            "pyenv install 3.14",
        ),
        (
            (7, 8, 9),
            (11,),
            "onnxruntime==1.8.0",
            "its packages are built for Python 3.7 to 3.9, and the oldest that can be measured is "
            "3.10",
            "Write a newer version of the package",
        ),
    ],
)
def test_the_python_that_is_missing_is_named(
    tmp_path: Path,
    minors: tuple[int, ...],
    here: tuple[int, ...],
    text: str,
    reason: str,
    hint: str,
) -> None:
    installer = FakeInstaller(refuse={minor: built_for(*minors) for minor in here})
    failure = failure_of(Made(tmp_path, installer, [python(minor) for minor in here]), text)
    assert failure.message == f"the runtime {text} can't be made: {reason}"
    assert hint in failure.hint


def test_the_python_that_was_asked_for(tmp_path: Path) -> None:
    here = [python(13), python(12), python(11)]
    environments = Made(tmp_path, FakeInstaller(refuse={12: built_for(10, 11)}), here)
    environments.ensure(listed("onnxruntime"), python="3.11")
    assert environments.installer.made == [11]
    missing = failure_of(environments, "onnxruntime", python="3.10")
    assert "Python 3.10 " in missing.message
    assert "3.13.5, 3.12.5, 3.11.5" in missing.message
    misfit = failure_of(environments, "onnxruntime==1.15.1", python="3.12")
    assert re.findall(r"\b3\.\d+", misfit.message) == ["3.10", "3.11", "3.12"]
    none = failure_of(environments, "onnxruntime", python=str(tmp_path / "nowhere"))
    assert str(tmp_path / "nowhere") in none.message


def test_what_no_other_python_would_change_is_said_at_once(tmp_path: Path) -> None:
    error = InstallError("there is no version of onnxruntime==99", hint="Look again")
    environments = Made(tmp_path, FakeInstaller(refuse={13: error}), [python(13), python(12)])
    failure = failure_of(environments, "onnxruntime==99")
    assert failure.message.endswith(f": {error.text}")
    assert failure.hint == error.hint
    assert environments.installer.made == [13]


def test_an_installer_that_names_no_python_makes_us_try_all(tmp_path: Path) -> None:
    error = InstallError("Could not find a version", depends_on_python=True)
    installer = FakeInstaller(refuse={13: error, 12: error})
    environments = Made(tmp_path, installer, [python(13), python(12), python(11)])
    assert environments.ensure(listed("onnxruntime==1.15.1")).python.exists()
    assert installer.made == [13, 12, 11]
    installer.refuse[11] = error
    failure = failure_of(environments, "onnxruntime==1.14.1")
    assert "3.13.5, 3.12.5, 3.11.5" in failure.message


def test_two_distributions_in_one_runtime_are_refused(tmp_path: Path) -> None:
    failure = failure_of(Made(tmp_path), "onnxruntime==1.20.1+onnxruntime-openvino==1.24.1")
    for requirement in ("onnxruntime==1.20.1", "onnxruntime-openvino==1.24.1"):
        assert requirement in failure.message
    assert "comma" in failure.hint


def test_packages_that_bring_no_onnxruntime(tmp_path: Path) -> None:
    failure = failure_of(Made(tmp_path), "onnxruntime-plugin==1")
    assert (failure.kind, "ONNX Runtime" in failure.message) == ("unavailable", True)


def test_an_onnxruntime_that_does_not_work_is_not_kept(tmp_path: Path) -> None:
    class Broken(FakeInstaller):
        def install(self, folder: Path, requirements: Sequence[str]) -> None:
            super().install(folder, requirements)
            (link,) = folder.glob("**/site-packages/onnxruntime")
            link.unlink()
            link.mkdir()
            (link / "__init__.py").write_text("__version__ = '0'")

    environments = Made(tmp_path, Broken(), check=check_works)
    failure = failure_of(environments, "onnxruntime==1.20.1")
    assert "InferenceSession" in failure.message
    assert environments.all() == []


def test_a_cache_that_can_not_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    failure = failure_of(Made(tmp_path / "file" / "cache"), "onnxruntime")
    assert str(tmp_path / "file" / "cache") in failure.message
    assert "ORTBENCH_CACHE" in failure.hint


# -- the real thing -------------------------------------------------------------------------------


@pytest.mark.needs("network")
def test_a_real_old_version_is_made_and_measured(tmp_path: Path) -> None:
    uv = find_uv()
    if not uv:
        pytest.skip("needs uv: pip install pytest-ortbench[runtimes]")
    said: list[str] = []
    environments = Environments(
        tmp_path / "cache", notify=said.append, installer=lambda: UvInstaller(uv)
    )
    try:
        made = environments.ensure(listed("onnxruntime==1.17.1"))
    except WorkerError as error:
        if "none of these is here" in error.failure.message:
            pytest.skip(error.failure.message)
        raise
    assert made.manifest.onnxruntime == "1.17.1"
    assert made.manifest.numpy.startswith("1.")
    runtime = Runtime(label="old", command=(str(made.python),), isolated=True)
    launcher = ProcessLauncher()
    case = case_of(relu(tmp_path / "relu.onnx"), runtime=runtime)
    worker = launcher.open(case, worker=0, deadline=None)
    assert worker.opened.info.version == "1.17.1"
    assert worker.opened.info.distributions == {"onnxruntime": "1.17.1"}
    assert len(worker.ask(TimeBlock(iterations=5)).durations_ns) == 5
    assert worker.ask(ProfilePlacement()).executed == {"CPUExecutionProvider": 1}
    worker.close()
    launcher.close()
    shutil.rmtree(made.folder)


@pytest.mark.needs("network")
def test_a_real_old_version_beside_numpy_2_is_refused_with_both_versions(tmp_path: Path) -> None:
    uv = find_uv()
    if not uv or sys.version_info[:2] > (3, 12):
        pytest.skip("needs uv, and a Python that has both packages")
    environments = Environments(
        tmp_path / "cache", notify=lambda _: None, installer=lambda: UvInstaller(uv)
    )
    failure = failure_of(environments, "onnxruntime==1.17.1+numpy==2.1.0")
    for part in ("onnxruntime 1.17.1 ", "numpy 2.1.0 "):
        assert part in failure.message
    assert environments.all() == []
