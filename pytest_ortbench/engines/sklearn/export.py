"""Estimators and pipelines of scikit-learn become ONNX by skl2onnx."""

from __future__ import annotations

import locale
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource, Made
from pytest_ortbench.engines.seam import EngineRefusal
from pytest_ortbench.worker.exporting import versions_of
from pytest_ortbench.worker.tabular import TableForm, table_form

#: What decides on the file.
_PACKAGES = ("scikit-learn", "skl2onnx", "onnx", "numpy")
#: Version of the operators of trees and text that converters know and old runtimes have.
_TREES = 3
#: The locale that ONNX Runtime takes for small letters if the file names none.
_USUAL_LOCALE = "en_US.UTF-8"
_OTHER_LOCALES = ("C.UTF-8", "C")


def export_estimator(loaded: LoadedSource, path: Path, _settings: Mapping[str, str]) -> Made:
    """Write the ONNX file of an estimator; of a classifier without ZipMap.

    Raises:
        EngineRefusal: if it is not fitted, or something in it has no converter.
    """
    from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    form = table_form(loaded)
    model = loaded.model
    notes: list[str] = []
    try:
        check_is_fitted(model)
        made = _converted(loaded, form, notes)
    except NotFittedError as error:
        raise EngineRefusal(
            f"{type(model).__name__} is not fitted",
            kind="error",
            hint="Call fit before the function returns the model",
        ) from error
    except (MissingConverter, MissingShapeCalculator) as error:
        raise EngineRefusal(
            f"skl2onnx has no converter for {_lacking(error, model)}",
            hint="Register a converter in the function that returns the model, with "
            "skl2onnx.update_registered_converter",
        ) from error
    path.write_bytes(made.SerializeToString())
    return Made(
        exporter="skl2onnx",
        versions=versions_of(_PACKAGES),
        feeds={} if loaded.example is None else form.feeds(loaded.example),
        notes=tuple(notes),
    )


def initial_types(form: TableForm) -> list[tuple[str, Any]]:
    """Return the inputs as the converters of this family take them.

    Args:
        form: How the model takes its rows.
    """
    from skl2onnx.common import data_types

    classes = {
        "float": data_types.FloatTensorType,
        "double": data_types.DoubleTensorType,
        "int64": data_types.Int64TensorType,
        "bool": data_types.BooleanTensorType,
        "string": data_types.StringTensorType,
    }
    return [(name, classes[kind]([None, form.width])) for name, kind in form.types.items()]


def _converted(loaded: LoadedSource, form: TableForm, notes: list[str]) -> Any:
    """What skl2onnx makes, with the options that its converter of this class takes."""
    from skl2onnx import convert_sklearn, get_latest_tested_opset_version

    readers = _options_of_readers(loaded.model, notes)
    opset = int(loaded.settings.get("opset", get_latest_tested_opset_version()))
    *choices, last = _options_of_scores(loaded.model, notes)

    def convert(options: dict[Any, dict[str, Any]]) -> Any:
        return convert_sklearn(
            loaded.model,
            initial_types=initial_types(form),
            options={**readers, **options, **dict(loaded.settings.get("options", {}))},
            final_types=[(name, None) for name in loaded.outputs or ()] or None,
            target_opset={"": opset, "ai.onnx.ml": _TREES},
        )

    for options in choices:
        with suppress(NameError):  # so it says that the converter lacks an option
            return convert(options)
    return convert(last)


def _options_of_scores(model: Any, notes: list[str]) -> list[dict[Any, dict[str, Any]]]:
    """Options that make one tensor of a classifier's scores: those to be tried first come first."""
    from sklearn.base import is_classifier

    if not is_classifier(model):
        return [{}]
    notes.append("its probabilities are one tensor: exported without ZipMap")
    plain: dict[Any, dict[str, Any]] = {id(model): {"zipmap": False}}
    if hasattr(model, "predict_proba"):
        return [plain]
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    raw = {"raw_scores": True}
    both = {**plain, id(last): {**plain.get(id(last), {}), **raw}}
    return [both, {id(last): raw}, plain, {}]


def _options_of_readers(model: Any, notes: list[str]) -> dict[Any, dict[str, Any]]:
    """The locale of what reads text, where this system lacks the one that the file would need."""
    from sklearn.feature_extraction.text import CountVectorizer

    readers = {type(part) for part in _parts(model) if isinstance(part, CountVectorizer)}
    name = _locale() if readers else _USUAL_LOCALE
    if name == _USUAL_LOCALE:
        return {}
    notes.append(
        f"text is converted to lower case by the locale {name}, because {_USUAL_LOCALE} is absent"
    )
    return {reader: {"locale": name} for reader in readers}


def _parts(model: Any) -> Iterator[Any]:
    """Yield an estimator and all that stand in it."""
    yield model
    get_params = getattr(model, "get_params", None)
    for value in get_params(deep=True).values() if get_params is not None else ():
        if hasattr(value, "get_params"):
            yield value


def _locale() -> str:
    """The first locale that this system has, of those that fit; ONNX Runtime needs one."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for name in (_USUAL_LOCALE, *_OTHER_LOCALES):
            try:
                locale.setlocale(locale.LC_CTYPE, name)
            except locale.Error:
                continue
            return name
        return _OTHER_LOCALES[-1]
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def _lacking(error: Exception, model: Any) -> str:
    """The class of the estimator that has no converter: a part of the model that is named."""
    told = str(error)
    names = [type(part).__name__ for part in _parts(model)]
    return max((name for name in names if f"{name}'" in told), key=len, default=names[0])
