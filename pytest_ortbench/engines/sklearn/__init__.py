"""Models of scikit-learn."""
