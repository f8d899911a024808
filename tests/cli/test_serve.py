"""What ``ortbench serve`` refuses before anything is planned, and what it calls a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import helper

from pytest_ortbench.core import extras
from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.planning.served_apps import path_name, required_name
from pytest_ortbench.serving.service import ServiceLimits
from tests.cli.conftest import Ended
from tests.launch.cases import relu, save


@pytest.mark.parametrize(
    ("options", "place"),
    [
        (["--name=a/b"], "--name"),
        (["--name=../m"], "--name"),
        (["--name="], "--name"),
        (["--name=" + "a" * 101], "--name"),
        (["--batch-wait=2"], "--batch-wait"),
        (["--timeout=0s"], "--timeout"),
        (["--timeout=0"], "--timeout"),
        (["--drain=-1s"], "--drain"),
        (["--drain=soon"], "--drain"),
        (["--dims=seq"], "--dims"),
        (["--precision=native,fp16"], "--precision"),
        (["--provider=cpu,cuda"], "--provider"),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(
    options: list[str], place: str, tool: Callable[..., Ended]
) -> None:
    ended = tool("serve", "m.onnx", *options)
    assert ended.code == 2
    assert ended.error.place == place


@pytest.mark.live
@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["gone.onnx"], "MODEL"),
        (["builtin:mpl"], "MODEL"),
        (["net.onnx", "--precision=fp61"], "--precision"),
        (["net.onnx", "--provider=cudda"], "--provider"),
    ],
)
def test_what_is_not_there_is_told_at_its_place(
    arguments: list[str], place: str, tool: Callable[..., Ended], tmp_path: Path
) -> None:
    relu(tmp_path / "net.onnx")
    ended = tool("serve", *arguments, "--port=0")
    assert (ended.code, ended.error.place) == (2, place)


@pytest.mark.live
def test_a_compiled_file_is_answered_with_its_source(
    tool: Callable[..., Ended], tmp_path: Path
) -> None:
    """Another provider can't run it, the CPU least of all."""
    node = helper.make_node(
        "EPContext",
        ["x"],
        ["y"],
        domain="com.microsoft",
        source="QNNExecutionProvider",
        main_context=1,
        embed_mode=1,
        ep_cache_context=b"",
    )
    save(tmp_path / "net_ctx.onnx", [node], shape=(1, 4))
    ended = tool("serve", tmp_path / "net_ctx.onnx", "--provider=all", "--port=0")
    assert (ended.code, ended.error.place) == (2, "MODEL")
    assert "--provider" not in ended.error.hint
    assert "azure" not in ended.error.message


@pytest.mark.parametrize(
    "option", ["--port=70000", "--body=0", "--body=nan", "--queue=0", "--batch=0", "--callers=0"]
)
def test_a_number_out_of_its_range_is_a_wrong_call(option: str, tool: Callable[..., Ended]) -> None:
    assert tool("serve", "m.onnx", option).code == 2


def test_without_its_packages_it_says_which_extra_brings_them(
    tool: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "fastapi")
    error = tool("serve", "m.onnx").error
    assert error.place == "serve"
    assert error.hint == extras.install_command("serve")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("models/det.v2.onnx", "det.v2"),
        ("zoo:silero-vad", "silero-vad"),
        ("net.py:build", "build"),
        ("C:\\models\\my model.onnx", "my-model"),
        ("über.onnx", "ber"),
        ("…", "model"),
        ("a" * 300 + ".onnx", "a" * 100),
    ],
)
def test_a_model_is_called_as_a_path_may_call_it(model: str, name: str) -> None:
    assert path_name(model) == name


def test_a_name_of_the_user_stands() -> None:
    assert required_name("det-2.1_a", place="--name") == "det-2.1_a"
    with pytest.raises(UsageError):
        required_name("-det", place="--name")


def test_what_the_runtime_says_against_a_model_is_an_error_of_the_call(
    tool: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no such provider here")

    monkeypatch.setattr("pytest_ortbench.serving.server.ModelServer", fails)
    relu(tmp_path / "net.onnx")
    ended = tool("serve", tmp_path / "net.onnx", "--port=0")
    assert ended.code == 2
    assert isinstance(ended.error, UsageError)
    assert ended.error.place == "MODEL, --provider"
    assert "--provider" not in ended.error.hint  # it is the CPU already


@pytest.mark.live
@pytest.mark.parametrize(
    ("model", "place", "example"),
    [("net.onnx", "--dims", "--dims=n:1"), (".", "MODEL", "net.onnx")],
)
def test_several_cases_are_refused_with_one_of_them(
    model: str, place: str, example: str, tool: Callable[..., Ended], tmp_path: Path
) -> None:
    for name in ("net.onnx", "other.onnx"):
        save(tmp_path / name, [helper.make_node("Relu", ["x"], ["y"])], shape=("n", 4))
    ended = tool("serve", tmp_path / model, "--dims=n:1:2")
    assert ended.code == 2
    assert ended.error.place == place
    assert example in ended.error.hint


def test_nothing_need_be_waited_for(
    tool: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    class Server:
        notes = ()

        def __init__(self, *arguments: ServiceLimits, **_: object) -> None:
            waits.append(arguments[-1].wait_s)

        def serve(self, *_: object, drain_s: float, **__: object) -> bool:
            waits.append(drain_s)
            return True

    monkeypatch.setattr("pytest_ortbench.serving.server.ModelServer", Server)
    relu(tmp_path / "net.onnx")
    ended = tool("serve", tmp_path / "net.onnx", "--batch-wait=0ms", "--drain=0s")
    assert (ended.code, waits) == (0, [0.0, 0.0])
