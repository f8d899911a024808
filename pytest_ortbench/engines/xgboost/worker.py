"""Boosted trees of XGBoost, called as their ONNX file is."""

from __future__ import annotations

import json
from typing import Any

from pytest_ortbench.engines.lightgbm.worker import BoostedModel


class XgBoostModel(BoostedModel):
    """An estimator or booster of XGBoost."""

    def load(self) -> str:
        """Import ``xgboost``, and return its version."""
        import xgboost  # the measured thing itself, so its import is timed

        return str(xgboost.__version__)

    def set_threads(self) -> None:
        """Tell the booster the number of threads, and an estimator, which tells it again."""
        if hasattr(self._model, "set_params"):
            self._model.set_params(n_jobs=self.task.threads)
        self._booster.set_param({"nthread": self.task.threads})

    def chances(self, rows: Any) -> Any:
        """Return what a booster predicts."""
        return self._model.inplace_predict(rows)

    def in_force(self) -> dict[str, str]:
        """Return the threads that the booster reads back."""
        config = json.loads(self._booster.save_config())
        return {"nthread": str(config["learner"]["generic_param"]["nthread"])}

    @property
    def _booster(self) -> Any:
        model = self._model
        return model.get_booster() if hasattr(model, "get_booster") else model
