"""Which options of a provider are seen to be in force, and which nobody confirms.

A session reads options back, but *seen*: OpenVINO's reads back none, and QNN and plug-in providers
take any key and give back what they were given. Whether a provider looks at its options at all
shows where it is given one that nobody has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ortbench.core.case import Provider, SessionConfig
from pytest_ortbench.worker.session import create, options_for, options_in_force, session_options
from pytest_ortbench.worker.tiny import MATRIX_PRODUCT

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

#: An option that no provider has.
_MADE_UP = "ortbench_made_up_option"

#: Options that choose a device: whether it is the asked one is seen elsewhere.
_DEVICES = ("device_id", "device_type", "device", "backend_path", "backend_type")
_SPELT = {"true": "1", "false": "0", "on": "1", "off": "0"}


class OptionEvidence:
    """What is seen of a provider's options: those in force, and those that nothing confirms.

    Attributes:
        unconfirmed: The latter by alias and name, and why not; known once a session was seen.

    Args:
        provider: The provider, with its options; each link of a chain is looked at by itself.
    """

    def __init__(self, provider: Provider) -> None:
        self.unconfirmed: dict[str, str] = {}
        self._links = [_LinkEvidence(link) for link in provider.links]

    def try_out(self, *, threads: int) -> None:
        """See if the providers refuse an option that nobody has, so that they know what they take.

        It takes two tiny sessions each, before anything is measured; none for one without options
        beside its device, and one where its sessions read back more than they were given.
        """
        for link in self._links:
            link.try_out(threads=threads)

    def in_force(self, session: InferenceSession) -> dict[str, str]:
        """Return what a session with these options reads back, as far as that confirms anything.

        Options of a chain have the alias of their link before them.
        """
        found: dict[str, str] = {}
        for link in self._links:
            before = f"{link.alias}." if len(self._links) > 1 else ""
            read, doubtful = link.in_force(session)
            self.unconfirmed |= {f"{link.alias}.{key}": why for key, why in doubtful.items()}
            found |= {f"{before}{key}": value for key, value in read.items()}
        return found


class _LinkEvidence:
    """What is seen of the options of one provider."""

    def __init__(self, provider: Provider) -> None:
        self.alias = provider.alias
        self._provider = provider
        self._refuses = False

    def try_out(self, *, threads: int) -> None:
        """See if the provider refuses an option that nobody has."""
        provider = self._provider
        if not _beside_device(provider):
            return
        devices = {key: value for key, value in provider.options.items() if key in _DEVICES}
        plain = _tiny_session(provider, devices, threads)
        if plain is None or options_in_force(plain, provider.name).keys() - devices.keys():
            return
        self._refuses = _tiny_session(provider, {**devices, _MADE_UP: "1"}, threads) is None

    def in_force(self, session: InferenceSession) -> tuple[dict[str, str], dict[str, str]]:
        """Return what a session reads back, and what is doubtful of it with the reason."""
        read = options_in_force(session, self._provider.name)
        doubtful = self._doubtful(read)
        return {key: value for key, value in read.items() if key not in doubtful}, doubtful

    def _doubtful(self, read: Mapping[str, str]) -> dict[str, str]:
        given = _beside_device(self._provider)
        # One that gives back nothing but what it was given has not said what it knows.
        if not read.keys() - self._provider.options.keys():
            why = f"{self._provider.alias} takes any option, and reads none back"
            return {} if self._refuses else dict.fromkeys(given, why)
        asked = options_for(self._provider) if given else {}
        return {
            key: f"the session reads back {read.get(key, '')!r}"
            for key in given
            if not _is_equal(asked[key], read.get(key, ""))
        }


def _beside_device(provider: Provider) -> dict[str, str]:
    return {key: value for key, value in provider.options.items() if key not in _DEVICES}


def _tiny_session(
    provider: Provider, options: dict[str, str], threads: int
) -> InferenceSession | None:
    """A session of a tiny model with these options; ``None`` if there is none."""
    try:
        settings = session_options(SessionConfig(), threads=threads)
        asked = replace(provider, options=options)
        return create(MATRIX_PRODUCT.content, asked, settings)[0]
    except Exception:  # noqa: BLE001 - native errors have no common base class
        return None


def _is_equal(asked: str, read: str) -> bool:
    return _plain(asked) == _plain(read)


def _plain(text: str) -> str:
    lowered = text.strip().lower()
    return _SPELT.get(lowered, lowered)
