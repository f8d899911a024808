"""The version of this package; the wheel is built from it."""

VERSION = "0.1.0"
