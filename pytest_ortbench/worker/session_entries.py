"""Session config entries: ONNX Runtime takes any key, and drops those that it does not know.

Which ones it knows is nowhere to be asked; but each stands as a constant in its library, where the
compiler did not take it apart (*seen*: ``session.load_model_format`` in 1.24).
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_ortbench.core.case import Case, Provider
from pytest_ortbench.core.errors import WorkerError, nearest
from pytest_ortbench.core.failures import case_error
from pytest_ortbench.core.session_entries import DOCUMENTED, is_documented
from pytest_ortbench.worker.plugins import is_bundled
from pytest_ortbench.worker.runtime import load

#: Beginnings of the keys that ONNX Runtime itself reads. Others belong to custom operators and
#: providers, whose libraries may be anywhere.
_OWN = ("session.", "optimization.", "mlas.", "ep.context_", "ep.share_ep_", "ep.stop_share_ep_")
_LIBRARIES = (
    *("onnxruntime_pybind11_state*", "libonnxruntime.*", "onnxruntime.dll"),
    *("libonnxruntime_providers_*", "onnxruntime_providers_*.dll"),
)
#: How alike two keys are behind their first dot before one is named for the other.
_NEAR = 0.75
#: Endings of source files, whose names stand in the libraries.
_SOURCES = (".cc", ".cpp", ".c", ".h", ".hpp", ".cu", ".py", ".json")
_KEY = re.compile(rb"((?:session|optimization|mlas|ep)\.[A-Za-z0-9_.]{2,80})\0")


def unconfirmed_entries(case: Case) -> dict[str, str]:
    """Return the entries of a case of which nothing proves that they do something, and why.

    An entry is confirmed where this ONNX Runtime knows the key, the value is one of those that it
    documents, and the key is no other provider's.

    Raises:
        WorkerError: for the first entry that nothing in this process could read.
    """
    entries = case.session.entries
    if not entries:
        return {}
    ort, _ = load()
    folder = Path(ort.__path__[0]) / "capi"
    own = [file for pattern in _LIBRARIES for file in folder.glob(pattern) if file.is_file()]
    others = _other_libraries(case)
    unconfirmed: dict[str, str] = {}
    for key, value in entries.items():
        if not own:
            unconfirmed[key] = "the libraries of this ONNX Runtime can't be searched"
        elif any(_holds(file, key) for file in own):
            unconfirmed[key] = _why_unconfirmed(key, value, case.provider)
        elif key in DOCUMENTED:
            # Not in every build is each key a constant of its own.
            unconfirmed[key] = (
                f"it is documented, but the library of ONNX Runtime {ort.__version__} does not "
                "contain it: it may belong to another version"
            )
        elif key.startswith(_OWN) or not (others or _may_be_read_elsewhere(case)):
            raise _unknown(key, ort.__version__, own)
        else:
            names = ", ".join(file.name for file in others if _holds(file, key))
            unconfirmed[key] = (
                f"it is in {names}, which does not report whether it reads it"
                if names
                else "ONNX Runtime does not know it, and no other reader reports it"
            )
    return {key: why for key, why in unconfirmed.items() if why}


def _why_unconfirmed(key: str, value: str, provider: Provider) -> str:
    owner = re.match(r"ep\.([A-Za-z0-9]+)\.", key)
    names = {name.lower() for link in provider.links for name in (link.alias, link.name)}
    names |= {link.name.lower().removesuffix("executionprovider") for link in provider.links}
    if owner is not None and owner[1].lower() not in names:
        return f"it is an option of {owner[1]}, but the provider is {provider.label}"
    if owner is None and key.startswith("ep.") and provider.computes_on_host:
        return "it is for providers that compile a part of the graph, and cpu compiles none"
    if is_documented(key, value):
        return ""
    return f"ONNX Runtime knows the key; whether {value!r} means something to it is not documented"


def _may_be_read_elsewhere(case: Case) -> bool:
    """Whether libraries that are not at hand here may read entries: those of a plug-in."""
    return any(is_bundled(link.name) for link in case.provider.links)


def _other_libraries(case: Case) -> list[Path]:
    """Libraries of the case that may read entries of their own."""
    libraries = [*case.session.custom_ops, *(link.library for link in case.provider.links)]
    return [Path(library) for library in dict.fromkeys(libraries) if library]


def _unknown(key: str, version: str, libraries: Sequence[Path]) -> WorkerError:
    near = _nearest_key(key, _known_keys(libraries))
    guess = f"Did you mean {near!r}? " if near else ""
    return case_error(
        f"ONNX Runtime {version} does not know the session option {key!r}",
        f"{guess}Correct --ort-session-option, or use a version of ONNX Runtime that has it",
        kind="error",
        phase="session",
    )


def _nearest_key(written: str, keys: Iterable[str]) -> str:
    """Return the key whose last part is nearest; empty if none is near.

    Beginnings that are equal make no two keys alike, and what a library holds may be no key: names
    of source files look like one, and what ends in a dot is only the beginning of keys.
    """
    names = {
        key.partition(".")[2]: key
        for key in sorted(keys, key=lambda key: key in DOCUMENTED)
        if not key.endswith((".", *_SOURCES))
    }
    return names.get(nearest(written.strip().partition(".")[2], names, _NEAR), "")


def _known_keys(libraries: Iterable[Path]) -> list[str]:
    keys: dict[str, None] = {}
    for library in libraries:
        with _content(library) as data:
            keys.update((match[1].decode("ascii"), None) for match in _KEY.finditer(data))
    return list(keys)


def _holds(file: Path, key: str) -> bool:
    """Whether the key is a whole constant of a library: a zero ends it."""
    try:
        with _content(file) as data:
            return data.find(key.encode("utf-8", "replace") + b"\0") >= 0
    except (OSError, ValueError):  # gone, or empty
        return False


@contextmanager
def _content(file: Path) -> Iterator[mmap.mmap]:
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
