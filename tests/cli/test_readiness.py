"""``ortbench models inspect``: what providers take, and the operators of a reduced build."""

from __future__ import annotations

import onnx
import pytest
from onnxruntime.tools.reduced_build_config_parser import parse_config

from tests.cli.test_models import save
from tests.launch.cases import relu
from tests.providers.cases import mlp

pytestmark = pytest.mark.live


def test_the_cpu_takes_every_node(tool, tmp_path):
    assert tool("models", "inspect", save(tmp_path / "m.onnx"), "--providers=cpu").code == 0


def test_a_provider_that_is_not_here_can_not_be_tried(tool, tmp_path):
    path = save(tmp_path / "m.onnx")
    assert tool("models", "inspect", path, "--providers=cpu,qnn:htp").code == 2


@pytest.mark.parametrize("provider", ["qmm", "", "~cpu", "cpu~cpu", "nonsense", "cpu~nonsense"])
@pytest.mark.parametrize("command", ["models inspect", "selfcheck", "profile"])
def test_a_provider_that_can_not_be_is_told_of_the_option_of_the_command(
    tool, tmp_path, command, provider
):
    path = [] if command == "selfcheck" else [save(tmp_path / "m.onnx")]
    ended = tool(*command.split(), *path, f"--providers={provider}")
    assert ended.code == 2
    assert ended.error.place == "--providers"


def test_the_operators_of_a_build_parse_by_the_format_s_own_parser(tool, tmp_path):
    target = tmp_path / "required_operators.config"
    ended = tool("models", "inspect", save(tmp_path / "m.onnx"), f"--ops-config={target}")
    assert ended.code == 0
    operators, types = parse_config(str(target), enable_type_reduction=True)
    assert {
        (domain, opset, name)
        for domain, sets in operators.items()
        for opset, names in sets.items()
        for name in names
    } == {("ai.onnx", 13, "Gather"), ("ai.onnx", 13, "ReduceMean")}
    assert types.is_typed_registration_needed("ai.onnx", "ReduceMean", "float")
    assert not types.is_typed_registration_needed("ai.onnx", "ReduceMean", "double")
    # Comments name the model, and no folder.
    comments = [line for line in target.read_text().splitlines() if line.startswith("#")]
    assert any(line.startswith("# - m ") for line in comments)
    assert str(tmp_path) not in target.read_text()


@pytest.mark.parametrize(
    ("asked", "option", "code"),
    [
        ("--providers=cpu", "--custom-ops", 1),
        ("--providers=cpu", "--ort-custom-ops", 1),
        ("--ops-config=ops.config", "--custom-ops", 2),
    ],
)
def test_a_library_of_operators_is_loaded(tool, tmp_path, asked, option, code):
    (tmp_path / "ops.so").write_bytes(b"no library")
    path = save(tmp_path / "m.onnx")
    assert tool("models", "inspect", path, asked).code == 0
    (tmp_path / "ops.config").unlink(missing_ok=True)
    assert tool("models", "inspect", path, asked, f"{option}=ops.so").code == code
    assert not (tmp_path / "ops.config").exists()


def test_models_share_one_list(tool, tmp_path):
    target = tmp_path / "ops.config"
    names = [save(tmp_path / "m.onnx"), relu(tmp_path / "r.onnx")]
    assert tool("models", "inspect", *names, f"--ops-config={target}").code == 0
    operators, _ = parse_config(str(target))
    assert {"Gather", "Relu"} <= {
        name for sets in operators.values() for each in sets.values() for name in each
    }


def test_a_list_that_would_lack_a_model_is_not_written(tool, tmp_path):
    target, broken = tmp_path / "ops.config", tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    names = [save(tmp_path / "m.onnx"), broken]
    assert tool("models", "inspect", *names, f"--ops-config={target}").code == 2
    assert not target.exists()


@pytest.mark.parametrize("target", ["m.onnx", "link.config", "w.bin"])
def test_a_list_is_not_written_over_what_was_inspected(tool, tmp_path, target):
    path = mlp(tmp_path / "m.onnx")
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "link.config").symlink_to(path)
    before = {name: (tmp_path / name).read_bytes() for name in ("m.onnx", "w.bin")}
    ended = tool("models", "inspect", path, f"--ops-config={tmp_path / target}")
    assert (ended.code, ended.error.place) == (2, "--ops-config")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def test_a_file_that_can_not_be_written_is_wrong_usage(tool, tmp_path):
    path = save(tmp_path / "m.onnx")
    before = path.read_bytes()
    ended = tool("models", "inspect", path, f"--ops-config={path / 'ops.config'}")
    assert ended.code == 2
    assert ended.error.place == "--ops-config"
    assert path.read_bytes() == before
