"""Pipes and frames on them, without a process at the other end."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from pytest_ortbench.core.outcome import Block
from pytest_ortbench.launch.channel import Channel, Garbage
from pytest_ortbench.launch.pipes import (
    DeadlinePassed,
    Flooded,
    HungUp,
    Pipes,
    PolledPipes,
    ThreadedPipes,
)
from pytest_ortbench.schema.case_questions import TimeBlock
from pytest_ortbench.schema.protocol import PhaseEntered, pack_answer, pack_question
from pytest_ortbench.schema.runtime_questions import Inspect
from pytest_ortbench.schema.wire import encode_frame

TOKEN = "0123abcd"


@dataclass
class Ends:
    """Our side and the two descriptors of the other one."""

    pipes: Pipes
    read_from: int
    write_to: int

    def say(self, data: bytes) -> None:
        os.write(self.write_to, data)

    def hang_up(self) -> None:
        os.close(self.write_to)
        os.close(self.read_from)
        self.write_to = self.read_from = -1


@pytest.fixture(params=[PolledPipes, ThreadedPipes])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    kind: Callable[[int, int], Pipes] = request.param
    incoming, write_to = os.pipe()
    read_from, outgoing = os.pipe()
    both = Ends(kind(incoming, outgoing), read_from, write_to)
    yield both
    if both.write_to >= 0:
        both.hang_up()
    both.pipes.close()


def soon() -> float:
    return time.monotonic() + 0.05


def test_bytes_arrive_and_leave(ends: Ends) -> None:
    ends.say(b"hello")
    assert ends.pipes.read(None) == b"hello"
    ends.pipes.write(b"world", None)
    assert os.read(ends.read_from, 100) == b"world"


def test_a_deadline_may_be_ages_away(ends: Ends) -> None:
    far = time.monotonic() + 1e15
    threading.Timer(0.2, ends.say, [b"late"]).start()
    assert ends.pipes.read(far) == b"late"
    ends.pipes.write(b"world", far)
    assert os.read(ends.read_from, 100) == b"world"


def test_silence_ends_at_the_deadline(ends: Ends) -> None:
    with pytest.raises(DeadlinePassed):
        ends.pipes.read(soon())


def test_what_nobody_takes_ends_at_the_deadline(ends: Ends) -> None:
    with pytest.raises(DeadlinePassed):
        ends.pipes.write(bytes(1 << 20), soon())
    # Else the threaded kind could not be closed.
    os.read(ends.read_from, 1 << 20)


def test_the_end_is_empty_bytes(ends: Ends) -> None:
    ends.say(b"last words")
    ends.hang_up()
    assert ends.pipes.read(None) == b"last words"
    assert ends.pipes.read(None) == b""


def test_nobody_reads_any_more(ends: Ends) -> None:
    ends.hang_up()
    with pytest.raises(HungUp):
        ends.pipes.write(b"anybody?", None)


def test_a_large_message_passes_while_the_other_side_talks(ends: Ends) -> None:
    received = bytearray()

    def other_side() -> None:
        ends.say(b"x" * 30_000)
        while len(received) < 1 << 20:
            received.extend(os.read(ends.read_from, 1 << 16))

    thread = threading.Thread(target=other_side)
    thread.start()
    ends.pipes.write(b"y" * (1 << 20), None)
    thread.join()
    assert bytes(received) == b"y" * (1 << 20)
    arrived = b""
    while len(arrived) < 30_000:
        arrived += ends.pipes.read(None)
    assert arrived == b"x" * 30_000


def test_one_who_only_talks_is_cut_off() -> None:
    incoming, write_to = os.pipe()
    read_from, outgoing = os.pipe()
    pipes = PolledPipes(incoming, outgoing)

    def talk() -> None:
        with contextlib.suppress(BrokenPipeError):
            while True:
                os.write(write_to, b"z" * 65536)

    thread = threading.Thread(target=talk)
    thread.start()
    with pytest.raises(Flooded):
        pipes.write(bytes(1 << 20), None)
    pipes.close()
    thread.join()
    os.close(write_to)
    os.close(read_from)


def test_frames_are_picked_out_of_noise(ends: Ends) -> None:
    channel = Channel(ends.pipes, TOKEN)
    block = Block(durations_ns=tuple(range(20_000)), wall_ns=1, cpu_ns=2)
    data = (
        b"banner\nno end: "
        + encode_frame(TOKEN, pack_answer(PhaseEntered(phase="first")))
        + b"more noise\n"
        + encode_frame(TOKEN, pack_answer(block))
    )
    writer = threading.Thread(target=ends.say, args=(data,))
    writer.start()
    assert channel.receive(Block, None) == PhaseEntered(phase="first")
    assert channel.receive(Block, None) == block
    writer.join()
    assert channel.noise == "banner\nmore noise\n"
    ends.hang_up()
    with pytest.raises(HungUp):
        channel.receive(Block, None)


def test_questions_leave_as_frames(ends: Ends) -> None:
    channel = Channel(ends.pipes, TOKEN)
    channel.ask(Inspect(), None)
    channel.ask(TimeBlock(iterations=3), None)
    expected = encode_frame(TOKEN, pack_question(Inspect())) + encode_frame(
        TOKEN, pack_question(TimeBlock(iterations=3))
    )
    assert os.read(ends.read_from, 1000) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"0123abcd {broken\n", "broken frame"),
        (encode_frame(TOKEN, {"message": "Nonsense", "value": {}}), "unknown answer 'Nonsense'"),
        (encode_frame(TOKEN, [1]), "is not a message"),
    ],
)
def test_broken_frames_are_garbage(ends: Ends, data: bytes, words: str) -> None:
    ends.say(data)
    with pytest.raises(Garbage, match=words):
        Channel(ends.pipes, TOKEN).receive(Block, None)


def test_half_a_frame_at_the_end_is_noise(ends: Ends) -> None:
    ends.say(b"0123abcd {half")
    ends.hang_up()
    channel = Channel(ends.pipes, TOKEN)
    with pytest.raises(HungUp):
        channel.receive(Block, None)
    assert channel.noise == "0123abcd {half"
