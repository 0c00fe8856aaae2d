"""The channel of a run, with a server that notes what arrives."""

import json
import os
import socket
import stat
import threading
import warnings

import pytest

import elastane


class Server:
    """Answers each report so."""

    def __init__(self, folder, answer):
        self.path = str(folder / "socket")
        self.heard = []
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            connection, _ = self._listener.accept()
            with connection:
                line, files, _, _ = socket.recv_fds(connection, 4096, 4)
                names = [os.readlink(f"/proc/self/fd/{file}") for file in files]
                assert all(stat.S_ISREG(os.fstat(file).st_mode) for file in files)
                for file in files:
                    os.close(file)
                self.heard.append((json.loads(line), [os.path.basename(name) for name in names]))
                connection.sendall(self._answer)


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = Server(tmp_path, b'{"ok":true}\n')
    monkeypatch.setenv("ELASTANE_CHANNEL", server.path)
    return server


def test_outside_of_a_workload_nothing_happens(monkeypatch, tmp_path):
    monkeypatch.delenv("ELASTANE_CHANNEL", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert elastane.checkpoint(tmp_path / "missing") is False
        assert elastane.checkpoint(tmp_path, step="ten") is False
        assert elastane.next_checkpoint(5) is False


def test_the_file_goes_along(server, tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"weights")
    assert elastane.checkpoint(path, step=7, next_in=60)
    assert elastane.next_checkpoint(2)
    saved = {"checkpoint": {"step": 7}, "next_in_s": 60.0}
    assert server.heard == [(saved, ["model.pt"]), ({"next_in_s": 2.0}, [])]


def test_of_a_folder_the_newest_file_with_content_goes_along(server, tmp_path):
    folder = tmp_path / "checkpoint-10"
    (folder / "deep").mkdir(parents=True)
    for moment, (name, text) in enumerate([("old", "x"), ("deep/new", "x"), ("empty", "")]):
        (folder / name).write_text(text)
        os.utime(folder / name, (1000 + moment, 1000 + moment))
    assert elastane.checkpoint(folder)
    assert server.heard == [({"checkpoint": {}}, ["new"])]


def test_what_fails_is_a_warning(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    path.write_bytes(b"weights")
    cases = [(b'{"ok":false,"why":"the file is empty"}\n', "is empty"), (b"", "Expecting value"),
             (b"[]\n", "not understood")]
    for number, (answer, text) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setenv("ELASTANE_CHANNEL", Server(folder, answer).path)
        with pytest.warns(UserWarning, match=text):
            assert elastane.checkpoint(path) is False
    for step, next_in in [("ten", None), (None, []), (float("inf"), None)]:
        with pytest.warns(UserWarning, match="not reported"):
            assert elastane.checkpoint(path, step=step, next_in=next_in) is False
    with pytest.warns(UserWarning, match="No such file"):
        assert elastane.checkpoint(tmp_path / "missing") is False
    monkeypatch.setenv("ELASTANE_CHANNEL", str(tmp_path / "nothing" / "socket"))
    with pytest.warns(UserWarning, match="not reported"):
        assert elastane.checkpoint(path) is False


def asking(monkeypatch, path):
    """The next call asks."""
    monkeypatch.setenv("ELASTANE_CHANNEL", path)
    monkeypatch.setitem(elastane.channel._asked, "at", None)
    monkeypatch.setitem(elastane.channel._asked, "not_before", 0.0)


def test_it_asks_now_and_then_whether_a_checkpoint_is_wanted(server, tmp_path, monkeypatch):
    asking(monkeypatch, server.path)
    assert not elastane.save_wanted()
    assert elastane.save_wanted(every=600) == 0.0, "it asked just now"
    assert server.heard == [({"asks": True}, [])]
    (tmp_path / "wanted").mkdir()
    wanted = Server(tmp_path / "wanted", b'{"ok":true,"save_within_s":17.5}\n')
    asking(monkeypatch, wanted.path)
    assert elastane.save_wanted(every=0) == 17.5
    assert elastane.save_wanted(every=0) == 17.5
    monkeypatch.delenv("ELASTANE_CHANNEL")
    assert elastane.save_wanted(every=0) == 0.0


def test_what_cannot_be_asked_is_a_warning(tmp_path, monkeypatch):
    asking(monkeypatch, str(tmp_path / "nothing" / "socket"))
    with pytest.warns(UserWarning, match="is not known"):
        assert elastane.save_wanted() == 0.0
    for number, answer in enumerate([b'{"save_within_s":"soon"}\n', b"", b"[]\n"]):
        (tmp_path / str(number)).mkdir()
        asking(monkeypatch, Server(tmp_path / str(number), answer).path)
        with pytest.warns(UserWarning, match="is not known"):
            assert elastane.save_wanted() == 0.0
