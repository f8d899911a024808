"""Packages that came from no index: by their content, and never taken for the index's own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pytest_ortbench.runtimes.package_sources import file_digests, from_urls, sources
from pytest_ortbench.runtimes.resolve import choose_runtimes
from tests.launch.test_runtimes_environments import Made, listed

pytestmark = pytest.mark.live

WHEEL = "onnxruntime-1.20.1-py3-none-any.whl"


def built(folder: Path, content: bytes) -> str:
    """A wheel of one's own, as a requirement."""
    folder.mkdir(exist_ok=True)
    (folder / WHEEL).write_bytes(content)
    return f"onnxruntime @ {(folder / WHEEL).as_uri()}"


def test_a_wheel_of_ones_own_is_not_the_index_s(tmp_path: Path) -> None:
    environments = Made(tmp_path / "cache")
    released = environments.ensure(listed("onnxruntime==1.20.1"))
    own = environments.ensure(listed(built(tmp_path / "build", b"mine")))
    assert own.folder != released.folder
    assert own.manifest.packages == released.manifest.packages
    digest = hashlib.sha256(b"mine").hexdigest()
    assert (released.manifest.sources, own.manifest.sources) == (
        {},
        {"onnxruntime": f"sha256={digest}"},
    )
    assert environments.ensure(listed("onnxruntime==1.20.1")) == released
    assert len(environments.installer.made) == 2


def test_the_next_build_under_the_same_name_is_installed(tmp_path: Path) -> None:
    environments = Made(tmp_path / "cache")
    first = environments.ensure(listed(built(tmp_path / "build", b"one")))
    assert environments.ensure(listed(built(tmp_path / "build", b"one"))) == first
    second = environments.ensure(listed(built(tmp_path / "build", b"two")))
    assert second.folder != first.folder
    assert len(environments.installer.made) == 2


def test_the_same_wheel_in_two_places_is_one_environment(tmp_path: Path) -> None:
    environments = Made(tmp_path / "cache")
    first = environments.ensure(listed(built(tmp_path / "here", b"one")))
    second = environments.ensure(listed(built(tmp_path / "there", b"one")))
    assert second.folder == first.folder


def test_an_environment_that_is_not_known_to_hold_the_wheel_is_not_taken(tmp_path: Path) -> None:
    """One from an index that was once found to answer a request for a file."""
    environments = Made(tmp_path / "cache")
    text = "onnxruntime @ https://example.org/onnxruntime-1.20.1-py3-none-any.whl"
    made = environments.ensure(listed(text))
    assert environments.ensure(listed(text)) == made
    manifest = made.folder / "ortbench.json"
    plain = json.loads(manifest.read_text())
    plain["sources"] = {}
    manifest.write_text(json.dumps(plain))
    environments.ensure(listed(text))
    assert len(environments.installer.made) == 2


def test_both_are_runtimes_of_one_run(tmp_path: Path) -> None:
    chosen = choose_runtimes(
        ["onnxruntime==1.20.1", built(tmp_path / "build", b"mine")],
        root=tmp_path,
        environments=lambda: Made(tmp_path / "cache"),
        notify=lambda _: None,
    )
    assert [each.label for each in chosen.runtimes] == [
        "onnxruntime-1.20.1",
        "onnxruntime-1.20.1-2",
    ]
    assert len({each.command for each in chosen.runtimes}) == 2


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        ({"url": "https://e.org/a.whl", "archive_info": {}}, "https://e.org/a.whl"),
        (
            {"url": "https://e.org/a.whl", "archive_info": {"hashes": {"sha256": "12"}}},
            "https://e.org/a.whl sha256=12",
        ),
        (
            {
                "url": "https://e.org/a.whl",
                "archive_info": {"hash": "sha256=12", "hashes": {"sha256": "12"}},
            },
            "https://e.org/a.whl sha256=12",
        ),
        (
            {"url": "https://e.org/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "https://e.org/r.git@abc",
        ),
        ({"url": "file:///nowhere/src", "dir_info": {}}, "file:///nowhere/src"),
        (
            {"url": "file:///nowhere/a.whl", "archive_info": {"hash": "sha256=12"}},
            "file:///nowhere/a.whl sha256=12",
        ),
    ],
)
def test_what_an_installer_notes(noted: dict[str, object], source: str) -> None:
    assert sources({"a": json.dumps(noted)}) == {"a": source}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"url": "x", "vcs_info": 3}'])
def test_a_damaged_note_is_a_source_of_its_own(text: str) -> None:
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert sources({"a": text}) == {"a": f"sha256={digest}"}


def test_a_name_with_spaces_and_a_fragment(tmp_path: Path) -> None:
    requirement = built(tmp_path / "my build", b"one")
    assert "%20" in requirement
    digest = hashlib.sha256(b"one").hexdigest()
    assert file_digests([f"{requirement}#x=1", "numpy"]) == [f"onnxruntime sha256={digest}"]
    assert file_digests(["onnxruntime==1.20.1", "numpy @ file:///nowhere.whl"]) == []


def test_names_with_an_url() -> None:
    assert from_urls(["onnxruntime==1", "My_Plugin @ https://e.org/p.whl"]) == {"my-plugin"}
