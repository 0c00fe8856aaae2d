"""The ring of workers, its members as threads of this process."""

import os
import socket
import threading
import time

import numpy as np
import pytest

from elastane.links import Listener, Refused, Unlinked, connect
from elastane.ring import Broken, form
from identity import PEM

TOKEN = "secret"
ENCRYPTED = f"{TOKEN}\n{PEM}"


def never():
    return False


@pytest.fixture
def listeners():
    made = []

    def make(count, token=TOKEN, host="127.0.0.1"):
        made.extend(Listener(host, token) for _ in range(count))
        return made[-count:]

    yield make
    for one in made:
        one.close()


def together(listeners, work, generation=1, token=TOKEN):
    """Results or errors of `work(ring)` in each member of a ring, by rank."""
    addresses = [one.address for one in listeners]
    found = [None] * len(listeners)

    def member(rank):
        ring = None
        try:
            ring = form(listeners[rank], token, generation, rank, addresses, 10, never)
            found[rank] = work(ring)
        except Exception as error:
            found[rank] = error
        finally:
            if ring is not None:
                ring.close()

    threads = [threading.Thread(target=member, args=(rank,)) for rank in range(len(listeners))]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
        assert not one.is_alive(), "a member hangs"
    return found


def test_a_ring_that_is_closed_ends_for_the_others_although_a_fork_has_copies(listeners):
    copies = []

    def work(ring):
        if ring.rank == 0:
            # As a process of a loader has them.
            copies.extend(os.dup(one.fileno()) for one in ring._neighbours)
            ring.close()
            return None
        return ring.gather(b"x")

    _, error = together(listeners(2), work)
    for one in copies:
        os.close(one)
    assert isinstance(error, Broken)


@pytest.mark.parametrize("size", range(1, 6))
def test_sums_are_exact_and_the_same_everywhere(listeners, size):
    # Empty, shorter than the ring, odd, longer than any buffer of a socket.
    for count in (0, 1, 3, 1001, 3_000_001):

        def work(ring, count=count):
            # Whole numbers, so the order of the sum does not matter.
            values = np.arange(count, dtype=np.float32) % 1000 * (ring.rank + 1)
            ring.reduce(values)
            return values

        expected = np.arange(count, dtype=np.float32) % 1000 * (size * (size + 1) // 2)
        for values in together(listeners(size), work):
            assert np.array_equal(values, expected)


def test_sums_of_fractions_have_the_same_bits(listeners):
    def work(ring):
        values = np.random.default_rng(ring.rank).standard_normal(10_007).astype(np.float32)
        ring.reduce(values)
        return values.tobytes()

    assert len(set(together(listeners(5), work))) == 1


@pytest.mark.parametrize("size", range(1, 5))
def test_blocks_and_messages_reach_all(listeners, size):
    def work(ring):
        blocks = ring.gather(bytes([ring.rank]) * 7)
        messages = [
            ring.hand_on_message(source, b"" if ring.rank != source else os.urandom(5) * 999_999)
            for source in range(ring.size)
        ]
        return blocks, messages, ring.hand_on_message(0, b"")

    found = together(listeners(size), work)
    assert found[0][0] == [bytes([rank]) * 7 for rank in range(size)]
    assert found[0][2] == b"" and all(one == found[0] for one in found)


@pytest.mark.parametrize("host", ["::1", "[::1]", "localhost"])
def test_members_are_reached_by_ipv6_and_by_name(listeners, host):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    members = listeners(2, host=host)
    name = "localhost" if host == "localhost" else "[::1]"
    assert all(one.address.rpartition(":")[0] == name for one in members)
    assert together(members, lambda ring: ring.gather(b"-")) == [[b"-"] * 2] * 2


def test_a_member_that_dies_breaks_the_round_in_all_others(listeners):
    since = []

    def work(ring):
        ring.gather(b"-")
        if ring.rank == 2:
            # As the death of a process does.
            ring.close()
            since.append(time.monotonic())
            return None
        ring.reduce(np.ones(10_000_000, np.float32))
        return None

    found = together(listeners(4), work)
    assert [type(one) for one in found] == [Broken, Broken, type(None), Broken], found
    assert since


def test_a_ring_is_aborted_from_another_thread(listeners):
    aborted = threading.Event()

    def work(ring):
        if ring.rank == 1:
            # Takes no part, and keeps its connections until rank 0 has given up.
            return aborted.wait(20)
        if ring.rank == 2:
            return ring.reduce(np.ones(1000, np.float32))
        threading.Timer(0.1, ring.abort).start()
        try:
            return ring.reduce(np.ones(1000, np.float32))
        finally:
            aborted.set()

    found = together(listeners(3), work)
    assert [type(one) for one in found] == [Broken, bool, Broken] and found[1], found


def test_another_token_is_refused_and_never_sent(listeners):
    (own,) = listeners(1)
    until = time.monotonic() + 0.3
    with pytest.raises(Refused, match="does not have the token of this job"):
        connect(own.address, "guess", 1, (1, 0), until, never)

    # A listener that is no worker gets a hello with nothing of the token, and proves nothing.
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        heard = []

        def answer():
            near, _ = foreign.accept()
            with near:
                heard.append(near.recv(4096))
                near.sendall(b"\0" * 64)
                heard.append(near.recv(4096))

        threading.Thread(target=answer, daemon=True).start()
        address = f"127.0.0.1:{foreign.getsockname()[1]}"
        with pytest.raises(Refused):
            connect(address, TOKEN, 1, (1, 0), time.monotonic() + 0.3, never)
    assert TOKEN.encode() not in b"".join(heard) and heard[1:] == [b""]


def test_foreign_processes_on_the_port_do_not_harm_a_ring(listeners):
    members = listeners(3)
    stay = []
    for words in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(2000), b"elastane ring 1\n" * 100):
        host, port = members[1].address.split(":")
        foreign = socket.create_connection((host, int(port)))
        foreign.sendall(words)
        stay.append(foreign)

    def work(ring):
        values = np.ones(1001, np.float32)
        ring.reduce(values)
        return values.sum()

    assert together(members, work) == [3003.0] * 3
    for foreign in stay:
        foreign.close()


def test_a_proof_of_another_connection_is_good_for_nothing(listeners):
    """A proof that a listener has sent to one connection is none for another."""
    (own,) = listeners(1)
    host, port = own.address.split(":")
    with socket.create_connection((host, int(port))) as foreign:
        foreign.settimeout(5)
        hello = b"elastane ring 1\n" + os.urandom(32) + (1).to_bytes(8, "big") + b"\0" * 8
        foreign.sendall(hello)
        answer = foreign.recv(64)
        foreign.sendall(answer[32:])
        assert foreign.recv(1) == b"", "it is closed"


def test_members_of_different_generations_do_not_meet(listeners):
    members = listeners(2)
    addresses = [one.address for one in members]
    found = []

    def member(rank, generation):
        try:
            found.append(form(members[rank], TOKEN, generation, rank, addresses, 0.5, never))
        except Broken as error:
            found.append(error)

    threads = [threading.Thread(target=member, args=(rank, 7 + rank)) for rank in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert [isinstance(one, Broken) for one in found] == [True, True]
    # Once both have the newer one, they do.
    assert together(members, lambda ring: ring.generation, generation=8) == [8, 8]


def test_waiting_for_a_ring_ends_when_the_caller_has_to_stop(listeners):
    (own,) = listeners(1)
    with pytest.raises(Broken):
        form(own, TOKEN, 1, 0, [own.address, own.address], 60, lambda: True)


def test_members_that_encrypt_make_the_same_sums(listeners):
    values = [np.arange(700_001, dtype=np.float32) * (rank + 1) for rank in range(3)]

    def work(ring):
        ring.reduce(values[ring.rank])
        return ring.gather(bytes([ring.rank]))

    found = together(listeners(3, ENCRYPTED), work, token=ENCRYPTED)
    assert found == [[b"\0", b"\1", b"\2"]] * 3
    assert all(np.array_equal(one, values[0]) for one in values)
    assert values[0][700_000] == np.float32(700_000 * 6)


def test_a_member_that_dies_ends_the_sums_of_those_that_encrypt(listeners):
    def work(ring):
        if ring.rank == 1:
            return None
        while True:
            ring.reduce(np.ones(10_000, np.float32))

    found = together(listeners(3, ENCRYPTED), work, token=ENCRYPTED)
    assert found[1] is None and isinstance(found[0], Broken) and isinstance(found[2], Broken)


def test_who_encrypts_sends_nothing_to_one_that_does_not(listeners):
    (plain,) = listeners(1)
    (own,) = listeners(1, ENCRYPTED)
    until = time.monotonic() + 0.5
    with pytest.raises(Unlinked, match="cannot be reached"):
        connect(plain.address, ENCRYPTED, 1, (1, 0), until, never)
    with pytest.raises(Unlinked, match="cannot be reached"):
        connect(own.address, TOKEN, 1, (1, 0), time.monotonic() + 0.5, never)
