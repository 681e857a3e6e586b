"""Who has no token may hold connections open, and send half of a request: the page's owner is let in all the same."""

import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hera_specon.live import lobby
from hera_specon.live.local import LocalShelf
from hera_specon.report.opening import opened_unseen
from tests.hera_specon.live.served import Served, serving
from tests.hera_specon.report.example_run import write_example_run

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
Come = Callable[..., socket.socket]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    write_example_run(tmp_path)
    with serving(LocalShelf(tmp_path)) as served:
        yield served


@pytest.fixture
def come(served: Served) -> Iterator[Come]:
    """Open a connection as somebody without the token, and send something."""
    with ExitStack() as stack:

        def come(sent: bytes = HALF, address: str = "127.0.0.1") -> socket.socket:
            made = stack.enter_context(
                socket.create_connection(("127.0.0.1", served.port), 60, source_address=(address, 0))
            )
            made.sendall(sent)
            return made

        yield come


def is_closed(connection: socket.socket, within_s: float = 60.0) -> bool:
    connection.settimeout(within_s)
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", HALF, b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"])
def test_strangers_without_number_leave_the_owner_their_page(sent: bytes, served: Served, come: Come) -> None:
    strangers = [come(sent) for _ in range(200)]
    assert served.ask("/").status == 200
    # The oldest made room.
    assert is_closed(strangers[0])


def test_who_shows_no_token_in_time_is_sent_away_whatever_they_send(
    served: Served, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "TOKEN_WITHIN_S", 0.5)
    strangers = [come(b""), come(HALF), come(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode())]
    assert [is_closed(stranger) for stranger in strangers] == [True] * 3
    dribbling = come(HALF)
    with pytest.raises(ConnectionError):
        _dribble(dribbling)


def _dribble(connection: socket.socket) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        connection.sendall(b"X: 1\r\n")
        time.sleep(0.05)


def test_strangers_of_one_address_take_no_room_of_anothers(served: Served, come: Come) -> None:
    first = come(address="127.0.0.1")
    others = [come(address="127.0.0.2") for _ in range(2 * lobby.MOST_OF_AN_ADDRESS)]
    assert is_closed(others[0])
    assert not is_closed(first, 0.05)
    assert served.ask("/").status == 200


def test_strangers_of_many_addresses_are_bounded_together(served: Served, come: Come) -> None:
    for number in range(2, 8):
        for _ in range(lobby.MOST_OF_AN_ADDRESS):
            come(address=f"127.0.0.{number}")
    assert served.ask("/").status == 200


def test_who_has_shown_the_token_is_not_sent_away_by_strangers(
    served: Served, come: Come, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lobby, "TOKEN_WITHIN_S", 5.0)
    line = f"GET /{served.token}/files/page.css HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    owner = come(f"{line}\r\n".encode())
    assert owner.recv(12) == b"HTTP/1.1 200"
    owner.sendall(line.encode())  # half of the next request
    strangers = [come() for _ in range(2 * lobby.MOST_STRANGERS)]
    assert is_closed(strangers[0])
    owner.sendall(b"\r\n")
    owner.settimeout(60)
    answered = more = owner.recv(65_536)
    while more and b"HTTP/1.1 200" not in answered:
        more = owner.recv(65_536)
        answered += more
    assert b"HTTP/1.1 200" in answered


def test_a_browser_is_shown_the_address_by_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "words"
    browser = tmp_path / "browser"
    browser.write_text(f'#!{sys.executable}\nimport sys\nopen({str(seen)!r}, "w").write("\\n".join(sys.argv[1:]))\n')
    browser.chmod(0o755)
    monkeypatch.setattr("webbrowser.open", lambda url: subprocess.run([browser, url], check=True).returncode == 0)
    address = "http://127.0.0.1:8000/secret-token/sweeps/a&b"
    with opened_unseen(address, tmp_path, {"DISPLAY": ":0"}, "linux"):
        words = seen.read_text()
        assert "secret" not in words
        file = Path(words.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "url=http://127.0.0.1:8000/secret-token/sweeps/a&amp;b" in file.read_text()
    assert not file.exists()


def test_without_a_desktop_no_file_is_left_to_open(tmp_path: Path) -> None:
    with opened_unseen("http://127.0.0.1:8000/secret/", tmp_path, {}, "linux"):
        assert not list(tmp_path.iterdir())
