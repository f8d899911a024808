"""The host's side of labelled data."""
