"""OpenVINO by its own package."""
