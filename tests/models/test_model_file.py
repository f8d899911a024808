"""Files that are models and files that aren't; digest, size, external data."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from onnx import external_data_helper

from pytest_ortbench.core.errors import ModelError
from pytest_ortbench.core.lfs_pointer import PULL
from pytest_ortbench.models.graph import read_model
from pytest_ortbench.models.model_file import read_model_file
from tests.models.graphs import constant, model, node, read, relu, run, value, weight
from tests.refused import refused


def error_of(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model(path, name="m", source="file")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    return text


def outcome(path: Path) -> str:
    """``read`` or ``refused``; any other error than ours is one of the test."""
    with suppress(ModelError):
        read_model(path, name="m", source="file")
        return "read"
    return "refused"


def matmul(size: int = 512) -> onnx.ModelProto:
    return model(
        [node("MatMul", ["x", "w"], ["y"])],
        [value("x", ["N", size])],
        [value("y", ["N", size])],
        [weight("w", size, size)],
    )


def saved_with_external_data(folder: Path, location: str = "data/weights.bin") -> Path:
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    path = folder / "m.onnx"
    onnx.save(matmul(), path, save_as_external_data=True, location=location, size_threshold=16)
    return path


def redirect(path: Path, location: str) -> None:
    """Let the weights of a saved model point elsewhere."""
    proto = onnx.load(path, load_external_data=False)
    for tensor in proto.graph.initializer:
        entry = next(item for item in tensor.external_data if item.key == "location")
        entry.value = location
    path.write_bytes(proto.SerializeToString())


def test_plain_file_has_the_sha256_of_its_bytes(tmp_path: Path) -> None:
    found = read(matmul(), tmp_path)
    content = (tmp_path / "m.onnx").read_bytes()
    assert found.digest == hashlib.sha256(content).hexdigest()
    assert found.size_bytes == len(content)
    assert found.external_files == ()


@pytest.mark.live
def test_external_data_in_a_subfolder_counts_and_runs(tmp_path: Path) -> None:
    path = saved_with_external_data(tmp_path)
    found = read_model(path, name="m", source="file")
    data = tmp_path / "data" / "weights.bin"
    assert data.stat().st_size == 512 * 512 * 4
    assert found.size_bytes == path.stat().st_size + data.stat().st_size
    assert found.external_files == ("data/weights.bin",)
    assert found.parameters == 512 * 512
    _, (output,) = run(found)
    assert output.shape == (1, 512)


def test_digest_covers_external_data(tmp_path: Path) -> None:
    path = saved_with_external_data(tmp_path)
    before = read_model(path, name="m", source="file").digest
    data = tmp_path / "data" / "weights.bin"
    content = bytearray(data.read_bytes())
    content[-1] ^= 1
    data.write_bytes(content)
    # The model file itself is the same to the byte.
    assert read_model(path, name="m", source="file").digest != before


def test_external_weights_are_not_loaded(tmp_path: Path) -> None:
    file = read_model_file(saved_with_external_data(tmp_path))
    (tensor,) = file.proto.graph.initializer
    assert external_data_helper.uses_external_data(tensor)
    assert len(tensor.raw_data) == 0


def test_two_gigabytes_of_external_data_cost_no_memory(tmp_path: Path) -> None:
    """The file is sparse: it has the size, and takes no space on disk."""
    path = saved_with_external_data(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    (tensor,) = proto.graph.initializer
    tensor.dims[:] = [512, 1_200_000]
    for entry in tensor.external_data:
        if entry.key == "length":
            entry.value = str(512 * 1_200_000 * 4)
    path.write_bytes(proto.SerializeToString())
    with (tmp_path / "data" / "weights.bin").open("r+b") as stream:
        stream.truncate(512 * 1_200_000 * 4)
    import tracemalloc

    from pytest_ortbench.models.external_data import external_files

    tracemalloc.start()
    (item,) = external_files(onnx.load(path, load_external_data=False), path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert item.size_bytes == 2_457_600_000
    assert peak < 10_000_000


def test_missing_external_data(tmp_path: Path) -> None:
    path = saved_with_external_data(tmp_path)
    (tmp_path / "data" / "weights.bin").unlink()
    assert "'data/weights.bin' " in error_of(path)


def test_truncated_external_data(tmp_path: Path) -> None:
    path = saved_with_external_data(tmp_path)
    os.truncate(tmp_path / "data" / "weights.bin", 1000)
    assert "it has 1,000 bytes, but the model needs 1,048,576" in error_of(path)


def test_external_data_that_git_lfs_keeps_are_pulled(tmp_path: Path) -> None:
    path = saved_with_external_data(tmp_path)
    (tmp_path / "data" / "weights.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert PULL in error_of(path)


@pytest.mark.parametrize(
    ("location", "rule"),
    [
        ("../../etc/passwd", "is outside the model's folder"),
        ("data/../../secret", "is outside the model's folder"),
        ("..\\secret", "is outside the model's folder"),
        ("/etc/passwd", "is an absolute path"),
        ("C:\\secret", "is an absolute path"),
        ("\\\\host\\share", "is an absolute path"),
        ("", "is empty, not a file name"),
    ],
)
def test_external_data_elsewhere_is_refused(tmp_path: Path, location: str, rule: str) -> None:
    path = saved_with_external_data(tmp_path)
    redirect(path, location)
    text = error_of(path)
    assert "refused" in text
    assert rule in text


@pytest.mark.parametrize("link", ["file", "folder", "chain"])
def test_external_data_behind_a_link_that_leads_out_is_refused(tmp_path: Path, link: str) -> None:
    inside, outside = tmp_path / "model", tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    path = saved_with_external_data(inside)
    data = inside / "data" / "weights.bin"
    data.rename(outside / "weights.bin")
    if link == "folder":
        data.parent.rmdir()
        data.parent.symlink_to(outside)
    elif link == "chain":
        (inside / "hop").symlink_to(outside / "weights.bin")
        data.symlink_to(inside / "hop")
    else:
        data.symlink_to(outside / "weights.bin")
    assert "refused" in error_of(path)


def test_a_link_inside_of_the_models_folder_is_followed(tmp_path: Path) -> None:
    path = saved_with_external_data(tmp_path)
    data = tmp_path / "data" / "weights.bin"
    data.rename(tmp_path / "real.bin")
    data.symlink_to("../real.bin")
    assert outcome(path) == "read"


def test_linked_model_finds_its_data_beside_the_link(tmp_path: Path) -> None:
    """As in the cache of a model hub: both are links to files with other names."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    path = saved_with_external_data(blobs, "w")
    path.rename(blobs / "1111")
    (blobs / "w").rename(blobs / "2222")
    (snapshot / "m.onnx").symlink_to(blobs / "1111")
    (snapshot / "w").symlink_to(blobs / "2222")
    found = read_model(snapshot / "m.onnx", name="m", source="file")
    assert found.path == str(snapshot / "m.onnx")
    assert found.external_files == ("w",)


def test_missing_file(tmp_path: Path) -> None:
    assert "does not exist" in error_of(tmp_path / "nothing.onnx")
    (tmp_path / "f").write_text("x")
    assert "does not exist" in error_of(tmp_path / "f" / "m.onnx")


def test_folder_named_like_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "m.onnx"
    folder.mkdir()
    assert "is a folder" in error_of(folder)


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.touch()
    assert "(0 bytes)" in error_of(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"hello, this is no model\n" * 20, "is a text file"),
        ("Modèle d'essai\n".encode() * 60, "is a text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "is a Git LFS pointer"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "is an HTML page"),
        (b"ir_version: 9\ngraph {\n}\n", "is an ONNX model as text"),
        (b'<\n  ir_version: 9,\n  opset_import: ["" : 17]\n>\n', "is an ONNX model as text"),
        (b"\x1f\x8b\x08\x00" + bytes(64), "is gzip-compressed"),
        (b"\x80\x02}q\x00" + bytes(64), "is a Python pickle"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(64), "is a TensorFlow Lite model"),
        (b"\x1c\x00\x00\x00ORTM" + bytes(64), "is in ONNX Runtime's own format"),
        (b"\x07\x00\xff\xfe" + bytes(range(200)), "is not an ONNX model"),
    ],
)
def test_something_else(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert reason in error_of(path)


def test_zip_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m.onnx", b"x" * 100)
    assert "zip archive" in error_of(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_file(tmp_path: Path, share: float) -> None:
    content = matmul(64).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(content[: int(len(content) * share)])
    assert "is truncated" in error_of(path)


def test_a_script_that_names_no_operator_set_is_told_how_to(tmp_path: Path) -> None:
    proto = relu()
    del proto.opset_import[:]
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    _, _, code = error_of(path).rpartition("with: ")
    exec(code, {"model": proto})
    path.write_bytes(proto.SerializeToString())
    assert read_model_file(path).proto.opset_import[0].version == 17


def test_every_truncation_is_an_error_of_ours(tmp_path: Path) -> None:
    content = relu().SerializeToString()
    path = tmp_path / "m.onnx"
    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        error_of(path)


@pytest.mark.live
@pytest.mark.parametrize("damage", [0x00, 0xFF, 0x80])
def test_every_damaged_byte_gives_a_model_or_an_error_of_ours(tmp_path: Path, damage: int) -> None:
    content = matmul(2).SerializeToString()
    path = tmp_path / "m.onnx"
    outcomes = set()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([damage]) + content[position + 1 :])
        outcomes.add(outcome(path))
    assert outcomes == {"read", "refused"}


def test_protobuf_without_a_graph(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    assert "field 'graph'" in error_of(path)


def test_one_file_of_more_than_two_gigabytes(tmp_path: Path) -> None:
    """The file is sparse; nothing of it is read."""
    path = tmp_path / "m.onnx"
    size = 2_300_000_000
    head = b"\x08\x08" + b"\x3a" + _varint(size)  # ir_version 8, then the graph
    path.write_bytes(head)
    os.truncate(path, len(head) + size)
    text = error_of(path)
    assert "2 GiB" in text
    assert "external data" in text


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def test_path_with_spaces_unicode_and_length_is_only_read(tmp_path: Path) -> None:
    folder = tmp_path / "mon modèle 模型" / ("d" * 200) / ("e" * 200)
    folder.mkdir(parents=True)
    path = folder / "größe 1 (copy).onnx"
    onnx.save(relu(), path)
    folder.chmod(0o555)
    try:
        before = sorted(folder.iterdir())
        found = read_model(path, name="m", source="file")
        assert found.path == str(path)
        assert sorted(folder.iterdir()) == before
    finally:
        folder.chmod(0o755)


def test_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(relu(), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    assert read_model(Path("m.onnx"), name="m", source="file").path == str(tmp_path / "m.onnx")


def test_changed_file_has_another_digest(tmp_path: Path) -> None:
    first = read(matmul(8), tmp_path)
    second = read(matmul(9), tmp_path)
    assert first.path == second.path
    assert first.digest != second.digest


def test_unknown_operator_set_is_read(tmp_path: Path) -> None:
    """Whether a runtime supports it is not known here; the file itself is fine."""
    proto = relu()
    proto.opset_import[0].version = 99
    found = read(proto, tmp_path)
    assert found.opsets == {"ai.onnx": 99}


def test_a_constant_that_lacks_data_is_refused(tmp_path: Path) -> None:
    shape = constant("s", [1, 2, 3])
    shape.dims[:] = [7]
    proto = model(
        [node("Reshape", ["x", "s"], ["y"])],
        [value("x", ["N", 6])],
        [value("y", None)],
        [shape],
    )
    with refused(ModelError, "weight 's'", "int64", "56 bytes"):
        read(proto, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems make no such name")
def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/m\xff.onnx"))
    path.write_bytes(matmul(8).SerializeToString())
    assert "UTF-8" in error_of(path)


def test_a_link_to_nothing_is_told_from_a_missing_file(tmp_path: Path) -> None:
    link = tmp_path / "link.onnx"
    link.symlink_to(tmp_path / "gone.onnx")
    with refused(ModelError, repr(str(tmp_path / "gone.onnx")), place=str(link), hint="link"):
        read_model_file(link)
    with refused(ModelError, place=str(tmp_path / "gone.onnx"), hint="path"):
        read_model_file(tmp_path / "gone.onnx")
