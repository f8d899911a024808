"""Where packages came from, if from no index: a wheel that was built here is another package.

Name and version alone do not tell it: a build of one's own mostly has those of the release that it
was made from, and the next build has the same file name again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urldefrag, urlsplit
from urllib.request import url2pathname

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_CHUNK = 1 << 20


def from_urls(requirements: Iterable[str]) -> frozenset[str]:
    """Return the normalised names of the packages that an URL is given for."""
    parsed = map(Requirement, requirements)
    return frozenset(
        str(canonicalize_name(requirement.name)) for requirement in parsed if requirement.url
    )


def file_digests(requirements: Iterable[str]) -> list[str]:
    """Return the digests of the local files that requirements name, sorted, with their packages."""
    named = {
        canonicalize_name(requirement.name): requirement.url or ""
        for requirement in map(Requirement, requirements)
    }
    digests = {name: _digest(url) for name, url in named.items()}
    return [f"{name} {digests[name]}" for name in sorted(digests) if digests[name]]


def sources(direct_urls: Mapping[str, str]) -> dict[str, str]:
    """Say of installed packages where they came from.

    Args:
        direct_urls: Content of ``direct_url.json`` (as the specification of packaging has it) by
            name of the package; one from an index has none.

    Returns:
        By name: the digest of a local file, the commit of a repository, else the URL with the
        digest that the installer noted.
    """
    return {name: _source(text) for name, text in direct_urls.items()}


def _source(text: str) -> str:
    try:
        noted = json.loads(text)
        url, vcs = str(noted["url"]), noted.get("vcs_info", {})
        archive = noted.get("archive_info", {})
        if "commit_id" in vcs:
            return f"{url}@{vcs['commit_id']}"
        hashes = {f"{name}={value}" for name, value in archive.get("hashes", {}).items()}
        if archive.get("hash"):
            hashes.add(str(archive["hash"]))
    except (ValueError, TypeError, KeyError, AttributeError):  # damaged: still from no index
        return "sha256=" + hashlib.sha256(text.encode()).hexdigest()
    return _digest(url) or " ".join([url, *sorted(hashes)])


def _digest(url: str) -> str:
    """Digest of the file that an URL names; empty if it names none that can be read here."""
    parts = urlsplit(urldefrag(url).url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return ""
    hasher = hashlib.sha256()
    try:
        with Path(url2pathname(parts.path)).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
    except (OSError, ValueError):  # a folder, or not there: the installer says so
        return ""
    return f"sha256={hasher.hexdigest()}"
