"""Real files, named alone: the smallest in every run, all of them in the heavy tier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.models.catalogue import shipped_catalogue
from pytest_ortbench.session import Session
from tests.bare_files.catalogue_forms import rows_of
from tests.bare_files.driver import RESULTS, ROUNDS, fed, fetched, record_of
from tests.bare_files.files import bare_files

TABLE = json.loads((RESULTS / "table.json").read_text(encoding="utf-8"))
CATALOGUE = json.loads((RESULTS / "catalogue.json").read_text(encoding="utf-8"))

#: What nobody would ship a file of.
_CONDEMNED = frozenset({"INACCURATE", "NONFINITE", "EMPTY", "NAN-INPUTS"})
#: Decibels that two forms of a model may be apart.
_APART_DB = 3.0


def test_the_manifest_has_every_kind() -> None:
    files = bare_files().values()
    assert len(files) >= 20
    assert {file.kind for file in files} >= {
        *("speech", "text", "tabular", "detection", "segmentation", "embedding"),
        *("chemistry", "medicine"),
    }
    assert all(file.licence and file.registry in ("PyPI", "npm") for file in files)
    assert all(any(sign in file.package[1:] for sign in ("==", "@")) for file in files)


@pytest.mark.parametrize("record", TABLE, ids=[record["name"] for record in TABLE])
def test_what_was_recorded_is_what_is_owed(record: dict[str, Any]) -> None:
    assert record["status"] == "measured"
    assert not _CONDEMNED & set(record["flags"])
    assert all(entry["why"] for entry in record["fed"])
    if len(record["ratios"]) >= ROUNDS:
        assert record["ratio"] == pytest.approx(1, abs=0.05)


def test_every_file_was_recorded() -> None:
    assert [record["name"] for record in TABLE] == list(bare_files())
    assert {row["model"] for row in CATALOGUE} == set(shipped_catalogue())


@pytest.mark.parametrize(
    "row", CATALOGUE, ids=[f"{row['model']}-{row['precision']}" for row in CATALOGUE]
)
def test_a_file_of_the_catalogue_is_fed_and_judged_as_its_name(row: dict[str, Any]) -> None:
    assert_alike(row)
    if row["precision"] == "native":
        assert not _CONDEMNED & {*row["file"]["flags"], *row["anew"]["flags"]}
    assert row["anew"]["status"] == row["zoo"]["status"]
    if row["anew"]["status"] != "measured":
        return
    for form in {"anew", "stripped"} & row.keys():
        # The graph alone tells the same class of sizes, and comes to the same verdict.
        for name, shape in row["zoo_fed"].items():
            for size, other in zip(shape, row[f"{form}_fed"][name], strict=True):
                assert 0.5 <= other / size <= 2
        assert row[form]["flags"] == row["zoo"]["flags"]
    assert row["anew"]["sqnr_db"] == pytest.approx(row["zoo"]["sqnr_db"], abs=_APART_DB)


def assert_alike(row: dict[str, Any]) -> None:
    """A copy of a file is what the catalogue's name is: sizes, outcome, flags, decibels."""
    assert row["file_fed"] == row["zoo_fed"]
    name, file = row["zoo"], row["file"]
    assert (file["status"], file["flags"]) == (name["status"], name["flags"])
    if name["sqnr_db"] is not None:
        assert file["sqnr_db"] == pytest.approx(name["sqnr_db"], abs=_APART_DB)


@pytest.mark.live
@pytest.mark.needs("network")
def test_the_smallest_is_measured_without_an_option(tmp_path: Path) -> None:
    with Session(tmp_path, notify=lambda _: None, named_from=tmp_path) as session:
        record = record_of(bare_files()["swift-f0"], session, tmp_path, rounds=0)
    assert (record["status"], record["flags"], record["items"]) == ("measured", [], 1)
    shapes = {entry["name"]: entry["shape"] for entry in record["fed"]}
    assert shapes == {"audio": [1, 16_000], "fmin": [], "fmax": []}


@pytest.mark.live
@pytest.mark.needs("network")
def test_a_copy_of_a_small_model_of_the_catalogue_is_that_model(tmp_path: Path) -> None:
    with Session(tmp_path, notify=lambda _: None, named_from=tmp_path) as session:
        (row,) = rows_of(
            "rapidocr-cls",
            session,
            tmp_path,
            precisions=("int8-dynamic",),
            forms=("zoo", "file"),
        )
    assert_alike(row)


@pytest.mark.heavy
@pytest.mark.needs("network")
@pytest.mark.parametrize("record", TABLE, ids=[record["name"] for record in TABLE])
def test_every_file_is_fed_what_was_recorded(record: dict[str, Any], tmp_path: Path) -> None:
    from pytest_ortbench.planning.request import PlanRequest

    path = fetched(bare_files()[record["name"]], cache_folder(), tmp_path)
    with Session(tmp_path, notify=lambda _: None, named_from=tmp_path) as session:
        (planned,) = session.plan(PlanRequest(models=(str(path),))).entries
        assert fed(session.prepare(planned)) == record["fed"]


@pytest.mark.heavy
@pytest.mark.needs("network")
@pytest.mark.parametrize("name", list(shipped_catalogue()))
def test_every_model_of_the_catalogue_is_what_its_file_is(name: str, tmp_path: Path) -> None:
    with Session(tmp_path, notify=lambda _: None, named_from=tmp_path) as session:
        for row in rows_of(name, session, tmp_path):
            assert_alike(row)
