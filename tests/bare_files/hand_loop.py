"""The loop that anybody would write by hand: ``python hand_loop.py MODEL FEEDS.npz``.

It reads how many inferences are wanted from its standard input, a line each, and answers with what
each of them took in nanoseconds.
"""

import sys
import time

import numpy as np
import onnxruntime as ort

session = ort.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
for line in sys.stdin:
    durations = []
    for _ in range(int(line)):
        started = time.perf_counter_ns()
        session.run(None, feeds)
        durations.append(time.perf_counter_ns() - started)
    print(*durations, flush=True)
