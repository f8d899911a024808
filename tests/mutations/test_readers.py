"""Documents changed at random, through every command that reads them.

A short form runs with the other tests, each document through some of the commands; the heavy one
puts 500 through all of them. As baselines they are in ``tests/plugin/test_changed_baselines.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ortbench.schema.document import encode_run
from tests.mutations.bases import changed_document, good
from tests.mutations.readers import ALWAYS, READERS, call, laid_out

#: The slow ones: each of these takes a second for a document that makes sense.
_SLOW = ("report", "report, of two", "plot")
_FAST = [name for name in READERS if name not in _SLOW]


def _some_readers(seed: int) -> list[str]:
    # Each of them gets at least ten of 60 documents.
    chosen = [_FAST[(seed + step) % len(_FAST)] for step in range(3)]
    return [*chosen, *(["report"] if seed % 5 == 0 else [])]


def _check(folder: Path, seed: int, readers: list[str]) -> None:
    data, change = changed_document(seed)
    bad, beside = laid_out(folder, data, encode_run(good()))
    for name in readers:
        ended = call(name, bad, beside)
        assert not ended.problem, f"{name} after {change}: {ended.problem}"


@pytest.mark.live
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_a_changed_document_is_read_or_refused_in_a_line(tmp_path: Path, seed: int) -> None:
    _check(tmp_path, seed, _some_readers(seed))


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(500))
def test_every_reader_reads_or_refuses_a_changed_document(tmp_path: Path, seed: int) -> None:
    _check(tmp_path, seed, [*_FAST, "report", *(_SLOW[1:] if seed % 10 == 0 else [])])


def test_the_short_form_gives_each_reader_ten_documents() -> None:
    counts = dict.fromkeys(READERS, 0)
    for seed in range(60):
        for name in _some_readers(seed):
            counts[name] += 1
    assert all(counts[name] >= 10 for name in ALWAYS)


def test_a_seed_gives_one_changed_document() -> None:
    assert changed_document(7) == changed_document(7)
    # Two seeds may make the same change, as two of these do.
    assert len({changed_document(seed)[0] for seed in range(30)}) >= 29
