"""The compile service: many callers, one thread that watches the compile processes, and failures of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tunesmith.bench import Policy
from tunesmith.cluster import compiling
from tunesmith.cluster.compiling import CompileService
from tunesmith.devices.fake import fake_target
from tunesmith.records import Module, UserError

TARGET = fake_target("GPU")
SECONDS = 30.0


class Pumped:
    """Compile processes that finish a module at each pump; or that fail, as long as they are told to."""

    broken: frozenset[float] = frozenset()

    def __init__(self, spawner, target, policy, observe, cache):
        self._fails_with = policy.compile_timeout_seconds
        self.waiting, self.done, self.connections, self.deadline = [], {}, [], 0.0

    @property
    def busy(self):
        return bool(self.waiting)

    def request(self, modules):
        self.waiting += [digest for digest, _ in modules if digest not in self.done and digest not in self.waiting]

    def pump(self):
        if self._fails_with in Pumped.broken:
            raise UserError("compiling", "the disk is full", "make room")
        if self.waiting:
            self.done[self.waiting.pop(0)] = True

    def compilation(self, digest, module):
        return SimpleNamespace(module=module) if digest in self.done else None

    def close(self):
        self.waiting.clear()


@pytest.fixture
def service(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "Compilers", Pumped)
    monkeypatch.setattr(Pumped, "broken", frozenset())
    service = CompileService(tmp_path, 2)
    yield service
    service.close()


def modules(*names):
    return [Module("fake", name, (name,)) for name in names]


def test_many_callers_at_once_get_what_they_asked_for(service):
    asked = [modules(f"a{number}", "shared", f"b{number}") for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda each: service.compile(each, TARGET, Policy()), asked, timeout=SECONDS))
    assert [[done.module for done in answer] for answer in answers] == asked


def test_a_failure_is_told_to_its_callers_only_and_not_to_later_ones(service, monkeypatch):
    broken = replace(Policy(), compile_timeout_seconds=7.0)
    monkeypatch.setattr(Pumped, "broken", frozenset({7.0}))
    with pytest.raises(UserError, match="the disk is full"):
        service.compile(modules("x"), TARGET, broken)
    assert len(service.compile(modules("x", "y"), TARGET, Policy())) == 2, "another target's processes work"
    monkeypatch.setattr(Pumped, "broken", frozenset())
    assert len(service.compile(modules("x", "y"), TARGET, broken)) == 2, "there is room again"


def test_who_waits_when_the_service_closes_is_told(service, monkeypatch):
    pumped = threading.Event()
    monkeypatch.setattr(Pumped, "pump", lambda compilers: pumped.set())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.compile, modules("x"), TARGET, Policy())
        assert pumped.wait(SECONDS)
        service.close()
        with pytest.raises(UserError, match="has ended"):
            waiting.result(SECONDS)
