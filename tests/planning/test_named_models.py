"""Which of a revision's models its own suite measured: read from texts, nothing is run."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from pytest_ortbench.planning.named_models import lost_models, suite_file

LIST = 'MODELS = [ROOT / "models/sniff.onnx", ROOT / "models/spam.onnx"]\n'
SHORTER = 'MODELS = [ROOT / "models/sniff.onnx"]\n'
GLOB = 'MODELS = sorted((ROOT / "models").glob("*.onnx"))\n'
EXPORT = "models/spam.onnx"


def lost(
    before: str,
    now: str,
    *,
    gone: tuple[str, ...] = (),
    there: tuple[str, ...] = (),
    measured: tuple[str, ...] = ("models/sniff.onnx",),
    place: str = "benchmarks/bench_models.py",
) -> list[str]:
    paths = lost_models(
        [suite_file(place, before)],
        [suite_file(place, now)],
        there=map(PurePosixPath, there),
        gone=map(PurePosixPath, gone),
        measured=map(PurePosixPath, measured),
    )
    return [str(path) for path in paths]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (LIST, SHORTER),
        (LIST, LIST),
        (GLOB, GLOB),
        ('MODELS = "models/*.onnx"', 'MODELS = "models/*.onnx"'),
        ('M = [ROOT / "models" / name for name in ("sniff.onnx", "spam.onnx")]', 'M = ["sniff"]'),
        ('NAMES = ["sniff", "spam"]\nM = [f"models/{n}.onnx" for n in NAMES]', 'NAMES = ["sniff"]'),
        ('M = list(Path(os.environ["MODELS"]).iterdir())', 'M = list(Path("x").iterdir())'),
        ('M = glob.glob("models/**/*.onnx", recursive=True)', ""),
        ('M = [Path(a, f) for a, _, fs in os.walk("models") for f in fs]', ""),
    ],
)
def test_a_deleted_model_that_the_suite_measured_is_lost(before: str, now: str) -> None:
    assert lost(before, now, gone=(EXPORT,)) == [EXPORT]


@pytest.mark.parametrize(
    "before",
    [
        SHORTER,
        'MODELS = [ROOT / "models" / "sniff.onnx"]',
        '"""Was models/spam.onnx once."""\nMODELS = [ROOT / "models/sniff.onnx"]',
        "MODELS = [",
    ],
)
def test_a_deleted_model_that_it_did_not_measure_is_not(before: str) -> None:
    assert lost(before, SHORTER, gone=(EXPORT,)) == []


def test_a_deleted_model_of_another_folder_is_none_of_a_search() -> None:
    assert lost(GLOB, GLOB, gone=("tests/data/tiny.onnx",)) == []
    deep = 'MODELS = sorted((ROOT / "models").rglob("*.onnx"))'
    assert lost(deep, deep, gone=("models/b/net.onnx",)) == ["models/b/net.onnx"]


def test_a_model_beside_the_suite_is_found_by_a_search_of_its_folder() -> None:
    here = 'MODELS = list(Path(__file__).parent.glob("*.onnx"))'
    assert lost(here, here, gone=("benchmarks/net.onnx",), measured=()) == ["benchmarks/net.onnx"]


def test_a_dropped_line_is_lost_though_the_file_is_there() -> None:
    assert lost(LIST, SHORTER, there=(EXPORT,)) == [EXPORT]
    assert lost(LIST, LIST, there=(EXPORT,)) == []
    assert lost(SHORTER, SHORTER, there=(EXPORT,)) == []
    composed = 'MODELS = [f"models/{name}.onnx" for name in ("sniff", "spam")]'
    assert lost(LIST, composed, there=(EXPORT,)) == []


def test_a_pattern_says_how_deep_it_looks() -> None:
    file = suite_file("benchmarks/bench_models.py", 'MODELS = [ROOT / "models/*.onnx", "*.ort"]')
    assert file.means(PurePosixPath("models/spam.onnx"))
    assert file.means(PurePosixPath("net.ort"))
    assert not file.means(PurePosixPath("models/deep/net.onnx"))
    assert not file.means(PurePosixPath("models/spam.ort"))
    deep = suite_file("benchmarks/bench_models.py", 'MODELS = ROOT / "models/**/*.onnx"')
    assert deep.means(PurePosixPath("models/deep/net.onnx"))
    assert deep.means(PurePosixPath("models/spam.onnx"))


def test_lines_of_an_ini_file_and_of_a_file_of_options_count() -> None:
    before = "[pytest]\nort_models =\n    models/sniff.onnx\n    models/spam.onnx\n"
    now = "[pytest]\nort_models = models/sniff.onnx\n"
    assert lost(before, now, there=(EXPORT,), place="pytest.ini") == [EXPORT]
    before = "--ort-models=models/sniff.onnx,models/spam.onnx\n"
    assert lost(before, "", gone=(EXPORT,), place="options.txt") == [EXPORT]
