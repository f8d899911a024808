"""Which run of several machines is gone on with, and with which arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.cli.fleet_folder import FOLDER, new_or_earlier
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts.facts import FleetRun, ShardedRun
from pytest_ortbench.fleet.hosts.records import write_record

SENT, COLLECTED = "20260101T000000Z-a", "20260102T000000Z-b"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results with a run of machines, and documents that were collected out of a folder later."""
    for tag, arguments in ((SENT, ("x",)), (COLLECTED, ())):
        write_record(FleetRun(tag=tag, arguments=arguments), tmp_path / FOLDER / tag)
    return tmp_path


@pytest.mark.parametrize(("resume", "arguments"), [("latest", ()), ("latest", ("x",)), (SENT, ())])
def test_the_run_that_sent_something_is_gone_on_with(
    results: Path, resume: str, arguments: tuple[str, ...]
) -> None:
    run = new_or_earlier(FleetRun, resume, arguments, results, place="fleet run")
    assert (run.tag, run.arguments) == (SENT, ("x",))


@pytest.mark.parametrize(
    ("resume", "arguments", "place"),
    [
        (None, (), "fleet run"),
        (None, ("x", "--ort-results=elsewhere"), "fleet run"),
        (None, ("--ort-results", "elsewhere"), "fleet run"),
        (None, ("x", "--ort-resume"), "fleet run"),
        (COLLECTED, (), "--resume"),
        ("latest", ("y",), "--resume"),
        ("../../etc", (), "--resume"),
    ],
)
def test_what_can_not_be_gone_on_with_is_refused(
    results: Path, resume: str | None, arguments: tuple[str, ...], place: str
) -> None:
    with pytest.raises(UsageError) as refused:
        new_or_earlier(FleetRun, resume, arguments, results, place="fleet run")
    assert (refused.value.place, bool(refused.value.hint)) == (place, True)


@pytest.mark.parametrize("inside", ["", "fleet.json", "board"])
def test_a_path_of_the_run_names_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    for written in (results / FOLDER / SENT / inside, Path(FOLDER, SENT, inside)):
        monkeypatch.chdir(results)
        run = new_or_earlier(FleetRun, str(written), (), results, place="fleet run")
        assert run.tag == SENT


def test_a_run_of_other_results_is_named_with_their_folder(results: Path) -> None:
    with pytest.raises(UsageError) as refused:
        new_or_earlier(
            FleetRun, f"{results / FOLDER / SENT}/", (), results / "empty", place="fleet run"
        )
    assert f"--resume={SENT} --results={results}" in refused.value.hint


def test_a_wrong_tag_gets_the_nearest_and_that_of_another_command_none(results: Path) -> None:
    write_record(ShardedRun(tag="x-c", arguments=("x",)), results / FOLDER / "x-c")
    with pytest.raises(UsageError, match=SENT):
        new_or_earlier(FleetRun, SENT[:-1], (), results, place="fleet run")
    with pytest.raises(UsageError) as refused:
        new_or_earlier(FleetRun, "x-c", (), results, place="fleet run")
    assert refused.value.place == "--resume"


def test_a_folder_for_results_is_left_out_with_its_option(results: Path) -> None:
    for arguments in (("--ort-results", "a b", "x"), ("--ort-results=a b", "x")):
        with pytest.raises(UsageError) as refused:
            new_or_earlier(FleetRun, None, arguments, results, place="fleet run")
        assert "a b" in str(refused.value)
        assert in_shell(["a b"]) in refused.value.hint


def test_the_option_that_stands_for_one_of_pytest_is_named(results: Path) -> None:
    for option, own in (("--ort-results=x", "--results=x"), ("--ort-resume", "--resume=latest")):
        with pytest.raises(UsageError) as refused:
            new_or_earlier(FleetRun, None, (option,), results, place="fleet run")
        assert own in refused.value.hint


def test_without_an_earlier_run_none_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        new_or_earlier(FleetRun, "latest", (), tmp_path, place="fleet run")
    assert refused.value.place == "--resume"


def test_only_runs_that_measured_are_proposed(results: Path) -> None:
    """Documents that were collected out of a folder have a record, too."""
    for wrong in (COLLECTED, "20260102T000000Z-c"):
        with pytest.raises(UsageError) as refused:
            new_or_earlier(FleetRun, wrong, (), results, place="fleet run")
        assert SENT in refused.value.hint
        assert COLLECTED not in refused.value.hint
    (results / FOLDER / SENT / "fleet.json").unlink()
    with pytest.raises(UsageError) as refused:
        new_or_earlier(FleetRun, COLLECTED, (), results, place="fleet run")
    assert "--resume=" not in refused.value.hint
