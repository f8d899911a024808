"""Boosted trees of LightGBM, called as their ONNX file is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.entry import LoadedSource
from pytest_ortbench.engines.seam import Engine, Inference
from pytest_ortbench.worker.entry import load_source
from pytest_ortbench.worker.estimators import as_column, labels_and_scores, labels_of_chances
from pytest_ortbench.worker.tabular import table_form


class BoostedModel(Engine):
    """What the entry function returned: an estimator, or a booster."""

    _model: Any = None  # the packages have no types for what is used here
    _loaded: LoadedSource | None = None

    @abstractmethod
    def set_threads(self) -> None:
        """Tell the model the number of threads."""

    @abstractmethod
    def chances(self, rows: Any) -> Any:
        """Return what a booster predicts."""

    def build(self) -> None:
        """Have the entry function make the model, and tell it the number of threads."""
        self._loaded = load_source(self.task.required_source())
        self._model = self._loaded.model
        self.set_threads()

    def open(self) -> Inference:
        """Return what asks the model; sessions share it, as threads of an application do."""
        assert self._loaded is not None  # it was built
        form, ask = table_form(self._loaded, matrix=True), self._asked()

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            return ask(form.rows(feeds))

        return infer

    def close(self) -> None:
        """Let go of the model."""
        self._model = self._loaded = None

    def _asked(self) -> Callable[[Any], Sequence[Any]]:
        """What the outputs of the ONNX file are in the package: labels and scores, or values."""
        model = self._model
        if hasattr(model, "predict_proba"):
            asked: Callable[[Any], Sequence[Any]] = labels_and_scores(model)
            return asked
        if len(self.task.outputs) > 1:
            return lambda rows: labels_of_chances(self.chances(rows))
        predict = model.predict if hasattr(model, "set_params") else self.chances
        return lambda rows: (as_column(predict(rows)),)


class LightGbmModel(BoostedModel):
    """An estimator or booster of LightGBM."""

    def load(self) -> str:
        """Import ``lightgbm``, and return its version."""
        import lightgbm  # the measured thing itself, so its import is timed

        return str(lightgbm.__version__)

    def set_threads(self) -> None:
        """Tell an estimator the number of threads; a booster is told in each call."""
        if hasattr(self._model, "set_params"):
            self._model.set_params(n_jobs=self.task.threads)

    def chances(self, rows: Any) -> Any:
        """Return what a booster predicts."""
        return self._model.predict(rows, num_threads=self.task.threads)

    def in_force(self) -> dict[str, str]:
        """Return the threads that the estimator says."""
        if not hasattr(self._model, "get_params"):
            return {}
        return {"n_jobs": str(self._model.get_params()["n_jobs"])}
