"""Whether the device that is asked for is the one that computes and the one that is read."""

from __future__ import annotations

from pytest_ortbench.core.case import Provider
from pytest_ortbench.core.certificate import Amount
from pytest_ortbench.core.provider_kinds import NVIDIA
from pytest_ortbench.selfcheck.check import Check, CheckBench, LineFinding, passed, unchecked, wrong
from pytest_ortbench.selfcheck.facts import SeenDevice
from pytest_ortbench.selfcheck.questions import SeeDevice


def _look(bench: CheckBench) -> SeenDevice:
    if bench.provider.computes_on_host:
        return SeenDevice()
    with bench.opened(bench.case("builtin:canary")) as worker:
        return worker.ask(SeeDevice())


def _judge(facts: SeenDevice, provider: Provider) -> LineFinding:
    if provider.computes_on_host:
        return unchecked("host", "the CPUs of the machine compute: there is no device to choose")
    if provider.name not in NVIDIA:
        return _told(facts)
    words = {"asked": facts.asked or "0", "read": facts.chosen, "computing": facts.computing}
    words = {name: word for name, word in words.items() if word} | facts.settings
    visible = Amount(name="visible", value=float(facts.visible))
    if not facts.chosen:
        return unchecked("not read", facts.reason or "no device is read", visible, **words)
    if not facts.computing:
        return unchecked("not told", "CUDA's driver does not tell its device", visible, **words)
    if _bare(facts.chosen) != facts.computing.lower():
        return wrong("another device", "another device is read than computes", visible, **words)
    if facts.seen_on and facts.chosen not in facts.seen_on:
        words["seen on"] = " ".join(facts.seen_on)
        return wrong("another device", "this process computes on another device", visible, **words)
    if not facts.seen_on:
        return passed(
            "same UUID",
            "CUDA and NVML name the same device; processes are not told",
            visible,
            **words,
        )
    return passed("same device", "CUDA, NVML and processes name the same device", visible, **words)


def _told(facts: SeenDevice) -> LineFinding:
    """What the session reads back, where nothing else tells the device."""
    read = " ".join(sorted(facts.in_force.values()))
    if facts.asked and read and facts.asked not in facts.in_force.values():
        return wrong(
            "another device", "the session reads back another device", asked=facts.asked, read=read
        )
    words = {"read back": read} if read else {}
    return unchecked("not told", "nothing but the session itself tells its device", **words)


def _bare(uuid: str) -> str:
    """A UUID without its kind, in small letters, as CUDA's driver gives it."""
    return uuid.partition("-")[2].lower()


CHECK = Check(name="device", about="the device that computes", look=_look, judge=_judge)
