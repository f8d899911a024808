"""Documents changed at random, through every command that reads them.

A short form runs with the other tests; ``ORTBENCH_TESTS_MUTATIONS=500`` makes it that many
documents, each through every command. As baselines they are in
``tests/plugin/test_changed_baselines.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ortbench.schema.document import encode_run
from tests.mutations.bases import changed_document, good
from tests.mutations.readers import ALWAYS, READERS, call, laid_out

_ASKED = int(os.environ.get("ORTBENCH_TESTS_MUTATIONS", "0"))
_COUNT = _ASKED or 60
#: The slow ones: each of these takes a second for a document that makes sense.
_SLOW = ("report", "report, of two", "plot")


def _readers_of(seed: int) -> list[str]:
    fast = [name for name in READERS if name not in _SLOW]
    if _ASKED:
        return [*fast, "report", *(_SLOW[1:] if seed % 10 == 0 else [])]
    # Each of them gets at least ten documents.
    chosen = [fast[(seed + step) % len(fast)] for step in range(3)]
    return [*chosen, *(["report"] if seed % 5 == 0 else [])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(_COUNT))
def test_a_changed_document_is_read_or_refused_in_a_line(tmp_path: Path, seed: int) -> None:
    data, change = changed_document(seed)
    bad, beside = laid_out(tmp_path, data, encode_run(good()))
    for name in _readers_of(seed):
        ended = call(name, bad, beside)
        assert not ended.problem, f"{name} after {change}: {ended.problem}"


def test_the_short_form_gives_each_reader_ten_documents() -> None:
    counts = dict.fromkeys(READERS, 0)
    for seed in range(60):
        for name in _readers_of(seed):
            counts[name] += 1
    assert all(counts[name] >= 10 for name in ALWAYS)


def test_a_seed_gives_onechanged_document() -> None:
    assert changed_document(7) == changed_document(7)
    assert len({changed_document(seed)[0] for seed in range(30)}) == 30
