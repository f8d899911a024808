"""Runtimes as they are written: specifications, configuration, and what ``auto`` makes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ortbench.core.errors import UsageError, WorkerError
from pytest_ortbench.core.outcome import Failure
from pytest_ortbench.launch.remote_shell import for_remote_shell
from pytest_ortbench.runtimes.auto import Hardware, suiting_runtimes, this_hardware
from pytest_ortbench.runtimes.config import ConfiguredRuntime, configured_runtimes
from pytest_ortbench.runtimes.environments import Environment, Environments, Manifest
from pytest_ortbench.runtimes.resolve import ChosenRuntimes, choose_runtimes
from pytest_ortbench.runtimes.specs import (
    RequirementList,
    parse_requirements,
    parse_spec,
    split_requirements,
)
from tests.refused import refused


def listed(text: str) -> RequirementList:
    """A requirement list as it is typed."""
    parsed = parse_spec(text, ())
    assert isinstance(parsed, RequirementList)
    return parsed


# -- specifications -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "requirements", "label"),
    [
        ("onnxruntime==1.20.1", ("onnxruntime==1.20.1",), "onnxruntime-1.20.1"),
        (
            "onnxruntime==1.30.0+onnxruntime-qnn",
            ("onnxruntime==1.30.0", "onnxruntime-qnn"),
            "onnxruntime-1.30.0+onnxruntime-qnn",
        ),
        (
            "onnxruntime_GPU[cuda,cudnn]==1.22.0 + numpy",
            ("onnxruntime-gpu[cuda,cudnn]==1.22.0", "numpy"),
            "onnxruntime-gpu-1.22.0+numpy",
        ),
        (
            "onnxruntime-gpu==1.20.0+cu118",
            ("onnxruntime-gpu==1.20.0+cu118",),
            "onnxruntime-gpu-1.20.0+cu118",
        ),
        (
            "onnxruntime-rocm==1.20.0+rocm6.2+numpy",
            ("onnxruntime-rocm==1.20.0+rocm6.2", "numpy"),
            "onnxruntime-rocm-1.20.0+rocm6.2+numpy",
        ),
        ("onnxruntime>=1.18,<1.20", ("onnxruntime<1.20,>=1.18",), "onnxruntime"),
        ("onnxruntime==1.18.*", ("onnxruntime==1.18.*",), "onnxruntime"),
        (
            "onnxruntime@file:///w/onnxruntime-1.33+cpu-cp311.whl",
            ("onnxruntime@ file:///w/onnxruntime-1.33+cpu-cp311.whl",),
            "onnxruntime",
        ),
        ("ort-nightly", ("ort-nightly",), "ort-nightly"),
        ("acme-onnxruntime==2", ("acme-onnxruntime==2",), "acme-onnxruntime-2"),
    ],
)
def test_a_requirement_list(text: str, requirements: tuple[str, ...], label: str) -> None:
    parsed = listed(text)
    assert [each.replace(" @", "@") for each in parsed.requirements] == list(requirements)
    assert parsed.label({}) == label


def test_the_label_has_the_versions_that_came_of_it() -> None:
    parsed = listed("onnxruntime+onnxruntime_qnn==2.*")
    installed = {"onnxruntime": "1.31.0", "onnxruntime-qnn": "2.1.0", "numpy": "2.0"}
    assert parsed.label(installed) == "onnxruntime-1.31.0+onnxruntime-qnn-2.1.0"


def test_order_and_spelling_do_not_make_another_request() -> None:
    assert (
        listed("Onnxruntime==1.20.1+numpy>=1,<3").request
        == listed("numpy<3, >=1 + onnxruntime == 1.20.1").request
    )


@pytest.mark.parametrize(
    ("text", "onnxruntime", "extra"),
    [
        ("onnxruntime==1.15.1", "", ["numpy<2"]),
        ("onnxruntime==1.18.1", "", ["numpy<2"]),
        ("onnxruntime==1.19.0", "", []),
        ("onnxruntime==1.32.0", "", []),
        ("onnxruntime-openvino==1.18.0", "", ["numpy<2"]),
        ("onnxruntime<1.19", "", []),
        ("onnxruntime<1.19", "1.18.1", ["numpy<2"]),
        ("onnxruntime<1.20", "1.19.2", []),
        ("onnxruntime==1.15.1+numpy==1.23.5", "", []),
        ("onnxruntime==1.32.0+onnxruntime-extensions==0.14", "", []),
        ("onnxruntime==1.32.0+onnxruntime-qnn==1.2", "", []),
        ("onnxruntime==1.15.1+onnxruntime-extensions==0.14", "", ["numpy<2"]),
    ],
)
def test_versions_before_1_19_get_numpy_1(text: str, onnxruntime: str, extra: list[str]) -> None:
    parsed = listed(text)
    assert parsed.to_install(onnxruntime=onnxruntime) == [*parsed.requirements, *extra]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("curent", "'curent' is neither a configured runtime nor a package of ONNX Runtime. "
         "Did you mean 'current'?"),
        ("gpubox", "Did you mean 'gpu-box'?"),
        ("onnxruntim", "Did you mean 'onnxruntime'?"),
        ("torch", "onnxruntime==1.20.1, or one of the names current, auto, gpu-box"),
        ("numpy+torch", "'numpy+torch' contains no package of ONNX Runtime. Add one"),
        ("onnxruntime-extensions", "is neither a configured runtime nor a package"),
        ("onnxruntime==", "pip can't read 'onnxruntime=='"),
        ("onnxruntime=1.2", "pip can't read 'onnxruntime=1.2'"),
        ("onnxruntime=1.2", "Write e.g. onnxruntime==1.2, "),
        ("onnxruntime-gpu 1.20.1", "Write e.g. onnxruntime-gpu==1.20.1, "),
        ("1.22.0", "Write a package such as onnxruntime==1.22.0"),
        ("onnxruntime==1.20.1+", "'onnxruntime==1.20.1+' has an empty part"),
        ("onnxruntime+Onnxruntime==1.2", "names onnxruntime twice. Keep one of them"),
    ],
)  # fmt: skip
def test_a_wrong_specification_is_one_message(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text, ["gpu-box"])
    assert str(caught.value).startswith("--ort-runtimes: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_genai_has_onnx_runtime_installed_with_it() -> None:
    parsed = listed("onnxruntime-genai==0.17.1")
    assert parsed.label({"onnxruntime": "1.32.0"}) == "onnxruntime-genai-0.17.1"
    assert parsed.to_install() == ["onnxruntime-genai==0.17.1"]


def test_names_win_over_requirements() -> None:
    assert parse_spec(" current ", ()) == "current"
    assert parse_spec("auto", ()) == "auto"
    assert parse_spec("onnxruntime", ["onnxruntime"]) == "onnxruntime"


_REQUIREMENTS = st.lists(
    st.sampled_from(
        ["onnxruntime==1.20.1", "numpy<2", "onnxruntime-qnn[x,y]", "a>=1,!=1.2", "b==1+cu118"]
    ),
    min_size=1,
    max_size=5,
)


@given(_REQUIREMENTS)
def test_splitting_undoes_joining(pieces: list[str]) -> None:
    assert split_requirements("+".join(pieces)) == pieces


# -- configuration --------------------------------------------------------------------------------


def configured(folder: Path, text: str, *, file: str = "pyproject.toml") -> ConfiguredRuntime:
    """The only runtime of a configuration."""
    (folder / file).write_text(text)
    (runtime,) = configured_runtimes(folder).values()
    return runtime


def test_a_command(tmp_path: Path) -> None:
    runtime = configured(
        tmp_path,
        """
        [tool.ortbench.runtimes.node0]
        command = ["numactl", "--cpunodebind=0", "/opt/ort/bin/python"]
        environment = { OMP_NUM_THREADS = "4" }
        """,
    )
    assert runtime.name == "node0"
    assert runtime.command_with("") == ("numactl", "--cpunodebind=0", "/opt/ort/bin/python")
    assert runtime.environment == {"OMP_NUM_THREADS": "4"}
    assert runtime.shares_files
    assert not runtime.through_shell
    assert runtime.place == f"{tmp_path / 'pyproject.toml'} [tool.ortbench.runtimes.node0]"


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        (
            'command = ["taskset", "-c", "0"]\npython = "current"',
            ("taskset", "-c", "0", sys.executable),
        ),
        ('python = "/opt/py/bin/python3"', ("/opt/py/bin/python3",)),
        ('python = "current"', (sys.executable,)),
    ],
)
def test_a_python_stands_behind_the_command(
    tmp_path: Path, lines: str, command: tuple[str, ...]
) -> None:
    assert configured(tmp_path, f"[tool.ortbench.runtimes.x]\n{lines}").command_with("") == command


@pytest.mark.parametrize(
    "written", ['"onnxruntime==1.20.1+numpy"', '["onnxruntime==1.20.1", "numpy"]']
)
def test_an_environment_behind_a_command(tmp_path: Path, written: str) -> None:
    runtime = configured(
        tmp_path,
        f'[runtimes.x]\ncommand = ["nice"]\npython = "3.11"\nrequirements = {written}',
        file="ortbench.toml",
    )
    assert runtime.requirements == parse_requirements(["onnxruntime==1.20.1", "numpy"])
    assert runtime.command_with("/made/bin/python") == ("nice", "/made/bin/python")


@pytest.mark.parametrize(
    ("program", "shares_files", "through_shell"),
    [
        ("ssh", False, True),
        ("/usr/bin/ssh", False, True),
        ("docker", False, False),
        ("podman", False, False),
        ("numactl", True, False),
        ("/opt/python", True, False),
    ],
)
def test_what_a_program_is_known_for(
    tmp_path: Path, program: str, shares_files: bool, through_shell: bool
) -> None:
    text = f'[tool.ortbench.runtimes.x]\ncommand = ["{program}", "host", "python3"]\n'
    runtime = configured(tmp_path, text)
    assert (runtime.shares_files, runtime.through_shell) == (shares_files, through_shell)
    other = configured(tmp_path, text + "shares_files = true\nthrough_shell = false\n")
    assert (other.shares_files, other.through_shell) == (True, False)


def test_words_for_a_remote_shell_are_quoted(tmp_path: Path) -> None:
    runtime = configured(
        tmp_path,
        """
        [tool.ortbench.runtimes.board]
        command = ["ssh", "-p", "22 22", "-oX=$Y", "me@board", "env", "A=$B; c", "/my python"]
        """,
    )
    assert runtime.command_with("") == (
        "ssh", "-p", "22 22", "-oX=$Y", "me@board", "env", "'A=$B; c'", "'/my python'",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "host"),
    [
        (["ssh", "h", "w w"], 1),
        (["ssh", "-T", "-p", "1", "h", "w w"], 4),
        (["ssh", "-Tp1", "h", "w w"], 2),
        (["ssh", "-Tp", "1", "h", "w w"], 3),
        (["ssh", "-o", "A b", "--", "h", "w w"], 4),
        (["ssh", "h", "-p", "1", "w w"], 1),
        (["ssh", "-i", "a b", "h"], 3),
    ],
)
def test_what_follows_the_host_is_found(words: list[str], host: int) -> None:
    quoted = for_remote_shell(words)
    assert quoted[: host + 1] == tuple(words[: host + 1])
    assert [word for word in quoted if word.startswith("'")] == ["'w w'"] * ("w w" in words)


def test_the_nearest_configuration_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ortbench.runtimes.outer]\npython = "/o"')
    project = tmp_path / "project"
    below = project / "tests" / "deep"
    below.mkdir(parents=True)
    assert list(configured_runtimes(below)) == ["outer"]
    (project / "pyproject.toml").write_text("[project]\nname = 'x'")
    assert configured_runtimes(below) == {}
    (project / "ortbench.toml").write_text('[runtimes.inner]\npython = "/i"')
    assert list(configured_runtimes(below)) == ["inner"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n[tool", "pyproject.toml: the file is not valid TOML"),
        ("tool.ortbench.runtimes = 1", "tool.ortbench.runtimes is 1, not a table"),
        (
            "[tool.ortbench.runtimes]\nx = 1",
            "[tool.ortbench.runtimes.x]: the entry is 1, not a table",
        ),
        (
            "[tool.ortbench.runtimes]\nx = 'onnxruntime==1.20.1'",
            '{ requirements = ["onnxruntime==1.20.1"] }',
        ),
        ("[tool.ortbench.runtimes]\nx = '/opt/bin/python'", '{ command = ["/opt/bin/python"] }'),
        ("[tool.ortbench.runtimes.x]", "the runtime has neither packages to install nor"),
        ("[tool.ortbench.runtimes.current]\npython='x'", "'current' can't be the name"),
        ("[tool.ortbench.runtimes.'a b']\npython='x'", "'a b' can't be the name"),
        (
            "[tool.ortbench.runtimes.x]\ncomand=['a']",
            "the key 'comand' is not known. Did you mean 'command'?",
        ),
        (
            "[tool.ortbench.runtimes.x]\ncommand='ssh h'",
            "command is one string, not a list",
        ),
        ("[tool.ortbench.runtimes.x]\ncommand=[1]", "command is [1], not a list of strings"),
        ("[tool.ortbench.runtimes.x]\ncommand=[]", "command is empty"),
        ("[tool.ortbench.runtimes.x]\npython=3.11", 'python = "3.11"'),
        ("[tool.ortbench.runtimes.x]\npython=3.10", 'python = "3.10"'),
        (
            "[tool.ortbench.runtimes]\nx=['onnxruntime==1.20.1', 'numpy<2']",
            '{ requirements = ["onnxruntime==1.20.1", "numpy<2"] }',
        ),
        ("[tool.ortbench.runtimes.x]\nenvironment={A='1'}", 'python = "current"'),
        (
            "[tool.ortbench.runtimes.x]\nrequirements='torch'",
            "x] requirements: 'torch' is not a package of ONNX Runtime",
        ),
        ("[tool.ortbench.runtimes.x]\npython='p'\nenvironment='a'", "environment is 'a'"),
        (
            "[tool.ortbench.runtimes.x]\npython='p'\nenvironment={A=1}",
            'environment.A = "1"',
        ),
        ("[tool.ortbench.runtimes.x]\npython='p'\nenvironment={A=true}", 'environment.A = "true"'),
        (
            "[tool.ortbench.runtimes.x]\npython='p'\nshares_files='no'",
            "shares_files is 'no', not true or false",
        ),
    ],
)
def test_a_wrong_configuration_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        configured_runtimes(tmp_path)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)
    assert message in str(caught.value)


# -- auto -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hardware", "specs"),
    [
        (
            Hardware(system="linux", machine="x86_64"),
            ["current", "onnxruntime-openvino", "onnxruntime+onnxruntime-qnn"],
        ),
        (
            Hardware(system="linux", machine="x86_64", nvidia="/dev/nvidia0"),
            [
                "current",
                "onnxruntime-gpu[cuda,cudnn]",
                "onnxruntime-openvino",
                "onnxruntime+onnxruntime-qnn",
            ],
        ),
        (
            Hardware(system="linux", machine="x86_64", amd="/dev/kfd"),
            [
                "current",
                "onnxruntime-migraphx",
                "onnxruntime-openvino",
                "onnxruntime+onnxruntime-qnn",
            ],
        ),
        (Hardware(system="darwin", machine="arm64"), ["current", "onnxruntime"]),
        (
            Hardware(system="win32", machine="arm64", qualcomm="Qualcomm X1"),
            ["current", "onnxruntime-directml", "onnxruntime+onnxruntime-qnn"],
        ),
        (
            Hardware(system="linux", machine="arm64", ascend="/dev/davinci0"),
            ["current", "onnxruntime-cann"],
        ),
        (Hardware(system="linux", machine="riscv64"), ["current"]),
    ],
    ids=lambda value: value.system if isinstance(value, Hardware) else "",
)
def test_auto_suits_the_machine(hardware: Hardware, specs: list[str]) -> None:
    choices = suiting_runtimes(hardware)
    assert [each.spec for each in choices] == specs
    assert all(each.reason for each in choices)
    for each in choices:
        parse_spec(each.spec, ())


def test_auto_makes_nothing_that_current_has() -> None:
    hardware = Hardware(system="linux", machine="x86_64", nvidia="/dev/nvidia0")
    here = suiting_runtimes(hardware, ["onnxruntime-gpu", "onnxruntime-qnn"])
    assert [each.spec for each in here] == ["current", "onnxruntime-openvino"]
    assert here[0].spec == "current"


@pytest.mark.parametrize(
    ("path", "content", "field", "value"),
    [
        ("dev/nvidia0", "", "nvidia", "/dev/nvidia0"),
        ("proc/driver/nvidia/version", "", "nvidia", "/proc/driver/nvidia/version"),
        ("dev/kfd", "", "amd", "/dev/kfd"),
        ("dev/davinci0", "", "ascend", "/dev/davinci0"),
        ("proc/device-tree/compatible", "acme,board\0qcom,qcs6490\0", "qualcomm", "qcom,qcs6490"),
    ],
)
def test_hardware_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    content: str,
    field: str,
    value: str,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert getattr(this_hardware(tmp_path), field) == ""
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(content)
    assert getattr(this_hardware(tmp_path), field) == value


@pytest.mark.parametrize(
    ("vendor", "kind", "field"),
    [("0x10de", "0x030000", "nvidia"), ("0x1002", "0x030200", "amd"), ("0x10de", "0x020000", "")],
)
def test_a_gpu_without_its_driver_is_found_on_the_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: str, kind: str, field: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")
    found = this_hardware(tmp_path)
    assert {name for name in ("nvidia", "amd") if getattr(found, name)} == ({field} - {""})
    if field:
        assert getattr(found, field) == "PCI 0000:01:00.0"


# -- from specifications to runtimes --------------------------------------------------------------


class Stub(Environments):
    """Environments that exist as soon as they are asked for, at a version that the test gives."""

    def __init__(self, versions: dict[str, str]) -> None:
        super().__init__(Path("/nowhere"), notify=lambda _: None)
        self._versions = versions
        self.asked: list[tuple[str, str]] = []

    def ensure(self, requirements: RequirementList, *, python: str = "") -> Environment:
        self.asked.append((requirements.request, python))
        version = self._versions.get(requirements.request)
        if version is None:
            raise WorkerError(
                Failure(kind="unavailable", phase="start", message=f"no {requirements.request}")
            )
        packages = {requirements.requirements[0].partition("=")[0]: version}
        label = requirements.label(packages)
        manifest = Manifest(
            label=label, requests=(), python="3", platform="p", packages=packages,
            onnxruntime=version, numpy="2", created_at="", size_bytes=1, made_with="",
        )  # fmt: skip
        return Environment(folder=Path("/made") / label, manifest=manifest)


Choose = Callable[..., ChosenRuntimes]


@pytest.fixture
def chosen(tmp_path: Path) -> Choose:
    """Chooses runtimes; environments exist for two lists."""

    def choose_them(*specs: str, said: list[str] | None = None) -> ChosenRuntimes:
        versions = {
            "onnxruntime": "1.32.0",
            "onnxruntime==1.32.0": "1.32.0",
            "onnxruntime==1.20.1": "1.20.1",
            "onnxruntime-openvino": "1.24.1",
        }
        notes = said if said is not None else []
        return choose_runtimes(
            specs,
            root=tmp_path,
            environments=lambda: Stub(versions),
            notify=notes.append,
            hardware=lambda: Hardware(system="linux", machine="x86_64"),
        )

    return choose_them


def test_current_is_the_plain_interpreter(chosen: Choose) -> None:
    (runtime,) = chosen("current").runtimes
    assert (runtime.label, runtime.command, runtime.isolated) == (
        "current",
        (sys.executable,),
        False,
    )


def test_an_environment_is_isolated_and_named_after_its_version(chosen: Choose) -> None:
    current, made = chosen("current", "onnxruntime==1.20.1").runtimes
    assert current.label == "current"
    assert made.label == "onnxruntime-1.20.1"
    assert made.isolated
    assert made.requirements == ("onnxruntime==1.20.1",)
    assert Path(made.command[0]).parts[:3] == ("/", "made", "onnxruntime-1.20.1")


def test_the_same_runtime_twice_is_one(chosen: Choose) -> None:
    found = chosen("current", "onnxruntime", "onnxruntime==1.32.0", "current")
    assert [each.label for each in found.runtimes] == ["current", "onnxruntime-1.32.0"]


def test_a_named_runtime_that_can_not_be_had_is_a_failure(chosen: Choose) -> None:
    found = chosen("current", "onnxruntime==99", "onnxruntime==1.20.1")
    assert [each.label for each in found.runtimes] == [
        "current",
        "onnxruntime-99",
        "onnxruntime-1.20.1",
    ]
    assert {label: failure.message for label, failure in found.failures.items()} == {
        "onnxruntime-99": "no onnxruntime==99"
    }
    assert found.skips == ()


def test_auto_says_what_and_why_and_leaves_out_what_fails(chosen: Choose) -> None:
    said: list[str] = []
    found = chosen("auto", said=said)
    assert [each.label for each in found.runtimes] == ["current", "onnxruntime-openvino-1.24.1"]
    assert [line.split(": ")[1] for line in said] == [
        "current",
        "onnxruntime-openvino",
        "onnxruntime+onnxruntime-qnn",
    ]
    assert found.failures == {}
    assert [skip.what for skip in found.skips] == ["onnxruntime+onnxruntime-qnn"]


def test_a_configured_runtime(chosen: Choose, tmp_path: Path) -> None:
    (tmp_path / "ortbench.toml").write_text(
        """
        [runtimes.board]
        command = ["ssh", "board", "python3"]
        environment = { LANG = "C" }
        [runtimes.pinned]
        command = ["taskset", "-c", "0"]
        requirements = "onnxruntime==1.20.1"
        """
    )
    board, pinned = chosen("board", "pinned").runtimes
    assert board.label == "board"
    assert board.command == ("ssh", "board", "python3")
    assert board.environment == {"LANG": "C"}
    assert (board.shares_files, board.through_shell, board.isolated) == (False, True, False)
    assert pinned.label == "pinned"
    assert pinned.command[:3] == ("taskset", "-c", "0")
    assert pinned.command[3].startswith("/made/onnxruntime-1.20.1/")
    assert pinned.isolated


def test_a_wrong_specification_stops_before_anything_is_made(tmp_path: Path) -> None:
    environments = Stub({"onnxruntime": "1.32.0"})
    with refused(UsageError, "'torch'", place="ort_runtimes in x"):
        choose_runtimes(
            ["onnxruntime", "torch"],
            root=tmp_path,
            environments=lambda: environments,
            notify=lambda _: None,
            place="ort_runtimes in x",
        )
    assert environments.asked == []


@pytest.mark.parametrize("text", ["onnxruntime-ep-openvino==1.8.1", "onnxruntime-ep-webgpu"])
def test_what_needs_a_distribution_beside_it_is_told_with_one(text: str) -> None:
    with refused(UsageError, text, hint=f"onnxruntime+{text}"):
        parse_spec(text, ())
    assert listed(f"onnxruntime+{text}").requirements == ("onnxruntime", text)


def test_a_wrong_table_does_not_stop_who_names_none(chosen: Choose, tmp_path: Path) -> None:
    (tmp_path / "ortbench.toml").write_text("[runtimes.x]\nnonsense = 1")
    assert [each.label for each in chosen("current").runtimes] == ["current"]
    with refused(UsageError, "'nonsense'"):
        chosen("onnxruntime==1.20.1")
