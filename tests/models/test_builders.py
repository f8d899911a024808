"""Draws, the graph writer, and what ``build`` does with files; the networks have their own file."""

from __future__ import annotations

import hashlib
import math
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.models.builders import BUILDERS, build, building
from pytest_ortbench.models.builders.graph_writer import ML_DOMAIN, GraphWriter, WeightsFile
from pytest_ortbench.models.builders.registry import NAMED_ONLY
from pytest_ortbench.models.builders.weights import (
    DRAW_VARIANCE,
    Draws,
    DrawScale,
    moment,
    scale_for,
    scaled,
)
from tests.refused import refused

_WORD = 2**64 - 1


def _splitmix(seed: str, name: str, step: int) -> int:
    """The n-th word of a stream, by the book."""
    key = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "little")
    z = (key + step * 0x9E3779B97F4A7C15) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)


@given(seed=st.text(max_size=8), name=st.text(max_size=8), count=st.integers(0, 40))
@settings(max_examples=50, deadline=None)
def test_draws_are_quarters_of_splitmix64(seed: str, name: str, count: int) -> None:
    expected = []
    for index in range(count):
        word = _splitmix(seed, name, index // 4 + 1).to_bytes(8, "little")
        quarter = word[index % 4 * 2 : index % 4 * 2 + 2]
        expected.append(int.from_bytes(quarter, "little", signed=True))
    assert Draws(seed).integers(name, (count,)).tolist() == expected


@given(count=st.integers(1, 65536))
@settings(max_examples=50, deadline=None)
def test_choices_stretch_draws_evenly(count: int) -> None:
    drawn = Draws("s").integers("n", (30,)).tolist()
    expected = [math.floor(Fraction(draw + 32768, 65536) * count) for draw in drawn]
    chosen = Draws("s").choices("n", (30,), count).tolist()
    assert chosen == expected
    assert all(0 <= choice < count for choice in chosen)


def test_draws_are_pinned() -> None:
    """A change here changes every model: it needs new versions and digests."""
    drawn = Draws("seed").integers("name", (6,)).tolist()
    assert drawn == [-25593, -9616, -20170, 8063, -29659, -10640]


def test_draws_go_on_past_one_block() -> None:
    long = Draws("s").integers("n", (2**17 + 7,))
    for length in (1, 2**17 - 1, 2**17, 2**17 + 1):
        np.testing.assert_array_equal(Draws("s").integers("n", (length,)), long[:length])
    word = _splitmix("s", "n", 2**15 + 1).to_bytes(8, "little")
    assert long[2**17] == int.from_bytes(word[:2], "little", signed=True)


def test_draws_have_the_stated_moments() -> None:
    draws = Draws("s").integers("n", (1000, 1000)).astype(np.float64)
    assert abs(draws.mean()) < 80  # four standard errors
    assert draws.var() == pytest.approx(float(DRAW_VARIANCE), rel=0.005)


def test_streams_differ_by_name_and_seed() -> None:
    first = Draws("s").integers("a", (64,))
    assert not np.array_equal(first, Draws("s").integers("b", (64,)))
    assert not np.array_equal(first, Draws("t").integers("a", (64,)))


@given(st.fractions(Fraction(1, 10**6), 100))
def test_scale_gives_the_variance(variance: Fraction) -> None:
    scale = scale_for(variance)
    given_back = Fraction(scale.value) ** 2 * DRAW_VARIANCE
    assert abs(given_back / variance - 1) < Fraction(1, 100)
    assert 0 < scale.multiplier < 256


@given(st.integers(-(2**15), 2**15 - 1), st.integers(1, 255), st.integers(0, 40))
def test_scaled_draws_are_exact(draw: int, multiplier: int, exponent: int) -> None:
    product = scaled(np.array([draw], dtype=np.int32), DrawScale(multiplier, exponent))
    assert product.dtype == np.float32
    assert Fraction(float(product[0])) == Fraction(draw * multiplier, 2**exponent)


def test_moment_is_the_nearest_float32() -> None:
    sums = np.array([3, -(10**11)], dtype=np.int64)
    exact = [Fraction(int(value)) * Fraction(9, 4**5 * 1024) for value in sums]
    expected = [np.float32(float(value)) for value in exact]
    assert moment(sums, DrawScale(3, 5), 2).tolist() == expected


def test_writer_shares_constants_and_scopes_names() -> None:
    writer = GraphWriter("g", version=3)
    source = writer.input("x", "float", ["batch", 2])
    with writer.scope("a"), writer.scope("b"):
        first = writer.node("Reshape", source, writer.integers(0, 2), out="out")
        (low, high) = writer.nodes(
            "Split", first, writer.integers(1, 1), names=("low", "high"), axis=1
        )
    writer.node("Sub", low, high, whole_name="y")
    with writer.scope("c"):
        assert writer.integers(0, 2) == writer.integers(0, 2)
        assert writer.integers(0) != writer.integer(0)
    writer.output("y", "float", ["batch", 1])
    model = onnx.load_from_string(writer.serialise())
    onnx.checker.check_model(model)
    assert (first, low, high) == ("a/b/out", "a/b/low", "a/b/high")
    assert [node.name for node in model.graph.node] == ["a/b/Reshape.0", "a/b/Split.1", "Sub.2"]
    assert len(model.graph.initializer) == 4
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
    assert (model.ir_version, model.model_version) == (8, 3)
    assert (model.producer_name, model.producer_version, model.doc_string) == (
        "pytest-ortbench",
        "",
        "",
    )


def test_large_weights_lie_beside_the_model(tmp_path: Path) -> None:
    """Each from a page of its own, in the order of the graph; small ones stay in the model."""
    model = tmp_path / "m.onnx"
    with (tmp_path / "m.onnx.data").open("wb") as stream:
        writer = GraphWriter("g", version=1, beside=WeightsFile(stream, "m.onnx.data"))
        first = writer.drawn("a", (33, 50), Fraction(1))
        second = writer.drawn("b", (2000,), Fraction(1))
        writer.near("c", 4, 1)
        model.write_bytes(writer.serialise())
    plain = GraphWriter("g", version=1)
    expected = onnx.load_from_string(_three(plain)).graph.initializer
    assert (tmp_path / "m.onnx.data").stat().st_size == 8192 + 8000
    apart = onnx.load(str(model), load_external_data=False).graph.initializer
    places = [{e.key: e.value for e in tensor.external_data} for tensor in apart]
    assert places == [
        {"location": "m.onnx.data", "offset": "0", "length": "6600"},
        {"location": "m.onnx.data", "offset": "8192", "length": "8000"},
        {},
    ]
    loaded = onnx.load(str(model)).graph.initializer
    for tensor, other in zip(loaded, expected, strict=True):
        np.testing.assert_array_equal(
            onnx.numpy_helper.to_array(tensor), onnx.numpy_helper.to_array(other)
        )
    assert [tensor.name for tensor in loaded] == [first, second, "c"]


def _three(writer: GraphWriter) -> bytes:
    writer.drawn("a", (33, 50), Fraction(1))
    writer.drawn("b", (2000,), Fraction(1))
    writer.near("c", 4, 1)
    return writer.serialise()


@pytest.mark.parametrize("damage", ["weights gone", "weights changed", "model gone"])
def test_both_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    info = replace(BUILDERS["bert_tiny"], external=True)
    monkeypatch.setitem(building.BUILDERS, "bert_tiny", info)
    with refused(ModelError, "SHA-256"):  # the digest is that of the model file alone
        build("bert_tiny", tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
    with (tmp_path / "w").open("wb") as stream:
        (tmp_path / "m").write_bytes(building.serialised(info, stream))
    right = file_digest(tmp_path / "m", ((info.weights_name, tmp_path / "w"),))
    monkeypatch.setitem(building.BUILDERS, "bert_tiny", replace(info, digest=right))
    path = build("bert_tiny", tmp_path)
    weights = path.with_name("bert_tiny-v1.onnx.data")
    before = weights.read_bytes()
    if damage == "weights gone":
        weights.unlink()
    elif damage == "weights changed":
        weights.write_bytes(before[:-1] + b"x")
    else:
        path.unlink()
    assert build("bert_tiny", tmp_path) == path
    assert weights.read_bytes() == before
    assert path.is_file()


def test_all_builtin_models_are_those_that_are_meant_for_everybody() -> None:
    """The canary is no model, and gigabytes are built where they are named."""
    named_only = {name for name, info in BUILDERS.items() if NAMED_ONLY.intersection(info.tags)}
    assert named_only == {"canary", "llm_1b"}
    assert {name for name, info in BUILDERS.items() if info.external} == {"llm_1b"}


def test_writer_types_every_kind_of_attribute() -> None:
    writer = GraphWriter("g", version=1)
    writer.node(
        "Anything", domain=ML_DOMAIN, f=0.5, i=2, s="t", fs=[0.5, 1.0], ints=[3], ss=["u", "v"]
    )
    model = onnx.load_from_string(writer.serialise())
    (node,) = model.graph.node
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert values == {
        "f": 0.5,
        "i": 2,
        "s": b"t",
        "fs": [0.5, 1.0],
        "ints": [3],
        "ss": [b"u", b"v"],
    }
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 17), (ML_DOMAIN, 3)]


def test_every_builder_has_a_writer() -> None:
    names = {name: pkgutil.resolve_name(info.writer).__name__ for name, info in BUILDERS.items()}
    assert names == {name: name for name in BUILDERS}
    assert all(name == info.name for name, info in BUILDERS.items())
    assert all(info.version >= 1 and info.tags and info.description for info in BUILDERS.values())


@pytest.mark.live
def test_listing_builders_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest_ortbench.models.builders as b; b.BUILDERS; "
        "print(sorted({'numpy', 'onnx', 'filelock'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_build_makes_folder_and_file(tmp_path: Path) -> None:
    path = build("linear", tmp_path / "deep" / "cache")
    assert path == tmp_path / "deep" / "cache" / "linear-v1.onnx"
    assert _digest(path) == BUILDERS["linear"].digest
    assert sorted(item.suffix for item in path.parent.iterdir() if item != path) in (
        [],
        [".lock"],  # which of the two depends on the platform
    )


def test_build_takes_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build("linear", tmp_path)
    before = path.stat()
    monkeypatch.setattr(building, "serialised", lambda *_: pytest.fail("built again"))
    assert build("linear", tmp_path) == path
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("damage", [b"", b"not a model", None])
def test_build_replaces_a_damaged_file(tmp_path: Path, damage: bytes | None) -> None:
    path = build("linear", tmp_path)
    path.write_bytes(path.read_bytes()[:-1] if damage is None else damage)
    assert _digest(build("linear", tmp_path)) == BUILDERS["linear"].digest


def test_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        build("resnet-50", tmp_path)
    assert caught.value.place == "builtin:resnet-50"
    assert "'resnet-50'" in caught.value.message
    assert "'resnet50'" in caught.value.hint
    with refused(UsageError, hint="bert_base, bert_tiny, "):
        build("zzz", tmp_path)


def test_other_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(BUILDERS["linear"], digest="0" * 64)
    monkeypatch.setitem(building.BUILDERS, "linear", wrong)
    with refused(ModelError, "SHA-256", place="builtin:linear"):
        build("linear", tmp_path)
    assert not (tmp_path / "linear-v1.onnx").exists()
    assert not list(tmp_path.glob(".*.part"))


def test_folder_that_is_a_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with refused(ModelError, "can't be written"):
        build("linear", tmp_path / "cache")


def test_folder_in_the_way_of_the_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "linear-v1.onnx").mkdir()
    with refused(ModelError, place=str(tmp_path / "linear-v1.onnx"), hint="Remove"):
        build("linear", tmp_path)
    assert not list(tmp_path.glob(".*.part"))


def test_parallel_callers_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = building.serialised

    def counted(info: building.BuilderInfo, weights: BinaryIO | None) -> bytes:
        calls.append(info.name)
        return real(info, weights)

    monkeypatch.setattr(building, "serialised", counted)
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: build("bert_tiny", tmp_path), range(4)))
    assert paths == {tmp_path / "bert_tiny-v1.onnx"}
    assert calls == ["bert_tiny"]


@pytest.mark.live
def test_parallel_processes_agree(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from pytest_ortbench.models.builders import build; "
        "print(build('gbdt', pathlib.Path(sys.argv[1])))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = [process.communicate()[0].decode().strip() for process in running]
    assert outputs == [str(tmp_path / "gbdt-v1.onnx")] * 2
    assert [process.returncode for process in running] == [0, 0]
    assert _digest(tmp_path / "gbdt-v1.onnx") == BUILDERS["gbdt"].digest
