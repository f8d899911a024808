"""Settings for all tests of the product itself."""

from __future__ import annotations

from hypothesis import settings

# A test must not fail because the machine is busy.
settings.register_profile("product", deadline=None)
settings.load_profile("product")
