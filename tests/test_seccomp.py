"""The filter on system calls, instruction by instruction: what it says of every call, on both kinds of machine."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator

import pytest

from autograder.sandbox import seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, NOT_THERE = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
OWN_PID = 4711
ELSEWHERE = {"x86_64": 0xC00000B7, "aarch64": 0xC000003E, "i386": 0x40000003}


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(seccomp, "MACHINE", request.param)
    seccomp.filter_for.cache_clear()
    yield request.param
    seccomp.filter_for.cache_clear()


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the filter returns, by the rules of classic BPF (bpf(4)); a step out of the program is an IndexError."""
    program = seccomp.filter_for(OWN_PID)
    assert program is not None
    steps = list(struct.iter_unpack("=HBBI", program))
    kind = seccomp._ARCHITECTURE[machine] if architecture is None else architecture
    data = struct.pack("=IIQ6Q", number, kind, 0, *arguments, *[0] * (6 - len(arguments)))
    place = loaded = 0
    while True:
        code, if_true, if_false, operand = steps[place]
        place += 1
        if code == 0x20:  # load a word of the data
            (loaded,) = struct.unpack_from("=I", data, operand)
        elif code == 0x06:
            return operand
        else:
            compared = {0x15: loaded == operand, 0x35: loaded >= operand, 0x45: bool(loaded & operand)}
            place += if_true if compared[code] else if_false


def test_of_all_calls_exactly_those_named_are_refused(machine: str) -> None:
    column = ["x86_64", "aarch64"].index(machine)
    named = {numbers[column] for numbers in seccomp._REFUSED.values()} - {None}
    with_no_arguments = {call[machine] for call in (seccomp._CLONE, seccomp._KILL_CALL, seccomp._TGKILL)}
    assert len(named) > 60
    refused = {number for number in range(1000) if verdict(machine, number) == REFUSE}
    assert refused == named | with_no_arguments
    assert {number for number in range(1000) if verdict(machine, number) not in (REFUSE, ALLOW)} == {435}
    assert verdict(machine, 435) == NOT_THERE


def test_threads_are_allowed_and_processes_are_not(machine: str) -> None:
    clone = seccomp._CLONE[machine]
    assert verdict(machine, clone, 0x003D0F00) == ALLOW  # what pthread_create(3) asks for
    assert verdict(machine, clone, 0x01200011) == REFUSE  # what fork(3) asks for


@pytest.mark.parametrize("call", ["_KILL_CALL", "_TGKILL"])
def test_signals_go_to_oneself_only(machine: str, call: str) -> None:
    number = getattr(seccomp, call)[machine]
    assert verdict(machine, number, OWN_PID) == ALLOW
    for other in (1, OWN_PID + 1, 0, 0xFFFFFFFF, 0xFFFFFFFF - OWN_PID + 1):
        assert verdict(machine, number, other) == REFUSE


def test_limits_of_oneself_only(machine: str) -> None:
    assert verdict(machine, seccomp._PRLIMIT[machine], 0) == ALLOW
    assert verdict(machine, seccomp._PRLIMIT[machine], 1) == REFUSE


@pytest.mark.parametrize(
    ("call", "place", "refused", "allowed"),
    [("_PRCTL", 0, [1], [4, 15, 38]), ("_FCNTL", 1, [8, 15], [1, 2, 3, 4]), ("_IOCTL", 1, [0x8901, 0x8902], [0x5401])],
)
def test_a_call_is_refused_by_what_it_asks_for(
    machine: str, call: str, place: int, refused: list[int], allowed: list[int]
) -> None:
    for expected, asked in ((REFUSE, refused), (ALLOW, allowed)):
        for value in asked:
            assert verdict(machine, getattr(seccomp, call)[machine], *[7] * place, value) == expected


def test_another_way_to_call_ends_the_process_or_is_refused(machine: str) -> None:
    for name, kind in ELSEWHERE.items():
        if kind != seccomp._ARCHITECTURE[machine]:
            assert verdict(machine, 0, architecture=kind) == KILL, name
    if machine == "x86_64":
        for number in (0, 41, 500):  # x32
            assert verdict(machine, 0x40000000 | number) == REFUSE
