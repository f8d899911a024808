"""What is known of an engine before anything is asked of it. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """One engine: what runs a model in place of a session of ONNX Runtime.

    A package of anybody's brings one under the entry point ``pytest_ortbench.engines``, whose name
    is the alias. It has to be installed where cases are planned and where they are measured.

    Attributes:
        alias: As people write it among providers, which stands in ids: ``openvino-native``.
        title: As sentences and tables call it: ``OpenVINO``.
        target: Its class, a :class:`~pytest_ortbench.engines.seam.Engine`, as ``module:Class``;
            imported by the process that measures.
        is_framework: Whether it runs what the model was exported from, and not its ONNX file.
        distributions: Packages that bring it, as ``pip install`` takes them.
        source: Where it comes from if not from such a package, or what else it needs.
        takes_device: Whether a device may stand behind a colon: ``torch:cuda``.
        options: What it takes as ``--ort-provider-option=ALIAS.KEY=VALUE``: keys, and what each
            does in one line.
    """

    alias: str
    title: str
    target: str
    is_framework: bool = False
    distributions: tuple[str, ...] = ()
    source: str = ""
    takes_device: bool = False
    options: dict[str, str] = field(default_factory=dict)

    @property
    def supply(self) -> str:
        """What supplies it, in words."""
        installs = " ".join(self.distributions)
        parts = [f"pip install {installs}" if installs else "", self.source]
        return "; ".join(part for part in parts if part)
