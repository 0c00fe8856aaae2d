"""The rendezvous of `torchrun` at the server, with a server whose answers are scripted."""

import socket
import threading
import time

import pytest
from meeting_server import Server, opens, world

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch.distributed.elastic.rendezvous import api

from elastane import rendezvous, torchrun
from elastane.channel import VARIABLE


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """Makes the rendezvous of a pod whose server gives these answers."""
    monkeypatch.setenv("PET_LOCAL_ADDR", "127.0.0.1")
    made = []

    def make(answers, **settings):
        path = tmp_path / f"socket-{len(made)}"
        server = Server(path, answers)
        monkeypatch.setenv(VARIABLE, str(path))
        parameters = api.RendezvousParameters(
            torchrun.NAME, "127.0.0.1:1", "training", 1, 3, **settings
        )
        handler = torchrun.handler()(parameters)
        made.append(handler)
        return handler, server

    yield make
    for handler in made:
        handler._ended.set()


def wait_until(holds):
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until, "it does not come to that"
        time.sleep(0.01)


def parts(found):
    """Store, rank and size, as PyTorch before and after 2.4 has them."""
    return found if isinstance(found, tuple) else (found.store, found.rank, found.world_size)


def test_the_first_opens_a_store_that_the_others_find(pod):
    first, server = pod(opens, node_unit="2", last_call_timeout="5")
    store, rank, size = parts(first.next_rendezvous())
    assert (rank, size) == (0, 1)
    store.set("key", "value")
    said = server.asked[-1]
    assert {name: said[name] for name in ("min", "max", "unit", "wait_ms")} == {
        "min": 1, "max": 3, "unit": 2, "wait_ms": 5000
    }
    second, _ = pod(lambda _: world(1, rank=1, size=2, store=said["store"]["address"]))
    there, rank, size = parts(second.next_rendezvous())
    assert (rank, size, there.get("key")) == (1, 2, b"value")
    # The next world has another store.
    later, _, _ = parts(first.next_rendezvous())
    later.set("other", "1")
    assert server.asked[-1]["of"] == {"generation": 1, "rank": 0, "size": 1}
    assert server.asked[-1]["store"]["address"] != said["store"]["address"]


def test_one_whose_store_is_gone_waits_for_the_next_world(pod, monkeypatch):
    monkeypatch.setattr(rendezvous, "_STORE_S", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{free.getsockname()[1]}"

    def answers(asked):
        if "of" not in asked:
            return world(4, rank=1, size=2, store=nowhere)
        return opens(asked)

    handler, server = pod(answers)
    _, rank, size = parts(handler.next_rendezvous())
    assert (rank, size) == (0, 1)
    assert server.asked[1]["of"] == {"generation": 4, "rank": 1, "size": 2}


def test_a_change_is_noticed_while_processes_compute(pod, monkeypatch):
    monkeypatch.setattr(rendezvous, "_COMPUTING_S", 0.01)
    changed = threading.Event()

    def answers(asked):
        if changed.is_set() and not asked.get("arrives"):
            return world(2, changed=True)
        return opens(asked)

    handler, server = pod(answers)
    handler.next_rendezvous()
    seen = len(server.asked)
    wait_until(lambda: len(server.asked) >= seen + 3)
    assert handler.num_nodes_waiting() == 0
    changed.set()
    wait_until(lambda: handler.num_nodes_waiting() > 0)


def test_a_server_that_is_restarted_is_waited_for(pod):
    silent = iter([True, True, True])
    handler, server = pod(lambda asked: None if next(silent, False) else opens(asked))
    assert parts(handler.next_rendezvous())[1:] == (0, 1)
    assert len(server.asked) == 5


def test_only_an_end_without_an_error_ends_it_for_the_others(pod):
    def answers(asked):
        return world(0, over=True) if asked.get("done") else opens(asked)

    handler, server = pod(answers)
    handler.next_rendezvous()
    try:
        raise RuntimeError("a script that failed")
    except RuntimeError:
        handler.shutdown()
    assert not any(asked.get("done") for asked in server.asked) and not handler.is_closed()
    assert server.asked[-1]["leaves"]
    handler.shutdown()
    assert server.asked[-1]["done"] and handler.is_closed()


def test_a_pod_that_comes_after_the_end_ends_well_and_one_that_failed_does_not(pod):
    late, _ = pod(lambda _: world(0, over=True))
    with pytest.raises(SystemExit) as ended:
        late.next_rendezvous()
    assert ended.value.code == 0
    is_over = threading.Event()
    failed, _ = pod(lambda asked: world(0, over=True) if is_over.is_set() else opens(asked))
    failed.next_rendezvous()
    is_over.set()
    with pytest.raises(api.RendezvousClosedError, match="ended well in another pod"):
        failed.next_rendezvous()


def test_the_end_is_said_until_the_server_answers(pod, monkeypatch):
    monkeypatch.setattr(rendezvous, "_COMPUTING_S", 0.01)
    ends = iter([None, None])

    def answers(asked):
        return next(ends, world(0, over=True)) if asked.get("done") else opens(asked)

    handler, server = pod(answers)
    handler.next_rendezvous()
    handler.set_closed()
    assert sum("done" in asked for asked in server.asked) == 3


def test_what_goes_wrong_is_named(pod, monkeypatch):
    late, _ = pod(lambda _: world(1, rank=None), join_timeout="1")
    with pytest.raises(api.RendezvousTimeoutError, match="1 pods did not meet within 1 s: raise"):
        late.next_rendezvous()
    silent, _ = pod(lambda _: None, join_timeout="1")
    with pytest.raises(api.RendezvousTimeoutError, match="the server does not answer at"):
        silent.next_rendezvous()
    elsewhere, _ = pod(lambda _: world(1, rank=0, size=2, store="127.0.0.1:1"), join_timeout="1")
    with pytest.raises(api.RendezvousTimeoutError, match="store of a world at .* cannot be used"):
        elsewhere.next_rendezvous()
    refused, _ = pod(lambda _: {"ok": False, "why": "this run works together with no other"})
    with pytest.raises(api.RendezvousStateError, match="works together with no other"):
        refused.next_rendezvous()
    with pytest.raises(ValueError, match="node_unit in --rdzv_conf is 'two'"):
        pod(opens, node_unit="two")
    monkeypatch.delenv(VARIABLE)
    parameters = api.RendezvousParameters(torchrun.NAME, "", "training", 1, 1)
    with pytest.raises(ValueError, match=f"{VARIABLE} is not set.*use c10d elsewhere"):
        torchrun.create(parameters)
