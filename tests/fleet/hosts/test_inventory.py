"""The machines of an inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ortbench.core.errors import UsageError
from pytest_ortbench.fleet.hosts.facts import Host
from pytest_ortbench.fleet.hosts.inventory import hosts_of, read_inventory


def _content(**variables: Any) -> dict[str, Any]:
    return {
        "_meta": {"hostvars": {"lab-1": variables}},
        "all": {"children": ["ungrouped", "rack"]},
        "rack": {"hosts": ["lab-1"]},
        "ungrouped": {"hosts": ["lab-1"]},
    }


def test_a_machine_of_two_groups_stands_once() -> None:
    assert hosts_of(_content(), "hosts.yml") == [Host(name="lab-1")]


def test_variables_of_ours_say_how_it_is_measured_and_others_are_not_kept() -> None:
    content = _content(
        ansible_password="secret",
        ortbench_python="python3.12",
        ortbench_runtime="onnxruntime==1.20.1",
        ortbench_packages="numpy<2 torch",
        ortbench_folder="/data/ortbench",
        ortbench_machine="edge",
    )
    assert hosts_of(content, "hosts.yml") == [
        Host(
            name="lab-1",
            python="python3.12",
            runtime="onnxruntime==1.20.1",
            packages=("numpy<2", "torch"),
            folder="/data/ortbench",
            machine="edge",
        )
    ]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ortbench_pyhton", "python3"),
        ("ortbench_python", "python3; rm -rf /"),
        ("ortbench_python", 3),
        ("ortbench_folder", "relative"),
        ("ortbench_folder", "/data/$(id)"),
        ("ortbench_folder", "/"),
        ("ortbench_extra", "cpu]"),
        ("ortbench_machine", "a=b"),
        ("ortbench_runtime", "onnxruntime 1.20"),
        ("ortbench_packages", ["--index-url=x"]),
        ("ortbench_packages", {"a": 1}),
    ],
)
def test_a_variable_that_says_nothing_sensible_is_refused_by_its_place(
    variable: str, value: object
) -> None:
    with pytest.raises(UsageError) as refused:
        hosts_of(_content(**{variable: value}), "hosts.yml")
    assert refused.value.place == "hosts.yml, host lab-1"


@pytest.mark.parametrize(
    "name", ["../up", "a b", "a/b", ".hidden", "user@host", "-i", "a" * 300, "fleet.json"]
)
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    content = {"_meta": {"hostvars": {}}, "all": {"hosts": [name]}}
    with pytest.raises(UsageError):
        hosts_of(content, "hosts.yml")


@pytest.mark.parametrize(
    ("variables", "named"),
    [({"a": "rack", "b": "rack"}, "b"), ({"a": "b"}, "a"), ({"b": "a"}, "b")],
)
def test_two_machines_with_one_name_in_comparisons_are_refused(
    variables: dict[str, str], named: str
) -> None:
    own = {name: {"ortbench_machine": machine} for name, machine in variables.items()}
    content = {"_meta": {"hostvars": own}, "all": {"hosts": ["a", "b"]}}
    with pytest.raises(UsageError) as refused:
        hosts_of(content, "hosts.yml")
    assert refused.value.place == f"hosts.yml, host {named}"
    # A group that sets it for several can't be mended at one of them.
    assert (f"{named!r}" in refused.value.hint) == (len(variables) == 1)


def test_the_user_in_the_name_of_a_host_becomes_a_variable() -> None:
    content = {"_meta": {"hostvars": {}}, "all": {"hosts": ["anna@10.0.0.5"]}}
    with pytest.raises(UsageError) as refused:
        hosts_of(content, "hosts.yml")
    for part in ("'10.0.0.5' as ansible_host", "'anna' as ansible_user"):
        assert part in refused.value.hint


def test_an_option_of_pip_is_no_package() -> None:
    with pytest.raises(UsageError) as refused:
        hosts_of(_content(ortbench_packages="onnxruntime-gpu --pre"), "hosts.yml")
    assert "numpy" not in refused.value.hint
    assert "'--pre'" in refused.value.message


@pytest.mark.parametrize("name", ["rack", "all"])
def test_a_machine_with_the_name_of_a_group_is_refused(name: str) -> None:
    content = {**_content(), "ungrouped": {"hosts": ["lab-1", name]}}
    with pytest.raises(UsageError) as refused:
        hosts_of(content, "hosts.yml")
    assert refused.value.place == f"hosts.yml, host {name}"


@pytest.mark.live
def test_ansible_reads_the_inventory(tmp_path: Path) -> None:
    path = tmp_path / "hosts.ini"
    path.write_text("[rack]\na ortbench_extra=gpu\nb\n\n[desk]\nc\n")
    assert [host.name for host in read_inventory(path, "rack")] == ["a", "b"]
    assert read_inventory(path, "a") == [Host(name="a", extra="gpu")]
    with pytest.raises(UsageError):
        read_inventory(path, "nosuch")


@pytest.mark.live
@pytest.mark.parametrize("text", ["[broken", ""])
def test_what_is_no_inventory_is_refused_by_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.ini"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_inventory(path)
    assert refused.value.place == str(path)


@pytest.mark.live
def test_the_reason_is_that_of_the_form_of_the_file(tmp_path: Path) -> None:
    json_file, script, folder = (tmp_path / name for name in ("a.json", "script", "empty"))
    json_file.write_text('{"all": {"hosts')
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    folder.mkdir()
    messages = []
    for path in (json_file, script, folder):
        with pytest.raises(UsageError) as refused:
            read_inventory(path)
        messages.append(refused.value.message)
    assert "YAML" in messages[0]
    assert "exit code 3" in messages[1]
    assert " file" not in messages[2]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read_inventory(tmp_path / "nosuch.yml")
    assert refused.value.place == "--inventory"
