"""Boosted trees of LightGBM."""
