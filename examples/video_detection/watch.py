"""Send frames to the service, and draw what it answers.

``python watch.py`` does it with the whole clip, writes ``drawn.avi`` and ``frame.png``, and says
how long a frame took. :func:`whole_frame` does it with one frame, for ``test_video.py`` to time.
"""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from statistics import quantiles

import cv2
import numpy as np
from clip import PER_SECOND, frames
from shapes import CLASSES, HEIGHT, LEAST_SCORE, WIDTH

PATH = "/v2/models/shapes/infer"
LENGTH = "Inference-Header-Content-Length"
COLOURS = ((80, 200, 255), (120, 255, 120), (255, 160, 80))

_service = http.client.HTTPConnection("127.0.0.1", 8000, timeout=10)


def detected(frames: np.ndarray) -> np.ndarray:
    """Return boxes, scores and classes of frames: the protocol's header, and behind it bytes."""
    header = json.dumps(
        {
            "inputs": [
                {
                    "name": "frame",
                    "shape": frames.shape,
                    "datatype": "UINT8",
                    "parameters": {"binary_data_size": frames.nbytes},
                }
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    _service.request("POST", PATH, header + frames.tobytes(), {LENGTH: str(len(header))})
    response = _service.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"the service answered {response.status}: {body[:200]!r}")
    length = int(response.headers[LENGTH])
    (output,) = json.loads(body[:length])["outputs"]
    return np.frombuffer(body[length:], np.float32).reshape(output["shape"])


def draw(frame: np.ndarray, boxes: np.ndarray) -> None:
    """Draw what was detected on a frame."""
    for left, top, right, bottom, score, kind in boxes:
        if score < LEAST_SCORE:
            continue
        corners = (round(left), round(top)), (round(right), round(bottom))
        cv2.rectangle(frame, *corners, COLOURS[int(kind)], 1)
        text = f"{CLASSES[int(kind)]} {score:.2f}"
        # Above the box, or below it where there is no room.
        place = corners[0][0], corners[0][1] - 4 if corners[0][1] > 14 else corners[1][1] + 12
        cv2.putText(frame, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.4, COLOURS[int(kind)], 1)


def whole_frame(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Detect and draw: all that an application does between two frames but reading the file."""
    boxes = detected(inputs["frame"])
    for frame, found in zip(inputs["frame"], boxes, strict=True):
        draw(frame.copy(), found)
    return {"boxes": boxes}


def main() -> None:
    """Draw the boxes of the whole clip, and time each frame."""
    folder = Path(__file__).parent
    drawn = cv2.VideoWriter(
        str(folder / "drawn.avi"), cv2.VideoWriter_fourcc(*"MJPG"), PER_SECOND, (WIDTH, HEIGHT)
    )
    times_ms = []
    start = time.perf_counter()
    for number, frame in enumerate(frames(folder / "clip.avi")):
        draw(frame, detected(frame[None])[0])
        times_ms.append(1000 * (time.perf_counter() - start))
        drawn.write(frame)
        if number == 60:
            cv2.imwrite(str(folder / "frame.png"), cv2.resize(frame, None, fx=2, fy=2))
        start = time.perf_counter()
    drawn.release()
    cuts = quantiles(times_ms, n=100)
    print(
        f"{len(times_ms)} frames; reading, asking and drawing: p50 {cuts[49]:.1f} ms, "
        f"p90 {cuts[89]:.1f} ms, p99 {cuts[98]:.1f} ms"
    )


if __name__ == "__main__":
    main()
