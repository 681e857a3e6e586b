"""Who is let in, what they get, and what they can ask for."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from controllers.record.timeline import EventKind, TimelineEvent, TimelineFile
from hera_specon.live.local import LocalShelf
from hera_specon.live.serving import PageServer
from tests.hera_specon.live.served import Served, serving
from tests.hera_specon.report.example_run import write_example_run

PATHS: Final = ("/", "/files/page.js", "/sweeps/demo-1", "/sweeps/demo-1/standing", "/sweeps/demo-1/report")
EVIL: Final = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
PAUSE: Final = {"what": "pause", "trials": ["demo.t000"]}


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Folder of a run under one policy that has not ended, with two trials that run and one that has succeeded."""
    folder = tmp_path / "runs" / "demo-1"
    part = folder / "00-ahead"
    part.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"name": "demo-1", "direction": "minimize", "policies": ["ahead"]}))
    (part / "ledger.json").write_text("{}")
    events = [
        TimelineEvent(0.0, EventKind.PHASE, f"demo.t{n:03}", phase="running", node="n1", cpu=1.0) for n in range(3)
    ]
    events.append(TimelineEvent(9.0, EventKind.PHASE, "demo.t002", phase="succeeded", node="n1"))
    events.append(TimelineEvent(9.5, EventKind.REPORT, "demo.t000", value=0.125, step=3, steps_total=10))
    TimelineFile(part / "timeline.jsonl").append(events)
    return part


@pytest.fixture
def served(tmp_path: Path, part: Path) -> Iterator[Served]:
    del part
    with serving(LocalShelf(tmp_path)) as served:
        yield served


def asked(part: Path) -> dict[str, str]:
    file = part / "asked.json"
    found: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
    return found


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_told_without_the_token(served: Served, path: str) -> None:
    wrong = "A" * len(served.token)
    for token in ("", wrong, served.token[:-1], served.token + "A", "%00", "%C3%A9"):
        refused = served.ask(path, token=token)
        assert refused.status == 403
        assert "lacks its token" in refused.body
    assert served.ask(path).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "[::1]:{port}", ""])
def test_another_name_that_leads_here_is_refused(served: Served, host: str) -> None:
    refused = served.ask("/", headers={"Host": host.format(port=served.port)})

    assert (refused.status, refused.body) == (403, "This page answers to 127.0.0.1 and localhost only.")


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:9000"])
def test_a_tunnel_from_another_port_is_let_in(served: Served, part: Path, host: str) -> None:
    assert served.ask("/", headers={"Host": host}).status == 200
    there = {"Host": host, "Origin": f"http://{host}"}
    assert served.post("/sweeps/demo-1/ask", PAUSE, headers=there).status == 200
    assert asked(part) == {"demo.t000": "pause"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_site_can_ask_for_nothing(served: Served, part: Path, headers: dict[str, str]) -> None:
    for path in ("/sweeps/demo-1/ask", "/sweeps/demo-1/policy"):
        assert served.post(path, {**PAUSE, "policy": "specon"}, headers=headers).status == 403
    assert asked(part) == {}
    assert not (part / "set-policy").exists()


def test_a_form_of_another_site_can_ask_for_nothing(served: Served, part: Path) -> None:
    plain = served.post("/sweeps/demo-1/ask", PAUSE, headers={"Content-Type": "text/plain"})

    assert plain.status == 409
    assert asked(part) == {}


def test_every_answer_forbids_scripts_of_others_frames_and_caches(served: Served) -> None:
    refused = served.ask("/", token="wrong")  # noqa: S106 - it is none
    for answer in (refused, served.ask("/nothing"), *(served.ask(path) for path in PATHS)):
        policy = answer.headers["content-security-policy"]
        scripts = re.findall(r"script-src ([^;]*)", policy)
        assert scripts == ["'self'"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_listens_on_this_machines_own_address_only(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5):
        pass
    # All of 127/8 is this machine: a socket on every address would answer there too.
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", served.port), timeout=5):  # noqa: PT011
        pass


def test_what_has_not_changed_is_not_sent_again_and_what_has_is(
    served: Served, part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hera_specon.live.local.STANDING_S", 0.0)
    monkeypatch.setattr("hera_specon.live.paced.MOST_BUSY", 1e9)
    first = served.ask("/sweeps/demo-1/standing")
    assert "0.125" in first.html
    mark = {"If-None-Match": first.headers["etag"]}
    again = served.ask("/sweeps/demo-1/standing", headers=mark)
    assert (again.status, again.body) == (304, "")

    report = TimelineEvent(11.0, EventKind.REPORT, "demo.t001", value=0.0625, step=4)
    TimelineFile(part / "timeline.jsonl").append([report])
    changed = served.ask("/sweeps/demo-1/standing", headers=mark)
    assert changed.status == 200
    assert "0.0625" in changed.html
    assert changed.headers["etag"] != first.headers["etag"]


def test_buttons_ask_as_the_commands_do(served: Served, part: Path) -> None:
    paused = served.post("/sweeps/demo-1/ask", PAUSE)
    assert (paused.status, paused.body.partition(";")[0]) == (200, "demo.t000: asked to pause")
    assert served.post("/sweeps/demo-1/ask", {"what": "stop", "trials": ["demo.t001"]}).status == 200
    assert asked(part) == {"demo.t000": "pause", "demo.t001": "stop"}
    shown = served.ask("/sweeps/demo-1/standing").html
    assert 'data-what="resume" data-trial="demo.t000"' in shown
    assert 'data-trial="demo.t001"' not in shown

    assert served.post("/sweeps/demo-1/ask", {"what": "resume", "trials": None}).body == "demo.t000: goes on"
    assert asked(part) == {"demo.t001": "stop"}
    served.post("/sweeps/demo-1/ask", {"what": "stop", "trials": None})
    assert asked(part) == {"demo.t000": "stop", "demo.t001": "stop"}

    given = served.post("/sweeps/demo-1/policy", {"policy": "specon:interval=10"})
    assert (given.status, given.body) == (200, "demo-1: asked for specon:interval=10 from now on")
    assert (part / "set-policy").read_text() == "specon:interval=10"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("ask", {"what": "pause", "trials": ["demo.t002"]}, "There is no trial 'demo.t002' to ask"),
        ("ask", {"what": "explode", "trials": None}, "a trial cannot be asked to 'explode'"),
        ("ask", {"what": "stop", "trials": "demo.t000"}, "an ask is"),
        ("ask", {"what": "stop", "trials": [1]}, "an ask is"),
        ("ask", {}, "an ask is"),
        ("ask", b"{", "no JSON"),
        ("ask", b"[" * 5000, "no JSON"),
        ("ask", b" " * (2**20 + 1), "more than"),
        ("policy", {"policy": "nonsense"}, "unknown policy 'nonsense'"),
        ("policy", {"policy": 7}, "a policy is asked for by"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    served: Served, part: Path, path: str, body: object, told: str
) -> None:
    refused = served.post(f"/sweeps/demo-1/{path}", body)

    assert refused.status == 409
    assert told in refused.body
    assert asked(part) == {}
    assert not (part / "set-policy").exists()


def test_nothing_is_asked_by_looking(served: Served, part: Path) -> None:
    for path in ("/sweeps/demo-1/ask", "/sweeps/demo-1/policy"):
        assert served.ask(path).status == 405
    assert asked(part) == {}


@pytest.mark.parametrize("name", ["..", ".", "%2e%2e", "..%2f..%2fetc", "/etc", "demo-2", "demo-1%00"])
def test_a_name_leads_to_no_other_folder(served: Served, tmp_path: Path, name: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    for path in (f"/sweeps/{name}", f"/sweeps/{name}/standing", f"/sweeps/{name}/report"):
        assert served.ask(path).status in {404, 409}


def test_names_of_others_cannot_break_a_page(served: Served, tmp_path: Path, part: Path) -> None:
    about = {"name": EVIL, "direction": "minimize", "policies": [EVIL], "objective": EVIL, "started": EVIL}
    (part.parent / "run.json").write_text(json.dumps(about))
    events = [
        TimelineEvent(20.0, EventKind.PHASE, EVIL, phase="running", node=EVIL, cpu=1.0, reason=EVIL),
        TimelineEvent(21.0, EventKind.REPORT, EVIL, value=0.01, step=3),
        TimelineEvent(22.0, EventKind.MOVE, EVIL, node=EVIL, reason=EVIL),
        TimelineEvent(23.0, EventKind.OUTLOOK, EVIL, reason=EVIL),
    ]
    TimelineFile(part / "timeline.jsonl").append(events)
    action = {"at": 20.0, "kind": EVIL, "trial": EVIL, "reason": EVIL, "outcome": EVIL, "detail": EVIL}
    (part / "actions.jsonl").write_text(json.dumps(action) + "\nnonsense\n")
    (tmp_path / "runs" / "<b>bold").mkdir()
    (tmp_path / "runs" / "<b>bold" / "run.json").write_text("{}")

    for page in (served.ask("/sweeps/demo-1/standing"), served.ask("/sweeps/demo-1/report")):
        assert page.problem is None
        assert "alert(1)" in page.html
        assert "<script>alert" not in page.html
        assert "<img" not in page.html
    listed = served.ask("/").body
    assert "alert(1)" in listed
    assert "&lt;b&gt;bold" in listed
    assert not re.search("<b>bold|<script>alert|<img", listed)


def test_the_list_tells_of_runs_newest_first_and_of_none(served: Served, tmp_path: Path) -> None:
    write_example_run(tmp_path, "demo-2")

    listed = re.findall(r'href="sweeps/([^"]*)"', served.ask("/").body)

    assert set(listed) == {"demo-1", "demo-2"}
    with serving(LocalShelf(tmp_path / "elsewhere")) as empty:
        assert "There are none yet." in empty.ask("/").body


def test_a_run_that_cannot_be_read_says_why_and_goes_on_when_it_can(
    served: Served, part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hera_specon.live.local.STANDING_S", 0.0)
    monkeypatch.setattr("hera_specon.live.paced.MOST_BUSY", 1e9)
    whole = (part.parent / "run.json").read_text()
    (part.parent / "run.json").write_text("{")
    broken = served.ask("/sweeps/demo-1/standing")
    assert broken.status == 200
    assert "run.json" in (broken.problem or "")

    (part.parent / "run.json").write_text(whole)
    assert served.ask("/sweeps/demo-1/standing").problem is None


def test_the_library_for_charts_comes_packed(served: Served) -> None:
    library = served.ask("/files/plotly.js")

    assert library.headers["content-encoding"] == "gzip"
    assert served.ask("/files/../sweep.html.j2").status == 404


def test_a_request_says_that_somebody_looks(tmp_path: Path) -> None:
    now = [0.0]
    server = PageServer(LocalShelf(tmp_path), "Runs", "t", lambda: now[0])
    now[0] = 50.0
    assert server.unseen_s == 50.0
