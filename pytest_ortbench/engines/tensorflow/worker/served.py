"""What an application calls of a model of TensorFlow: one traced function, with names.

The same function is exported and measured, so both have the same inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_ortbench.core.units import counted
from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.engines.tensorflow.worker.files import imported, sentence_said

#: The signature that is served where nobody names one.
_DEFAULT = "serving_default"
#: Key of the dictionary of an entry function that names another one.
SIGNATURE = "signature"
#: What the names begin with that Keras makes up.
_NAMED_BY_KERAS = "keras_tensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A traced function of TensorFlow, with the names of what it takes and gives.

    Attributes:
        function: A concrete function.
        owner: What holds its variables.
        inputs: Names of what it takes, in its order.
        outputs: Names of what it gives, in the order of the flat structure.
        keywords: Names of its arguments where it takes no positional ones, in the same order.
    """

    function: Any
    owner: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    keywords: tuple[str, ...] = ()

    def call(self, tensors: Sequence[Any]) -> Any:
        """Run it once, and return what it gives, structured as its author wrote it."""
        if self.keywords:
            return self.function(**dict(zip(self.keywords, tensors, strict=True)))
        return self.function(*tensors)


def traced(loaded: LoadedSource, *, jit_compile: bool = False) -> Served:
    """Return what an application calls of a source.

    Args:
        loaded: The source.
        jit_compile: Whether XLA compiles the function.

    Raises:
        EngineRefusal: if nothing tells what it is fed, or it can't be traced.
    """
    tensorflow = imported()
    try:
        if hasattr(loaded.model, "signatures") and not hasattr(loaded.model, "layers"):
            return _renamed(loaded, _of_signature(tensorflow, loaded, jit_compile))
        if hasattr(loaded.model, "structured_input_signature"):
            return _renamed(
                loaded, _of_concrete(tensorflow, loaded.model, loaded.model, jit_compile)
            )
        if hasattr(loaded.model, "layers"):
            return _renamed(loaded, _of_keras(tensorflow, loaded, jit_compile))
        return _renamed(loaded, _of_function(tensorflow, loaded, jit_compile))
    except (TypeError, ValueError, tensorflow.errors.OpError) as error:
        raise EngineRefusal(
            f"TensorFlow can't trace the model. {sentence_said(error)}",
            hint="Call the model under tf.function in a script, and fix the error that it raises",
        ) from error


def _of_signature(tensorflow: Any, loaded: LoadedSource, jit_compile: bool) -> Served:
    """Return one signature of a SavedModel: the one asked for, the default, or its only one."""
    signatures = {name: loaded.model.signatures[name] for name in loaded.model.signatures}
    asked = loaded.settings.get(SIGNATURE)
    name = _DEFAULT if asked is None else str(asked)
    chosen = signatures.get(name)
    if chosen is None and asked is None and len(signatures) == 1:
        chosen = next(iter(signatures.values()))
    if not signatures:
        raise EngineRefusal(
            "the SavedModel has no signatures",
            hint="Save the model with one: tensorflow.saved_model.save(model, folder, "
            "signatures=f), where f is a tf.function with an input_signature",
        )
    if chosen is None:
        raise _no_signature(loaded, name, sorted(signatures))
    return _of_concrete(tensorflow, chosen, loaded.model, jit_compile)


def _no_signature(loaded: LoadedSource, name: str, known: Sequence[str]) -> EngineRefusal:
    """Return the refusal of a SavedModel without a signature, which the user may have named."""
    setting = f'{{"{SIGNATURE}": "{known[0]}"}}'
    if SIGNATURE in loaded.settings:
        step = f"Write one of these in {SIGNATURE!r}, e.g. {setting}"
    elif loaded.function:
        step = f"To choose one, return it as the third value: 'return model, None, {setting}'"
    else:
        step = (
            "To choose one, measure a function, e.g. net.py:build, that ends with 'return "
            f'tensorflow.saved_model.load("{loaded.path.as_posix()}"), None, {setting}\''
        )
    if SIGNATURE in loaded.settings:
        what = f"the SavedModel has no signature {name!r}. Its signatures are {', '.join(known)}"
    else:
        what = f"the SavedModel has several signatures ({', '.join(known)}), and none is chosen"
    return EngineRefusal(what, hint=step)


def _of_concrete(tensorflow: Any, function: Any, owner: Any, jit_compile: bool) -> Served:
    """Return a traced function; one of a SavedModel takes its inputs by keyword alone."""
    positional, by_keyword = function.structured_input_signature
    taken = sorted(by_keyword)
    if jit_compile:
        specs = [by_keyword[name] for name in taken] or list(positional)
        compiled = tensorflow.function(
            lambda *tensors: (
                function(*tensors)
                if positional
                else function(**dict(zip(taken, tensors, strict=True)))
            ),
            input_signature=specs,
            jit_compile=True,
        ).get_concrete_function()
        return Served(
            function=compiled,
            owner=(owner, function),
            inputs=tuple(taken) or _argument_names(compiled),
            outputs=_output_names(tensorflow, function, ()),
        )
    return Served(
        function=function,
        owner=owner,
        inputs=tuple(taken) or _argument_names(function),
        outputs=_output_names(tensorflow, function, ()),
        keywords=tuple(taken),
    )


def _of_keras(tensorflow: Any, loaded: LoadedSource, jit_compile: bool) -> Served:
    """Return the model as a function of the batch, in inference."""
    import keras

    model = loaded.model
    if keras.backend.backend() != "tensorflow":
        raise EngineRefusal(
            f"Keras uses {keras.backend.backend()} here, not TensorFlow",
            hint="Set the environment variable KERAS_BACKEND=tensorflow",
        )
    declared = getattr(model, "inputs", None)
    if declared:
        # A Sequential that was never called has no structure, and one input.
        structure = getattr(model, "input", None)
        structure = declared[0] if structure is None else structure
        names = [_name_of_input(tensor) for tensor in declared]
        specs = [
            tensorflow.TensorSpec(tensor.shape, tensor.dtype, name=name)
            for tensor, name in zip(declared, _distinct(names), strict=True)
        ]
    else:
        structure, specs = _of_example(tensorflow, loaded, batched=True)

    def infer(*tensors: Any) -> Any:
        return model(tensorflow.nest.pack_sequence_as(structure, tensors), training=False)

    function = tensorflow.function(
        infer, input_signature=specs, jit_compile=jit_compile or None
    ).get_concrete_function()
    return Served(
        function=function,
        owner=model,
        inputs=tuple(spec.name for spec in specs),
        outputs=_output_names(tensorflow, function, getattr(model, "output_names", None) or ()),
    )


def _of_function(tensorflow: Any, loaded: LoadedSource, jit_compile: bool) -> Served:
    """Return a function, or a module that can be called, for its own signature or the example."""
    model = loaded.model
    if not callable(model):
        raise EngineRefusal(
            f"the model is of type {type(model).__name__}, which can't be called",
            hint="Return a Keras model, a tf.function or a tf.Module with __call__",
        )
    given = getattr(model, "input_signature", None)
    if given is None:
        given = getattr(model.__call__, "input_signature", None)
    structure, specs = (
        (tuple(given), list(given))
        if given is not None
        else _of_example(tensorflow, loaded, batched=False)
    )
    positional = structure if isinstance(structure, (tuple, list)) else (structure,)

    def infer(*tensors: Any) -> Any:
        return model(*tensorflow.nest.pack_sequence_as(positional, tensors))

    names = _distinct([_plain(spec.name or "input") for spec in specs])
    named = [
        tensorflow.TensorSpec(spec.shape, spec.dtype, name=name)
        for spec, name in zip(specs, names, strict=True)
    ]
    function = tensorflow.function(
        infer, input_signature=named, jit_compile=jit_compile or None
    ).get_concrete_function()
    return Served(
        function=function,
        owner=model,
        inputs=tuple(names),
        outputs=_output_names(tensorflow, function, ()),
    )


def _of_example(tensorflow: Any, loaded: LoadedSource, *, batched: bool) -> tuple[Any, list[Any]]:
    """Return the structure of the example inputs, and a specification of each array of it."""
    if loaded.example is None:
        raise EngineRefusal(
            "the model does not describe its inputs",
            hint="End the function that returns the model with 'return model, (array,)', where "
            "array is an example input"
            if loaded.function
            else "Measure a function, e.g. net.py:build, that loads the file and ends with 'return "
            "model, (array,)', where array is an example input",
        )
    structure = loaded.example
    if isinstance(structure, (tuple, list)) and len(structure) == 1 and batched:
        structure = structure[0]
    elif isinstance(structure, tuple) and batched:
        structure = list(structure)
    arrays = [tensorflow.convert_to_tensor(item) for item in tensorflow.nest.flatten(structure)]
    names = loaded.names or _distinct(["input"] * len(arrays))
    if len(names) != len(arrays):
        raise EngineRefusal(
            f"'names' has {counted(len(names), 'name')} ({', '.join(names)}), but there "
            f"{'is' if len(arrays) == 1 else 'are'} {counted(len(arrays), 'example input')}",
            hint=_names_to_write("names", len(arrays)),
        )
    specs = []
    for name, array in zip(names, arrays, strict=True):
        opened = (loaded.dynamic or {}).get(name, {0: "batch"} if batched else {})
        shape = [None if axis in opened else size for axis, size in enumerate(array.shape)]
        specs.append(tensorflow.TensorSpec(shape, array.dtype, name=name))
    return structure, specs


def _names_to_write(key: str, count: int) -> str:
    return f"Write {counted(count, 'name')} in {key!r}{', in this order' if count > 1 else ''}"


def _renamed(loaded: LoadedSource, made: Served) -> Served:
    """Return a function under the names that the user gives its inputs and outputs."""
    inputs, outputs = loaded.names, loaded.outputs
    for key, given, own, kind in (
        ("names", inputs, made.inputs, "input"),
        ("outputs", outputs, made.outputs, "output"),
    ):
        if given is not None and len(given) != len(own):
            raise EngineRefusal(
                f"{key!r} has {counted(len(given), 'name')} ({', '.join(given)}), but the model "
                f"has {counted(len(own), kind)} ({', '.join(own)})",
                hint=_names_to_write(key, len(own)),
            )
    return Served(
        function=made.function,
        owner=made.owner,
        inputs=tuple(inputs or made.inputs),
        outputs=tuple(outputs or made.outputs),
        keywords=made.keywords,
    )


def _name_of_input(tensor: Any) -> str:
    """Return the name of an input of Keras; it numbers those that nobody named in a process."""
    name = _plain(tensor.name)
    return "input" if name.startswith(_NAMED_BY_KERAS) else name


def _argument_names(function: Any) -> tuple[str, ...]:
    """Return the names of what a traced function takes, without what it captured."""
    count = len(function.inputs) - len(function.captured_inputs)
    return tuple(_distinct([_plain(tensor.name) for tensor in function.inputs[:count]]))


def _output_names(tensorflow: Any, function: Any, own: Iterable[str]) -> tuple[str, ...]:
    """Return a name for each tensor that a traced function gives, in flat order."""
    structured = function.structured_outputs
    count = len(tensorflow.nest.flatten(structured))
    if isinstance(structured, dict) and len(structured) == count:
        return tuple(str(name) for name in sorted(structured))
    names = [_plain(name) for name in own]
    if len(names) != count:
        names = ["output"] * count
    return tuple(_distinct(names))


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names with a number behind each that stood before, or behind all that are one word."""
    taken: set[str] = set()
    distinct = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        taken.add(candidate)
        distinct.append(candidate)
    return distinct


def _plain(name: str) -> str:
    """Return a name of TensorFlow without the number of its output."""
    return name.partition(":")[0]
