from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.runtimes.environments import Environments
from tests.launch.fake_installer import HERE, FakeInstaller, stand_in_check


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeInstaller:
    """The stand-in that makes the tool's environments, in the test's own cache."""
    from pytest_ortbench.cli.terminal import warn

    installer = FakeInstaller(newest={"onnxruntime": "1.32.0"})
    environments = Environments(
        tmp_path / "cache",
        notify=warn,
        installer=lambda: installer,
        interpreters=lambda: (HERE,),
        check=stand_in_check,
    )
    monkeypatch.setattr("pytest_ortbench.cli.runtimes._environments", lambda: environments)
    return installer


@pytest.mark.live
def test_environments_are_made_listed_and_removed(tool, installer, tmp_path):
    created = tool("runtimes", "create", "onnxruntime==1.20.1", "onnxruntime")
    assert created.code == 0
    lines = created.out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "onnxruntime-1.20.1",
        "onnxruntime-1.32.0",
    ]
    assert all(Path(line.partition(": ")[2]).exists() for line in lines)
    assert "onnxruntime-1.20.1 " in created.err

    listed = tool("runtimes")
    assert listed.code == 0
    assert tool("runtimes", "list").out == listed.out
    rows = [line.split() for line in listed.out.splitlines()[2:-1]]
    assert [row[0] for row in rows] == ["current", "onnxruntime-1.20.1", "onnxruntime-1.32.0"]
    assert rows[1][1:3] == ["1.2.3", HERE.text]
    assert "onnxruntime==1.20.1; numpy 2.4.6; " in listed.out
    assert listed.out.splitlines()[-1].endswith(f" {tmp_path / 'cache'}")

    removed = tool("runtimes", "remove", "onnxruntime-1.20.1")
    assert removed.code == 0
    assert removed.out.split()[:4] == ["removed", "onnxruntime-1.20.1,", "Python", f"{HERE.text}:"]
    assert "onnxruntime-1.20.1" not in tool("runtimes").out
    assert tool("runtimes", "remove", "--all").out.startswith("removed onnxruntime-1.32.0")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_what_the_project_configures_is_listed(tool, installer, tmp_path):
    (tmp_path / "ortbench.toml").write_text(
        '[runtimes.board]\ncommand = ["ssh", "board", "python3"]\n'
        '[runtimes.pinned]\ncommand = ["nice"]\nrequirements = "onnxruntime==1.20.1"\n'
    )
    lines = {line.split()[0]: line for line in tool("runtimes").out.splitlines()}
    assert lines["board"].split()[-3:] == ["ssh", "board", "python3"]
    assert lines["pinned"].endswith("nice onnxruntime==1.20.1")
    configured, absent = (tool("runtimes", "remove", name).error for name in ("board", "gone"))
    assert configured.message.replace("board", "gone") != absent.message
    assert "[runtimes.board] in ortbench.toml" in configured.hint


@pytest.mark.live
def test_what_can_not_be_made_is_said(tool, installer):
    from pytest_ortbench.runtimes.installer import InstallError

    installer.refuse[HERE.minor[1]] = InstallError("there is no version 99", hint="Look again")
    ended = tool("runtimes", "create", "onnxruntime==99")
    assert ended.code == 3
    assert ended.out == ""
    refusal = installer.refuse[HERE.minor[1]]
    assert ("onnxruntime==99" in ended.err, str(refusal) in ended.err) == (True, True)
    assert ended.err.endswith(f"{refusal.hint}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create", "torch"], "SPEC: 'torch' is neither a configured runtime nor"),
        (["remove"], "no runtime is named"),
        (["remove", "x", "--all"], "'x' and --all are both given"),
        (["remove", "onnxruntime-1"], "LABEL: the environment 'onnxruntime-1' does not exist"),
        (["creat"], "No such command 'creat'"),
    ],
)
def test_a_wrong_call_is_one_line(tool, installer, words, message):
    ended = tool("runtimes", *words)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_the_environments_lie_in_the_cache(monkeypatch, tmp_path):
    from pytest_ortbench.cli.runtimes import _environments

    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path))
    assert _environments().folder == tmp_path / "runtimes"
