"""Where the requests of an endpoint go, as people write it, and the protocol that follows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

#: Protocols, and how the address of each is written.
FORMS: dict[str, str] = {
    "v2": "http://HOST:PORT/v2/models/NAME/infer",
    "grpc": "grpc://HOST:PORT/NAME",
    "openai": "http://HOST:PORT/v1/completions",
    "custom": "custom:FILE.py:FUNCTION",
}
#: Ways of writing tensors that the Open Inference Protocol has.
ENCODINGS = ("binary", "json")
#: How a function of the user's writes them.
OWN_ENCODING = "own"
#: What requests to language models are written as: tokens in JSON, in OpenAI's protocol.
OPENAI = "openai"

_LONGEST = 2000
_SCHEMES = ("http", "https", "grpc")
_V2 = re.compile(r"(?P<root>.*)/v2/models/(?P<model>[^/]+)(?P<version>/versions/[^/]+)?/infer")
_SLASHED = re.compile(r"https?://.*/v2/models/(?P<model>(?!.*/versions/)[^/]+/.*[^/])/infer")
_GRPC_SCHEME = "grpc"
_GRPC = re.compile(r"/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?")
_COMPLETIONS = re.compile(r"(?P<root>.*)/v1/completions")
_CUSTOM = re.compile(r"custom:(?P<file>[^\0\r\n]+\.py):(?P<function>[^\W\d]\w*)", re.IGNORECASE)
_NO_ADDRESS = re.compile(r"[\s\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddress:
    """The address of a model that a service runs.

    Attributes:
        protocol: A key of :data:`FORMS`.
        url: What requests are sent to; without name, password or query. Of ``custom`` what the
            user wrote.
        root: What stands before the protocol's own part of it: ``http://127.0.0.1:8000``; of
            ``grpc`` host and port.
        model: Name of the model at the service.
        version: ``/versions/2`` where one is asked for, of ``grpc`` the number; else empty.
        file: Of ``custom`` the Python file that sends requests.
        function: Of ``custom`` its function.
    """

    protocol: str
    url: str
    root: str = ""
    model: str = ""
    version: str = ""
    file: str = ""
    function: str = ""

    @property
    def model_url(self) -> str:
        """Where the service describes the model."""
        return f"{self.root}/v2/models/{self.model}{self.version}"

    @property
    def models_url(self) -> str:
        """Where a service of language models lists them."""
        return f"{self.root}/v1/models"

    @property
    def server_url(self) -> str:
        """Where the service describes itself."""
        return f"{self.root}/v2"


def address_of(text: str) -> EndpointAddress | None:
    """Return the address that a text is; ``None`` for what is none of a protocol that is known."""
    text = text.strip()
    own = _CUSTOM.fullmatch(text)
    if own is not None:
        return EndpointAddress(
            protocol="custom", url=text, file=own["file"], function=own["function"]
        )
    parts = _split(text)
    if parts is None or holds_secrets(text):
        return None
    if parts.scheme == _GRPC_SCHEME:
        named = _GRPC.fullmatch(parts.path)
        if named is None or parts.port is None:
            return None
        return EndpointAddress(
            protocol="grpc",
            url=text,
            root=parts.netloc,
            model=named["model"],
            version=named["version"] or "",
        )
    root = f"{parts.scheme}://{parts.netloc}"
    texts = _COMPLETIONS.fullmatch(parts.path)
    if texts is not None:
        return EndpointAddress(protocol=OPENAI, url=text, root=root + texts["root"])
    match = _V2.fullmatch(parts.path)
    if match is None:
        return None
    return EndpointAddress(
        protocol="v2",
        url=text,
        root=root + match["root"],
        model=match["model"],
        version=match["version"] or "",
    )


def slashed_name(text: str) -> str:
    """Return the name of a model in an address of the Open Inference Protocol that has a slash.

    Empty where there is none.
    """
    match = _SLASHED.fullmatch(text.strip())
    return match["model"] if match else ""


def service_of(text: str) -> str:
    """Return ``http://HOST:PORT`` for the address of a service without a model, else nothing."""
    parts = _split(text.strip())
    if parts is None or parts.scheme == _GRPC_SCHEME or parts.path not in ("", "/"):
        return ""
    return "" if holds_secrets(text) else f"{parts.scheme}://{parts.netloc}"


def host_of(text: str) -> str:
    """Return ``http://HOST:PORT`` of an address over HTTP that has a path, else nothing."""
    parts = _split(text.strip())
    if parts is None or parts.scheme == _GRPC_SCHEME or parts.path in ("", "/"):
        return ""
    return "" if holds_secrets(text) else f"{parts.scheme}://{parts.netloc}"


def holds_credentials(text: str) -> bool:
    """Return whether an address has a name or a password."""
    parts = _split(text.strip())
    return parts is not None and (parts.username is not None or parts.password is not None)


def holds_secrets(text: str) -> bool:
    """Return whether an address has a name, a password or a query, which may be secret."""
    parts = _split(text.strip())
    if parts is None:
        return False
    return holds_credentials(text) or bool(parts.query or parts.fragment)


def _split(text: str) -> SplitResult | None:
    """Take an address apart; ``None`` for what is none."""
    if len(text) > _LONGEST or not text.isascii() or _NO_ADDRESS.search(text):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in _SCHEMES and parts.hostname and port != 0 else None


def is_loopback(host: str) -> bool:
    """Return whether a host is the machine that asks for it."""
    import ipaddress  # every start of pytest loads this module

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_on_this_machine(url: str) -> bool:
    """Return whether requests to an address stay on the machine; a function's may go anywhere."""
    parts = _split(url)
    return parts is not None and parts.hostname is not None and is_loopback(parts.hostname)


def custom_files(url: str) -> tuple[str, ...]:
    """Return the path of the user's file that an address names; nothing for other addresses."""
    own = _CUSTOM.fullmatch(url)
    return () if own is None else (own["file"],)
