"""A server at which pods meet, whose answers are scripted."""

import json
import socket
import threading


class Server:
    """Answers what pods ask on a socket by a function; none: it does not answer."""

    def __init__(self, path, answers):
        self.asked, self.answers = [], answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self._socket.accept()
            with connection:
                asked = json.loads(connection.makefile().readline())["meet"]
                self.asked.append(asked)
                answer = self.answers(asked)
                if answer is not None:
                    connection.sendall(json.dumps(answer).encode() + b"\n")


def world(generation, rank=0, size=1, **more):
    here = {"generation": generation, "rank": rank, "size": size, "changed": False, "over": False}
    return {"ok": True, "world": {**here, **more}}


def opens(asked):
    """The answers to one that is alone: it opens its store, then all have arrived."""
    generation = asked.get("of", {"generation": 0})["generation"] + 1
    if not asked.get("arrives"):
        return world(generation - 1)
    store = asked.get("store")
    if store is None or store["generation"] != generation:
        return world(generation)
    return world(generation, store=store["address"])
