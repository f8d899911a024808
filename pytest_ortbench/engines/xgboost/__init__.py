"""Boosted trees of XGBoost."""
