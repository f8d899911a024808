"""Write ``clip.avi``, and every tenth of its frames as a picture, with boxes in ``labels.json``."""

from __future__ import annotations

from pathlib import Path

import cv2
from shapes import HEIGHT, WIDTH, Clip, write_labels

FRAMES, PER_SECOND = 300, 30


def main() -> None:
    """Write all of it beside this file."""
    folder = Path(__file__).parent
    clip, path = Clip(), folder / "clip.avi"
    writer = cv2.VideoWriter(
        str(path), cv2.VideoWriter_fourcc(*"MJPG"), PER_SECOND, (WIDTH, HEIGHT)
    )
    for number in range(FRAMES):
        writer.write(clip.frame(number))
    writer.release()
    # The pictures are frames of the clip as it is read, with what its compression did to them.
    (folder / "images").mkdir(exist_ok=True)
    pictures = {}
    for number, frame in enumerate(frames(path)):
        if number % 10 == 0:
            name = f"frame{number:03}.png"
            cv2.imwrite(str(folder / "images" / name), frame)
            pictures[name] = clip.boxes(number)
    write_labels(folder / "labels.json", pictures)
    print(f"{path.name}: {FRAMES} frames; labels.json: {len(pictures)} pictures")


def frames(path: Path):
    """Give each frame of a clip."""
    video = cv2.VideoCapture(str(path))
    while True:
        is_there, frame = video.read()
        if not is_there:
            return
        yield frame


if __name__ == "__main__":
    main()
