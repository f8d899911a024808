"""What is known of an engine before anything is asked of it. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """One engine: what runs a model in place of a session of ONNX Runtime.

    A package of anybody's brings one under the entry point ``pytest_ortbench.engines``, whose name
    is the alias. It has to be installed where cases are planned and where they are measured. Only
    the frameworks of this package export and load sources: ``models`` and what follows is not read
    of others.

    Attributes:
        alias: As people write it among providers, which stands in ids: ``openvino-native``.
        title: As sentences and tables call it: ``OpenVINO``.
        target: Its class, a :class:`~pytest_ortbench.engines.seam.Engine`, as ``module:Class``;
            imported by the process that measures.
        is_framework: Whether it runs what the model was exported from, and not its ONNX file.
        is_endpoint: Whether it runs nothing itself, and asks a service over a network.
        distributions: Packages that bring it, as ``pip install`` takes them.
        alone: Those of them that need nothing of what they ask for, gigabytes with some: ``pip
            install --no-deps``.
        source: Where it comes from if not from such a package, or what else it needs.
        takes_device: Whether a device may stand behind a colon: ``torch:cuda``.
        devices: All that may stand there, where they are known; empty where the library decides.
        options: What it takes as ``--ort-provider-option=ALIAS.KEY=VALUE``: keys, and what each
            does in one line.
        runs: Frameworks whose models it runs, by alias; of a framework that has an exporter, also
            itself.
        models: Packages that the classes of its models come from (``sklearn``): a model belongs to
            the framework of the nearest class that it inherits from.
        exporter: ``module:function`` that takes a
            :class:`~pytest_ortbench.engines.entry.LoadedSource`, the path of the ONNX file to write
            and the user's settings, and returns :class:`~pytest_ortbench.engines.entry.Made`; empty
            if it can export nothing.
        exporter_options: What the exporter takes as ``--ort-exporter=KEY=VALUE``: keys, and what
            each does in one line.
        exporter_distributions: Packages that the exporter needs beside the framework's own.
        loader: ``module:function`` that takes the path of a file or folder of its own and returns
            an entry; empty if it has none.
        source_suffixes: How its own files end, in small letters: ``.pt2``.
        source_marks: Files that mark a folder of its own: ``saved_model.pb``.
        writer: Its class for language models, ``module:Class``, a
            :class:`~pytest_ortbench.worker.generation.engine_requests.WritingEngine`; empty if it
            carries out no requests.
        libraries: What loads the sources that this class takes (``transformers``).
        entry_keys: Keys of the dictionary that an entry function may return, beside those of
            :data:`~pytest_ortbench.engines.entry.ENTRY_KEYS`, and what each means.
    """

    alias: str
    title: str
    target: str
    is_framework: bool = False
    is_endpoint: bool = False
    distributions: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    source: str = ""
    takes_device: bool = False
    devices: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    exporter: str = ""
    exporter_options: dict[str, str] = field(default_factory=dict)
    exporter_distributions: tuple[str, ...] = ()
    loader: str = ""
    source_suffixes: tuple[str, ...] = ()
    source_marks: tuple[str, ...] = ()
    writer: str = ""
    libraries: tuple[str, ...] = ()
    entry_keys: dict[str, str] = field(default_factory=dict)

    def runs_models_of(self, framework: str) -> bool:
        """Whether it runs models of a framework.

        Args:
            framework: Its alias.
        """
        return framework in self.runs or (bool(self.exporter) and framework == self.alias)

    @property
    def role(self) -> str:
        """What it is among :data:`~pytest_ortbench.core.case.ROLES`."""
        if self.is_endpoint:
            return "endpoint"
        return "framework" if self.is_framework else "engine"

    @property
    def supply(self) -> str:
        """What supplies it, in words."""
        whole = " ".join(name for name in self.distributions if name not in self.alone)
        parts = [
            f"pip install {whole}" if whole else "",
            f"pip install --no-deps {' '.join(self.alone)}" if self.alone else "",
            self.source,
        ]
        return "; ".join(part for part in parts if part)
