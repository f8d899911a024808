"""Models that a provider compiled ahead of their sessions: the nodes that hold it, the record."""

from __future__ import annotations

from dataclasses import dataclass

#: What a compiled part of a graph is: one node of this operator, in this domain.
OPERATOR, DOMAIN = "EPContext", "com.microsoft"

#: What asks a provider to compile ahead: the interface for it, or an entry of a session's options.
WAYS = ("ModelCompiler", "ep.context_enable")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPart:
    """What a file says of its parts that one provider compiled.

    Attributes:
        provider: Full name of the provider, as the file has it; empty where it names none.
        library: Version of the provider's own library; empty where the file names none.
        hardware: What it is compiled for; likewise.
        nodes: Number of such nodes.
    """

    provider: str
    library: str = ""
    hardware: str = ""
    nodes: int

    @property
    def text(self) -> str:
        """For people: ``OpenVINOExecutionProvider (2025.4)``."""
        told = ", ".join(part for part in (self.library, self.hardware) if part)
        name = self.provider or "a provider that it does not name"
        return f"{name} ({told})" if told else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """The record of a compiled file: what it was made of, by what, and what that took.

    Attributes:
        file: Its name in the folder that keeps it.
        digest: SHA-256 over the file and its external data.
        size_bytes: That file plus external data.
        external_files: Files beside it that it reads, relative to its folder.
        way: One of :data:`WAYS`.
        compile_ns: From the session options to the whole file.
        compiled_nodes: Nodes that hold a compiled part.
        other_nodes: Nodes that the provider left to others.
        made_at: When it was made, ISO 8601.
        source: Path of the file that it was made of; empty in the folder that keeps it.
        source_digest: SHA-256 of that file and its external data.
        source_bytes: Size of that file plus external data.
    """

    file: str
    digest: str
    size_bytes: int
    external_files: tuple[str, ...] = ()
    way: str
    compile_ns: int
    compiled_nodes: int
    other_nodes: int
    made_at: str = ""
    source: str = ""
    source_digest: str = ""
    source_bytes: int = 0
