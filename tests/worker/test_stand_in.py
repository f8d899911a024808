"""The stand-in for CUDA's driver: its events do what NVIDIA documents of the real ones."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass

import pytest

from tests.worker.stand_in import compile_driver

pytestmark = [pytest.mark.live, pytest.mark.needs("cc")]

FINE, INVALID_HANDLE, NOT_READY = 0, 400, 600
MS = 1_000_000


@dataclass
class Driver:
    """The driver, with handles of its streams and events."""

    library: ctypes.CDLL

    def stream(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        assert self.library.cuStreamCreate(ctypes.byref(made), 1) == FINE
        return made

    def event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        assert self.library.cuEventCreate(ctypes.byref(made), 0) == FINE
        return made

    def recorded(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        event = self.event()
        assert self.library.cuEventRecord(event, stream) == FINE
        return event

    def end(self, stream: ctypes.c_void_p, at_ns: int) -> None:
        self.library.stand_in_end(stream, ctypes.c_int64(at_ns))

    def elapsed(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> tuple[int, float]:
        ms = ctypes.c_float()
        return self.library.cuEventElapsedTime(ctypes.byref(ms), first, last), ms.value


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    folder = tmp_path_factory.mktemp("driver")
    return Driver(ctypes.CDLL(str(compile_driver(folder) / "libcuda.so.1")))


def test_an_event_gets_the_time_at_which_the_work_before_it_ends(driver: Driver) -> None:
    stream, ends_ns = driver.stream(), time.monotonic_ns() + 10_000 * MS
    driver.library.stand_in_begin(stream)
    first = driver.recorded(stream)
    driver.library.stand_in_begin(stream)
    # Recording waits for nothing, so neither event is there yet.
    last = driver.recorded(stream)
    driver.end(stream, ends_ns)
    assert driver.elapsed(first, last)[0] == NOT_READY
    driver.end(stream, ends_ns + 5 * MS)
    # Whoever looks later finds the same.
    assert driver.library.cuEventSynchronize(last) == FINE
    assert driver.elapsed(first, last) == (FINE, 5.0)


def test_an_event_on_an_idle_stream_is_there_at_once(driver: Driver) -> None:
    stream = driver.stream()
    before_ns = time.monotonic_ns()
    first = driver.recorded(stream)
    driver.library.stand_in_begin(stream)
    last = driver.recorded(stream)
    driver.end(stream, before_ns + 10_000 * MS)
    status, ms = driver.elapsed(first, last)
    assert status == FINE
    assert 0 < ms <= 10_000


def test_an_event_does_not_wait_for_another_stream(driver: Driver) -> None:
    stream, other = driver.stream(), driver.stream()
    driver.library.stand_in_begin(other)
    first, last = driver.recorded(stream), driver.recorded(stream)
    assert driver.elapsed(first, last)[0] == FINE
    driver.end(other, time.monotonic_ns())


def test_an_event_that_was_never_recorded_has_no_time(driver: Driver) -> None:
    stream = driver.stream()
    assert driver.elapsed(driver.recorded(stream), driver.event())[0] == INVALID_HANDLE
