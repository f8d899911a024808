"""A language model of transformers, loaded from a folder: its inferences and its requests.

Configuration, weights and tokenizer come from the folder alone, weights only as safetensors, and no
code of the folder runs.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ortbench.core.case import Case
from pytest_ortbench.core.errors import class_and_line, first_line, says
from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.seam import EngineRefusal, EngineTensor, Inference, without_engine
from pytest_ortbench.engines.torch.worker.eager import Eager
from pytest_ortbench.engines.torch.worker.generated import GenerateEngine
from pytest_ortbench.engines.torch.worker.passing import arrays_of
from pytest_ortbench.engines.torch.worker.stepping import (
    CachedModel,
    layer_of,
    new_cache,
    word_for_cache,
)
from pytest_ortbench.worker.generation.requests import RequestEngine, SessionEngine, generation_in

#: The first release whose cache consists of layers.
_LEAST = (4, 56)
#: Types of weights that may be asked for, beside that of the folder.
_TYPES = ("float32", "bfloat16", "float16")
#: What PyTorch calls the type of a cache or of logits in ONNX.
_BY_ONNX = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
}
#: Characters that a message shows of an architecture's name.
_LONGEST_NAME = 80
#: Options of other rows of PyTorch that have no use here.
_UNUSED = ("memory_format", "autocast")


class CausalModel(Eager):
    """A model that predicts the next token."""

    _library = ""
    _tokenizer: Any = None
    _no_tokenizer = ""

    def load(self) -> str:
        """Import ``torch`` and ``transformers``, set the threads, and return both versions."""
        version = super().load()
        # Whatever a folder names is not fetched.
        os.environ["HF_HUB_OFFLINE"] = "1"
        try:
            import transformers
        except ImportError as error:
            raise EngineRefusal(
                f"transformers can't be imported. {says('Python', first_line(error))}",
                kind="unavailable",
                hint="Run 'pip install --upgrade transformers' where PyTorch is installed",
            ) from error
        self._library = str(transformers.__version__)
        numbers = [int(part) for part in self._library.split(".")[:2] if part.isdecimal()]
        if tuple(numbers) < _LEAST:
            least = ".".join(map(str, _LEAST))
            raise EngineRefusal(
                f"transformers {self._library} is too old: to measure the writing of "
                f"text, {least} or later is needed",
                kind="unavailable",
                hint=f"Run \"pip install 'transformers>={least}'\" where PyTorch is installed",
            )
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        return f"{version} with transformers {self._library}"

    def build(self) -> None:
        """Load configuration and weights, and put the model on its device."""
        unused = [name for name in _UNUSED if name in self.task.options]
        if unused:
            value = self.task.options[unused[0]]
            option = f"torch.{unused[0]}={value}"
            raise EngineRefusal(
                f"the option torch.{unused[0]} can't be used with a language model of transformers",
                kind="error",
                hint=f"Leave --ort-provider-option={option} out"
                + (
                    f". For weights of this type, write --ort-provider-option=torch.dtype={value}"
                    if unused[0] == "autocast" and value in _TYPES
                    else ""
                ),
            )
        self._require_device()
        self.called = self._told(self._loaded).to(self.device).eval()

    def open(self) -> Inference:
        """Return what runs one inference: tokens and past in, logits and present out."""
        import torch

        model, device = self.called, self.device
        ids, fed, given = roles(self.task.inputs, [item.name for item in self.task.outputs])
        by_layer = sorted(fed.items())
        passed = [item.name for item in self.task.inputs if item.name in _PASSED]
        lengths = {item.name: "".join(item.symbols[2:3]) for item in self.task.inputs}
        mode, from_numpy, word = torch.inference_mode, torch.from_numpy, word_for_cache(model)

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            with mode():
                cache = new_cache(model)
                past = past_in(feeds, ids, by_layer, lengths)
                for layer, (key, value) in by_layer if past else ():
                    # A window has the same room from the first token on.
                    cache.update(
                        from_numpy(feeds[key][:, :, :past]).to(device),
                        from_numpy(feeds[value][:, :, :past]).to(device),
                        layer,
                    )
                output = model(
                    input_ids=from_numpy(feeds[ids]).to(device, torch.int64),
                    use_cache=True,
                    **{word: cache},
                    **{name: from_numpy(feeds[name]).to(device) for name in passed},
                )
                return arrays_of(
                    [
                        output.logits if part is None else getattr(cache.layers[part[0]], part[1])
                        for part in given
                    ]
                )

        return infer

    def stepped(self, *, whole: bool) -> CachedModel:
        """Return the model with a cache of its own, for runs step by step.

        Args:
            whole: Whether scores after every token of a run are wanted, not after the last alone.
        """
        return CachedModel(self.called, self.device, whole=whole)

    def requests(self, case: Case) -> RequestEngine:
        """Return what carries out the requests of a case.

        Raises:
            EngineRefusal: if the model has another vocabulary than the case's file.
        """
        decoder = case.model.decoder
        head = self.called.get_output_embeddings()
        scores = None if head is None else head.weight.shape[0]
        if decoder is not None and scores not in (None, decoder.vocabulary):
            raise EngineRefusal(
                f"{self._folder.name} has a vocabulary of {scores} tokens, but the ONNX file one "
                f"of {decoder.vocabulary}, so they are different models",
                kind="error",
                hint="Name the folder that the file was exported from: --ort-source=FOLDER",
            )
        if generation_in(case).engine == "forward":
            return SessionEngine(self.stepped(whole=False), case)
        self._load_tokenizer()
        return GenerateEngine(self.called, self._tokenizer, case, device=self.device)

    def in_force(self) -> dict[str, str]:
        """Return threads, device, types, and how it attends."""
        settings = super().in_force() | {"transformers": self._library}
        if self.called is None:
            return settings
        settings |= {
            "dtype": str(self.called.dtype).removeprefix("torch."),
            "attention": str(getattr(self.called.config, "_attn_implementation", "")),
        }
        if self._tokenizer is not None or self._no_tokenizer:
            settings["tokenizer"] = self._no_tokenizer or "of the folder"
        # As it was asked for, so that it is confirmed.
        if self.task.options.get("dtype") == "auto":
            settings["dtype"] = "auto"
        return settings

    def close(self) -> None:
        """Let go of the model."""
        super().close()
        self._tokenizer = None

    @property
    def _folder(self) -> Path:
        return Path(self.task.required_source().path)

    def _own_architecture(self) -> str:
        """The architecture that the folder brings code for; empty where it brings none."""
        try:
            config = json.loads((self._folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ""
        if not isinstance(config, dict) or not config.get("auto_map"):
            return ""
        names = config.get("architectures")
        name = names[0] if isinstance(names, list) and names else config.get("model_type")
        return str(name or "unnamed")[:_LONGEST_NAME]

    def _load_tokenizer(self) -> None:
        """Load the tokenizer of the folder, if it has one that can be loaded."""
        if self._tokenizer is not None or self._no_tokenizer:
            return
        from transformers import AutoTokenizer

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(
                str(self._folder), local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # noqa: BLE001 - each kind of tokenizer raises errors of its own
            self._no_tokenizer = f"none: {class_and_line(error)}"

    def _loaded(self) -> Any:
        from transformers import AutoConfig, AutoModelForCausalLM

        folder = str(self._folder)
        local = {"local_files_only": True, "trust_remote_code": False}
        config = AutoConfig.from_pretrained(folder, **local)
        kernel = str(getattr(config, "_attn_implementation", "") or "")
        if "/" in kernel:
            raise EngineRefusal(
                f"{self._folder.name}/config.json names the kernel {kernel!r}, which is code to "
                "download. Such code is never run",
                hint=f"Remove attn_implementation from {self._folder / 'config.json'}",
            )
        model, told = AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=self._type(),
            use_safetensors=True,
            output_loading_info=True,
            **local,
        )
        missing = sorted(map(str, told["missing_keys"]))
        other = sorted(
            str(key if isinstance(key, str) else key[0]) for key in told["mismatched_keys"]
        )
        if missing or other:
            named, *more = missing or other
            raise EngineRefusal(
                f"the weights in {self._folder.name} "
                + (
                    "lack the tensor "
                    if missing
                    else "do not fit its config.json: the shape differs for "
                )
                + named
                + (f" and {counted(len(more), 'further tensor')}" if more else ""),
                kind="error",
                hint="If the folder was downloaded, download it again. If a script saved it, "
                "correct the script so that weights and config.json are of one model",
            )
        return model

    def _type(self) -> Any:
        """The type of the weights, as from_pretrained takes it."""
        import torch

        asked = self.task.options.get("dtype", "")
        if asked == "auto":
            return asked
        if asked and asked not in _TYPES:
            raise EngineRefusal(
                f"dtype={asked} is not a type of weights",
                kind="error",
                hint="Write e.g. --ort-provider-option=torch.dtype=bfloat16. Types are "
                f"{', '.join((*_TYPES, 'auto'))}",
            )
        floats = [
            _BY_ONNX[item.type]
            for item in (*self.task.inputs, *self.task.outputs)
            if item.type in _BY_ONNX
        ]
        return getattr(torch, asked or (floats or ["float32"])[0])

    def _told(self, step: Callable[[], Any]) -> Any:
        """Carry out what reads the folder; what it raises becomes a refusal."""
        try:
            return step()
        except (EngineRefusal, MemoryError):
            raise
        except ImportError as error:
            raise EngineRefusal(
                f"transformers needs a package that can't be imported. "
                f"{says('Python', first_line(error))}",
                kind="unavailable",
                hint=f"Run 'pip install {error.name.partition('.')[0]}' where transformers is "
                "installed"
                if isinstance(error, ModuleNotFoundError) and error.name
                else "Install what Python names where transformers is installed",
            ) from error
        except Exception as error:
            # Each architecture raises errors of its own.
            is_unknown = isinstance(error, ValueError | KeyError)  # damaged weights are neither
            architecture = self._own_architecture() if is_unknown else ""
            if architecture:
                raise EngineRefusal(
                    f"transformers {self._library} does not know the architecture "
                    f"{architecture!r} of {self._folder.name}. The folder brings code for it "
                    "(auto_map), which is never run",
                    hint="Run: pip install --upgrade transformers. If the newest release does not "
                    f"know it either, {without_engine('torch', 'leave')}",
                ) from error
            attempt = (
                "from transformers import AutoModelForCausalLM as A; "
                f"A.from_pretrained({json.dumps(str(self._folder))}, use_safetensors=True)"
            )
            raise EngineRefusal(
                f"transformers {self._library} can't load {self._folder.name}. "
                f"{says('transformers', class_and_line(error))}",
                kind="unsupported" if is_unknown else "error",
                hint=f"To see the whole error, run: python -c {shlex.quote(attempt)}",
            ) from error


def past_in(
    feeds: Mapping[str, Any],
    ids: str,
    by_layer: Sequence[tuple[int, tuple[str, str]]],
    lengths: Mapping[str, str],
) -> int:
    """Return how many tokens the fed cache holds.

    Args:
        feeds: Values by input.
        ids: The input of the tokens.
        by_layer: Inputs of keys and values.
        lengths: The dimension that says how many tokens an input holds, empty where it is fixed.

    Raises:
        EngineRefusal: where a window has dropped some of them: how many there were can't be told.
    """
    if not by_layer:
        return 0
    rows = [feeds[key].shape[2] for _, (key, _) in by_layer]
    mask = feeds.get("attention_mask")
    past: int = max(rows) if mask is None else mask.shape[1] - feeds[ids].shape[1]
    least = min(rows)
    if past > least:
        longest = max((key for _, (key, _) in by_layer), key=lambda key: feeds[key].shape[2])
        dimension = lengths.get(longest, "")
        step = (
            f"To measure a step after fewer tokens, write --ort-dims={dimension}:{least}. "
            if dimension
            else ""
        )
        raise EngineRefusal(
            f"a layer of the model's cache keeps only the last {least} of {past} tokens, but "
            f"transformers needs all {past}",
            hint=f"{step}To measure whole answers, write --ort-generate=only",
        )
    return past


#: Inputs that are passed on as they are.
_PASSED = ("attention_mask", "position_ids")

#: Of an output: layer, and ``keys`` or ``values``; ``None`` for the logits.
_Part = tuple[int, str] | None


def roles(
    inputs: Sequence[EngineTensor], outputs: Sequence[str]
) -> tuple[str, dict[int, tuple[str, str]], list[_Part]]:
    """Return the input of the tokens, keys and values by layer, and what each output is.

    Raises:
        EngineRefusal: for an input that has no counterpart.
    """
    pasts: dict[int, dict[str, str]] = {}
    ids = ""
    for item in inputs:
        part = layer_of(item.name)
        if part is not None:
            pasts.setdefault(part[0], {})[part[1]] = item.name
        elif item.name not in _PASSED:
            if ids:
                raise EngineRefusal(
                    f"the ONNX file has the input {item.name!r}, which language models of "
                    "transformers do not have",
                    hint=without_engine("torch"),
                )
            ids = item.name
    if not ids:
        raise EngineRefusal(
            "transformers needs an input of tokens, such as input_ids, but the ONNX file has none",
            hint=without_engine("torch"),
        )
    incomplete = [names for names in pasts.values() if len(names) != 2]
    if incomplete:
        ((held, name),) = incomplete[0].items()
        lacking = "values" if held == "keys" else "keys"
        at = next(layer for layer, names in pasts.items() if len(names) != 2)
        both = f"past_key_values.{at}.key and past_key_values.{at}.value"
        raise EngineRefusal(
            f"the ONNX file has the input {name!r}, the {held} of a layer's cache, but no input of "
            f"its {lacking}",
            hint=f"Export the model with both inputs, e.g. {both}. To measure this file, "
            f"{without_engine('torch', 'leave')}",
        )
    fed = {layer: (names["keys"], names["values"]) for layer, names in pasts.items()}
    given = [layer_of(name) for name in outputs]
    others = [name for name, part in zip(outputs, given, strict=True) if part is None]
    if len(others) != 1:
        found = f"the outputs {', '.join(map(repr, others))}" if others else "no output"
        raise EngineRefusal(
            f"the ONNX file has {found} beside the cache, but language models of transformers give "
            "the logits and the cache only",
            hint=without_engine("torch"),
        )
    return ids, fed, given
