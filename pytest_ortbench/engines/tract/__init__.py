"""tract, an inference library written in Rust."""
