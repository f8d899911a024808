"""The commands on whole documents: schema and merge."""

from __future__ import annotations

import dataclasses
import json
import re

from pytest_ortbench.core.run import SCHEMA_VERSION
from pytest_ortbench.schema.document import json_schema
from pytest_ortbench.store.documents import load
from pytest_ortbench.store.folder import RunFolder
from tests.results_factory import make_case, make_machine, make_result, make_run

RUN = make_run()


def shards():
    first = make_run([make_result()], run_id="20260102T030405Z-a-0001")
    second = make_run([make_result(case=make_case(batch=8))], run_id="20260102T040405Z-a-0002")
    return first, dataclasses.replace(second, started_at="2026-01-02T04:04:05Z")


def test_the_schema_is_printed(tool):
    ended = tool("schema")
    assert ended.code == 0
    assert json.loads(ended.out) == json_schema()


def checked_in(out: str) -> dict[str, tuple[int, int]]:
    """The schema version and the number of cases of each document that is valid."""
    lines = [re.fullmatch(r"(.*): valid, \D+(\d+), (\d+) cases", line) for line in out.splitlines()]
    return {line[1]: (int(line[2]), int(line[3])) for line in lines if line}


def test_documents_and_journals_are_checked(tool, store, tmp_path):
    path = store(RUN)
    unfinished = dataclasses.replace(RUN, run_id="20260105T000000Z-x-0000", finished_at=None)
    folder = RunFolder.create(tmp_path / "results", unfinished)
    folder.append(RUN.cases[0])
    ended = tool("schema", "latest", folder.path)
    assert ended.code == 0
    assert checked_in(ended.out) == {
        str(path.relative_to(tmp_path)): (SCHEMA_VERSION, 3),
        str(folder.path / "journal.jsonl"): (SCHEMA_VERSION, 1),
    }


def test_each_senseless_value_of_a_journal_gets_a_line(tool, tmp_path):
    unfinished = dataclasses.replace(RUN, finished_at=None)
    folder = RunFolder.create(tmp_path / "results", unfinished)
    folder.append(RUN.cases[0])
    journal = folder.path / "journal.jsonl"
    header, line = map(json.loads, journal.read_text().splitlines())
    line["wall_s"], header["expected"] = -1.0, -1
    journal.write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    told = tool("schema", journal).err.splitlines()
    places = [re.findall(r"\$\S+", line) for line in told]
    assert places == [["$.cases[0].wall_s"], ["$.expected"]]


def test_each_bad_document_gets_its_line_and_the_others_are_checked_too(tool, store, tmp_path):
    good = store(RUN)
    document = json.loads(good.read_text())
    document["cases"][1]["wall_s"] = "long"
    (tmp_path / "changed.json").write_text(json.dumps(document))
    document["schema_version"] = 99
    (tmp_path / "newer.json").write_text(json.dumps(document))
    (tmp_path / "empty.json").write_text("")
    ended = tool("schema", "changed.json", "newer.json", "empty.json", good)
    assert ended.code == 2
    assert checked_in(ended.out) == {str(good): (SCHEMA_VERSION, 3)}
    changed, newer, empty = ended.err.splitlines()
    assert "$.cases[1].wall_s " in changed
    assert "schema version 99" in newer
    assert "--upgrade pytest-ortbench" in newer
    assert "empty.json: " in empty


def test_shards_are_merged_into_a_run_of_the_results_folder(tool, store):
    first, second = shards()
    ended = tool("merge", store(second).parent, store(first))
    assert ended.code == 0
    path, _, text = ended.out.partition(": ")
    assert text.split()[:2] == ["2", "cases"]
    merged = load_here(path)
    assert [result.case.batch for result in merged.cases] == [1, 8]
    assert tool("show", merged.run_id).code == 0


def test_shards_are_merged_into_a_file(tool, store, tmp_path):
    first, second = shards()
    store(first)
    store(second)
    ended = tool("merge", first.run_id, second.run_id, "--output=all.json")
    assert ended.out.split()[:3] == ["all.json:", "2", "cases"]
    assert len(load(tmp_path / "all.json").cases) == 2


def test_runs_of_two_machines_are_not_merged(tool, store):
    first, second = shards()
    second = dataclasses.replace(second, machine=make_machine("b", cpu="Another CPU"))
    ended = tool("merge", store(first), store(second))
    assert ended.code == 2
    for part in ("machine.cpu", "'Example CPU 3000'", "'Another CPU'"):
        assert part in ended.error.message


def load_here(path):
    from pathlib import Path

    return load(Path(path))
