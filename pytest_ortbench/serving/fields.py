"""Objects of JSON that came from a network, read field by field; an error names the field."""

from __future__ import annotations

from typing import Any

from pytest_ortbench.serving.tensor_values import ProtocolError, refuse_half, shown

#: Parameters that change what a request means; whoever ignored them would answer another question.
_REFUSED = {
    "shared_memory_region": "Leave out all parameters that begin with shared_memory. Send the "
    "values of an input in its field data",
    "classification": "Leave the parameter out",
}
#: numpy holds no more axes in all versions.
_MOST_AXES = 32
_LARGEST_AXIS = 2**31 - 1
_LONGEST_TEXT = 1000
#: How a client learns the names of inputs and outputs.
LISTED = (
    "To list the names of all inputs and outputs, send GET /v2/models/NAME, where NAME is the name "
    "of the model"
)
#: What is to be written where a text is missing.
_TEXTS = {
    "name": f"Write the name that the tensor has in the model. {LISTED}",
    "datatype": 'Write the type of the values, e.g. "datatype": "FP32"',
    "model_name": "Write the name of the model",
}
#: How a list of tensors is written.
_TENSOR = '{"name": "…", "datatype": "FP32", "shape": [1, 3], "data": […]}'
_TENSORS = f"[{_TENSOR}]"


class Fields:
    """An object of JSON and its place in the message.

    Args:
        value: What was read.
        place: Where it stands, ``inputs[0]``; empty for the whole message.
        example: How it is written; empty for a message with inputs.

    Raises:
        ProtocolError: if it is no object.
    """

    def __init__(self, value: object, place: str = "", example: str = "") -> None:
        if not isinstance(value, dict):
            example = example or f'{{"inputs": {_TENSORS}}}'
            raise ProtocolError(
                f"{shown(value)} is not a JSON object",
                place=place or "body",
                hint=f"Write {'e.g. ' if place else ''}{example}",
            )
        self._values: dict[str, Any] = value
        self.place = place

    def under(self, key: str) -> str:
        """Return the place of a field."""
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str) -> Any:
        """Return a field as it was read; ``None`` where there is none."""
        return self._values.get(key)

    def text(self, key: str) -> str:
        """Return a field that is a text and not empty.

        Raises:
            ProtocolError: if it is not, or too long.
        """
        text = self.maybe_text(key)
        if not text:
            raise ProtocolError(
                "the field is missing" if self.get(key) is None else "the field is empty",
                place=self.under(key),
                hint=_TEXTS.get(
                    # The name of a whole message is that of a model.
                    "model_name" if key == "name" and not self.place else key,
                    "Write a string that is not empty",
                ),
            )
        return text

    def maybe_text(self, key: str) -> str:
        """Return a field that is a text; empty where there is none.

        Raises:
            ProtocolError: if it is something else, or too long.
        """
        text = self.get(key)
        if text is None:
            return ""
        if not isinstance(text, str):
            raise _not("a string", text, self.under(key), "Write the value in quotes")
        if len(text) > _LONGEST_TEXT:
            raise ProtocolError(
                f"the string has {len(text)} characters, but at most {_LONGEST_TEXT} are allowed",
                place=self.under(key),
                hint="Write a shorter string",
            )
        refuse_half(text, "the string", self.under(key))
        return text

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a field that is a list of texts; empty where there is none.

        Raises:
            ProtocolError: if it is something else.
        """
        texts = self._list(key, '["…", "…"]', needed=False)
        if not all(isinstance(text, str) for text in texts):
            raise _not("a list of strings", texts, self.under(key), 'Write ["…", "…"]')
        return tuple(texts)

    def objects(self, key: str, *, needed: bool = True) -> list[Fields]:
        """Return a field that is a list of objects.

        Args:
            key: The field.
            needed: Whether it must be there; otherwise none is an empty list.

        Raises:
            ProtocolError: if it is something else.
        """
        example = _TENSOR if needed else '{"name": "…"}'
        values = self._list(key, f"[{example}]", needed=needed)
        return [Fields(value, f"{self.under(key)}[{n}]", example) for n, value in enumerate(values)]

    def shape(self, *, least: int) -> tuple[int, ...]:
        """Return the field ``shape``.

        Args:
            least: The smallest size: 0, or -1 where that stands for an open one.

        Raises:
            ProtocolError: if it is no list of sizes.
        """
        sizes, where = self._list("shape", "[1, 3]", needed=True), self.under("shape")
        if len(sizes) > _MOST_AXES:
            raise ProtocolError(
                f"the shape has {len(sizes)} axes, but at most {_MOST_AXES} are allowed",
                place=where,
                hint="Write a shape of fewer axes",
            )
        for axis, size in enumerate(sizes):
            if type(size) is not int or not least <= size <= _LARGEST_AXIS:
                raise ProtocolError(
                    f"{shown(size)} is not a whole number from {least} to {_LARGEST_AXIS}",
                    place=f"{where}[{axis}]",
                    hint="Write the real size of each axis, e.g. [1, 3]"
                    if least == 0
                    else "Write the size of each axis, -1 for one of any size, e.g. [-1, 3]",
                )
        return tuple(sizes)

    def parameters(self, example: str) -> Fields:
        """Return the field ``parameters``; an empty object where there is none.

        Args:
            example: How it is written there.

        Raises:
            ProtocolError: if it is no object, or has a parameter that must not be ignored.
        """
        value = self.get("parameters")
        parameters = Fields(
            {} if value is None else value,
            self.under("parameters"),
            f"{example}, or leave the field out",
        )
        for name, hint in _REFUSED.items():
            if parameters.get(name) is not None:
                raise ProtocolError(
                    "this server does not support the parameter",
                    place=parameters.under(name),
                    hint=hint,
                )
        return parameters

    def switch(self, key: str) -> bool | None:
        """Return a field that is true or false; ``None`` where there is none.

        Raises:
            ProtocolError: if it is something else.
        """
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise _not(
                "true or false", value, self.under(key), "Write true or false, without quotes"
            )
        return value

    def _list(self, key: str, example: str, *, needed: bool) -> list[Any]:
        value = self.get(key)
        if value is None and not needed:
            return []
        if not isinstance(value, list):
            raise _not("a list", value, self.under(key), f"Write a list, e.g. {example}")
        return value


def _not(what: str, value: object, place: str, hint: str) -> ProtocolError:
    """The error of a field that is missing, or holds something else than it should."""
    message = "the field is missing" if value is None else f"{shown(value)} is not {what}"
    return ProtocolError(message, place=place, hint=hint)
