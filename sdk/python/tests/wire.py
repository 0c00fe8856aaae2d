"""A network that can be cut: a port whose bytes go on to another, or stay where they are."""

import socket
import threading


class Wire:
    """To the port of a job. While it is cut nothing arrives and nothing is closed, as where packets
    are lost; what was sent meanwhile arrives afterwards, as it does by TCP."""

    def __init__(self, job):
        self._port = job.port
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._run(self._accept)

    def cut_for(self, seconds):
        """Cuts it for so long."""
        self._whole.clear()
        threading.Event().wait(seconds)
        self._whole.set()

    @staticmethod
    def _run(work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self):
        while True:
            near, _ = self._listener.accept()
            self._run(self._join, near)

    def _join(self, near):
        self._whole.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            near.close()
            return
        self._run(self._pass, near, far)
        self._run(self._pass, far, near)

    def _pass(self, near, far):
        try:
            while data := near.recv(1 << 16):
                self._whole.wait()
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)
        except OSError:
            near.close()
            far.close()
