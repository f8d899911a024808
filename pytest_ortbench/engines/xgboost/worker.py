"""Boosted trees of XGBoost, called as their ONNX file is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ortbench.engines.seam import Engine, EngineRefusal, Inference
from pytest_ortbench.worker.entry import load_source
from pytest_ortbench.worker.estimators import as_column, labels_and_scores, labels_of_chances
from pytest_ortbench.worker.tabular import table_form


class XgBoostModel(Engine):
    """What the entry function returned: an estimator of XGBoost, or a booster."""

    _model: Any = None  # the package has no types for what is used here

    def load(self) -> str:
        """Import ``xgboost``, and return its version."""
        import xgboost  # the measured thing itself, so its import is timed

        return str(xgboost.__version__)

    def open(self) -> Inference:
        """Have the entry function make the model, and return what asks it."""
        if self.task.source is None:
            raise EngineRefusal("there is no model")
        loaded = load_source(self.task.source)
        model = self._model = loaded.model
        form = table_form(loaded, matrix=True)
        if hasattr(model, "set_params"):
            model.set_params(n_jobs=self.task.threads)
            model.get_booster().set_param({"nthread": self.task.threads})
        else:
            model.set_param({"nthread": self.task.threads})
        if hasattr(model, "predict_proba"):
            asked = labels_and_scores(model)
        elif hasattr(model, "set_params"):

            def asked(rows: Any) -> Sequence[Any]:
                return (as_column(model.predict(rows)),)

        else:
            makes_labels = len(self.task.outputs) > 1

            def asked(rows: Any) -> Sequence[Any]:
                given = model.inplace_predict(rows)
                return labels_of_chances(given) if makes_labels else (as_column(given),)

        def infer(feeds: Mapping[str, Any]) -> Sequence[Any]:
            return asked(form.rows(feeds))

        return infer

    def in_force(self) -> dict[str, str]:
        """Return the threads that the booster reads back."""
        model = self._model
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        config = json.loads(booster.save_config())
        return {"nthread": str(config["learner"]["generic_param"]["nthread"])}

    def close(self) -> None:
        """Let go of the model."""
        self._model = None
