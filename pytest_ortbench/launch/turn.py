"""One measurement at a time in this process, whichever thread asks for it.

Plugins run tests in threads; two workers at a time would disturb each other's clocks.
"""

from __future__ import annotations

import threading

#: Held while anything is measured. The thread that holds it may take it again.
TURN = threading.RLock()
