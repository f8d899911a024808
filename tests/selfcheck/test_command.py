"""The command: what it says, keeps and ends with, and what a later run makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.cli import selfcheck
from pytest_ortbench.cli.terminal import ExitCode
from pytest_ortbench.selfcheck.check import Check, LineFinding, passed, unchecked, wrong
from pytest_ortbench.store.certificates import stored_certificates
from tests.cli.conftest import Ended, tool  # noqa: F401 - a fixture

Tool = Callable[..., Ended]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Put other checks in place of all, and keep certificates in the test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def put(**findings: LineFinding) -> None:
        made: tuple[Check[Any], ...] = tuple(
            Check(
                name=name,
                about=name,
                look=lambda _: None,
                judge=lambda _facts, _provider, finding=finding: finding,
                in_short=name != "long",
            )
            for name, finding in findings.items()
        )
        monkeypatch.setattr(selfcheck, "all_checks", lambda: made)

    return put


FINE, BAD, OPEN = passed("a", "well"), wrong("b", "not well"), unchecked("c", "nobody knows")


@pytest.mark.live
@pytest.mark.parametrize(
    ("findings", "code"),
    [
        ({"one": FINE, "two": OPEN}, ExitCode.FINE),
        ({"one": FINE, "two": BAD}, ExitCode.LIMIT_FAILED),
        ({"one": OPEN}, ExitCode.NOTHING),
    ],
    ids=["fine", "wrong", "nothing"],
)
def test_what_it_ends_with(
    tool: Tool,  # noqa: F811
    checks: Callable[..., None],
    findings: dict[str, LineFinding],
    code: ExitCode,
) -> None:
    checks(**findings)
    ended = tool("selfcheck", "--providers=cpu")
    assert ended.code == code
    # What proves nothing is not kept.
    kept = [[line.verdict for line in entry.lines] for entry in stored_certificates()]
    told = [finding.verdict for finding in findings.values()]
    assert kept == ([] if code == ExitCode.NOTHING else [told])


@pytest.mark.live
def test_a_later_run_on_this_machine_has_the_certificate(
    pytester: pytest.Pytester,
    tool: Tool,  # noqa: F811
    checks: Callable[..., None],
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.json"
    checks(one=FINE, long=BAD)
    assert tool("selfcheck", "--providers=cpu", "--short").code == ExitCode.FINE
    pytester.runpytest(
        "--pyargs", "pytest_ortbench.suites", "-k", "latency", "--ort-models=builtin:canary",
        "--ort-time=0.1", "--ort-workers=1", f"--ort-json={path}", "-p", "no:cacheprovider",
    )  # fmt: skip
    run = json.loads(path.read_bytes())
    [certificate] = run["certificates"]
    assert (certificate["provider"], certificate["short"]) == ("cpu", True)
    assert [line["check"] for line in certificate["lines"]] == ["one"]


@pytest.mark.live
def test_a_provider_that_is_not_here_is_said_and_proves_nothing(
    tool: Tool,  # noqa: F811
    checks: Callable[..., None],
) -> None:
    checks(one=FINE)
    ended = tool("selfcheck", "--providers=cpu,cuda", "--only=one", "--json=out.json")
    assert ended.code == ExitCode.NOTHING
    assert stored_certificates() == []
    [certificate] = json.loads(Path("out.json").read_bytes())
    assert certificate["provider"] == "cpu"


def test_a_file_that_can_not_be_written_is_said_before_anything_is_checked(
    tool: Tool,  # noqa: F811
    checks: Callable[..., None],
    tmp_path: Path,
) -> None:
    checks(one=FINE)
    file = tmp_path / "file"
    file.touch()
    error = tool("selfcheck", "--providers=cpu", f"--json={file / 'c.json'}").error
    assert error.place == "--json"


def test_a_check_that_does_not_exist(tool: Tool) -> None:  # noqa: F811
    error = tool("selfcheck", "--only=lop").error
    assert (error.place, "loop" in error.hint) == ("--only", True)
