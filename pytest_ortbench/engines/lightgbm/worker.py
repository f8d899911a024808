"""Boosted trees of LightGBM, called as their ONNX file is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference
from pytest_ortbench.worker.entry import load_source
from pytest_ortbench.worker.estimators import as_column, labels_and_scores, labels_of_chances
from pytest_ortbench.worker.tabular import table_form


class BoostedModel(Engine):
    """What the entry function returned: an estimator, or a booster."""

    _model: Any = None  # the packages have no types for what is used here

    @abstractmethod
    def set_threads(self) -> None:
        """Tell the model the number of threads."""

    @abstractmethod
    def chances(self, rows: Any) -> Any:
        """Return what a booster predicts."""

    def open(self) -> Inference:
        """Have the entry function make the model, and return what asks it."""
        if self.task.source is None:
            raise EngineRefusal("there is no model")
        loaded = load_source(self.task.source)
        model = self._model = loaded.model
        form = table_form(loaded, matrix=True)
        self.set_threads()
        asked: Callable[[Any], Sequence[Any]]
        if hasattr(model, "predict_proba"):
            asked = labels_and_scores(model)
        elif len(self.task.outputs) > 1:
            asked = lambda rows: labels_of_chances(self.chances(rows))  # noqa: E731
        else:
            predict = model.predict if hasattr(model, "set_params") else self.chances
            asked = lambda rows: (as_column(predict(rows)),)  # noqa: E731
        return lambda feeds: asked(form.rows(feeds))

    def close(self) -> None:
        """Let go of the model."""
        self._model = None


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
