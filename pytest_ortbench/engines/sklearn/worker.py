"""An estimator or pipeline of scikit-learn, called as its ONNX file is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import Engine, Inference
from pytest_ortbench.worker.entry import load_source
from pytest_ortbench.worker.estimators import as_column, labels_and_scores
from pytest_ortbench.worker.tabular import table_form


class SklearnModel(Engine):
    """What the entry function returned, in scikit-learn's own process."""

    _library: Any = None  # the package has no types for what is used here
    _model: Any = None
    _loaded: LoadedSource | None = None

    def load(self) -> str:
        """Import ``sklearn``, and return its version."""
        import sklearn  # the measured thing itself, so its import is timed

        self._library = sklearn
        return str(sklearn.__version__)

    def build(self) -> None:
        """Have the entry function make the model, and limit the threads of what that loaded."""
        from threadpoolctl import threadpool_limits  # sklearn brings it

        self._loaded = load_source(self.task.required_source())
        self._model = self._loaded.model
        threadpool_limits(self.task.threads)

    def open(self) -> Inference:
        """Return what asks the model; sessions share it, as threads of an application do."""
        assert self._loaded is not None  # it was built
        form = table_form(self._loaded)
        asked = _asked(self._model, len(self.task.outputs))

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            return asked(form.rows(feeds))

        return infer

    def in_force(self) -> dict[str, str]:
        """Return the threads of each library that computes, and those of the model itself."""
        from threadpoolctl import threadpool_info

        told = {
            f"{pool['internal_api']}_threads": str(pool["num_threads"])
            for pool in threadpool_info()
        }
        for name, value in self._model.get_params().items() if self._model is not None else ():
            if name.rpartition("__")[2] == "n_jobs":
                told[name] = str(value)
        return told

    def close(self) -> None:
        """Let go of the model."""
        self._model = self._loaded = None


def _asked(model: Any, outputs: int) -> Callable[[Any], Sequence[Any]]:
    """What the outputs of the ONNX file are in scikit-learn: labels and scores, or values."""
    from sklearn.base import is_classifier

    if is_classifier(model):
        return labels_and_scores(model)
    if outputs > 1 and hasattr(model, "decision_function"):  # an outlier detector
        return lambda rows: (
            as_column(model.predict(rows)),
            as_column(model.decision_function(rows)),
        )
    if outputs > 1 and hasattr(model, "transform"):  # a clustering
        return lambda rows: (model.predict(rows), model.transform(rows))
    if hasattr(model, "predict"):
        return lambda rows: (as_column(model.predict(rows)),)
    return lambda rows: (_dense(model.transform(rows)),)


def _dense(values: Any) -> Any:
    return values.toarray() if hasattr(values, "toarray") else values
