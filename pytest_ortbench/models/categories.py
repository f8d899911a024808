"""Rules for categorical inputs: the graph's own keys, so that what is looked up exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ortbench.models.consumers import rule
from pytest_ortbench.models.dataflow import Dataflow, Use
from pytest_ortbench.models.findings import ConsumerFinding

if TYPE_CHECKING:
    import onnx

#: Keys beyond this number add nothing to an input that is drawn from them.
_MOST = 64
#: Strings for operators that take any text.
WORDS = ("alpha", "beta", "gamma", "delta")
_NUMBERS = ("0.5", "1", "2")


def _keys(node: onnx.NodeProto, *names: str) -> tuple[str, ...]:
    """Values of the first of these attributes that is there, as strings."""
    from onnx import numpy_helper

    for name in names:
        for item in node.attribute:
            if item.name != name:
                continue
            if item.strings:
                return tuple(text.decode("utf-8", "replace") for text in item.strings)
            if item.ints or item.floats:
                return tuple(str(number) for number in (*item.ints, *item.floats))
            if item.HasField("t"):
                values = numpy_helper.to_array(item.t).reshape(-1).tolist()
                return tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values)
    return ()


def _choice(keys: tuple[str, ...], why: str) -> ConsumerFinding | None:
    return ConsumerFinding(choices=keys[:_MOST], why=why) if keys else None


@rule(("ai.onnx.ml::LabelEncoder", 0))
def _label_encoder(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    names = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor")
    keys = _keys(use.node, *names)
    if not keys:  # operator set 1: strings to their positions, or positions to strings
        classes = _keys(use.node, "classes_strings")
        if use.element == "string":
            keys = classes
        else:
            keys = tuple(str(position) for position in range(len(classes)))
    return _choice(keys, "LabelEncoder keys")


@rule(("ai.onnx.ml::CategoryMapper", 0))
def _category_mapper(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    name = "cats_strings" if use.element == "string" else "cats_int64s"
    return _choice(_keys(use.node, name), "CategoryMapper categories")


@rule(("ai.onnx.ml::OneHotEncoder", 0))
def _one_hot_encoder(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    return _choice(_keys(use.node, "cats_strings", "cats_int64s"), "OneHotEncoder categories")


@rule(("ai.onnx.ml::DictVectorizer", 0))
def _dict_vectorizer(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    keys = _keys(use.node, "string_vocabulary", "int64_vocabulary")
    return _choice(keys, "DictVectorizer vocabulary")


@rule(("TfIdfVectorizer", 0))
def _tfidf(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    return _choice(_keys(use.node, "pool_strings", "pool_int64s"), "TfIdfVectorizer pool")


@rule(
    ("StringNormalizer", 0),
    ("StringSplit", 0),
    ("StringConcat", 0),
    ("StringConcat", 1),
    ("RegexFullMatch", 0),
    ("com.microsoft::Tokenizer", 0),
)
def _any_text(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    return ConsumerFinding(choices=WORDS, why=f"{use.op} takes any text")


@rule(("Cast", 0))
def _number_in_text(use: Use, _flow: Dataflow) -> ConsumerFinding | None:
    """A string that is cast to a number must look like one."""
    if use.element != "string":
        return None
    to = next((item.i for item in use.node.attribute if item.name == "to"), 8)
    return None if to == 8 else ConsumerFinding(choices=_NUMBERS, why="Cast of text to a number")
