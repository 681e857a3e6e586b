"""Whatever command shows the words of others, none of these steers the terminal: asked of every command there is."""

import ast
import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from controllers.core.results import RunResult, TrialResult
from hera_specon.cli import main
from hera_specon.cli.export import _write
from hera_specon.display.console import SafeConsole
from hera_specon.formatting import LONGEST_LINE
from hera_specon.records.flat import flat_rows
from tests.hera_specon.cli.api_server import Cluster, running, write_kubeconfig
from tests.hera_specon.cli.cluster_objects import PODS, WORKFLOWS, listed, pod, workflow
from tests.hera_specon.cli.submitted_sweep import SWEEP
from tests.hera_specon.report.example_run import write_example_run

HOSTILE: Final = (
    "\x1b[2J\x1b]0;owned\x07"  # clears the screen, names the window
    "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\"  # a link (OSC 8)
    "\x1b]52;c;ZXZpbA==\x07"  # fills the clipboard (OSC 52)
    "\x9b31m\x90evil\x9c"  # the same in C1
    "\u202eevil\u202c\u2066evil\u2069"  # turns the direction of reading
    "\r\x08\x0b\x0c\x00\x7f"
    "[link=http://evil]there[/link]"
)
FORBIDDEN: Final = frozenset("\x1b\x07\x9b\x90\x9c\x9d\u202e\u202c\u2066\u2069\r\x08\x0b\x0c\x00\x7f")
LONG: Final = "n" * 200_000


@dataclass(frozen=True)
class Stage:
    """A cluster and a folder full of hostile words, and the command line between them."""

    cluster: Cluster
    folder: Path

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, arguments)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a fixture's generator
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with running() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path, cluster.url)))
        yield Stage(cluster, tmp_path)


def hostile_cluster(stage: Stage, **status: Any) -> None:  # noqa: ANN401 - any JSON
    """Put the words wherever a tenant may write and the API server takes any text."""
    name = f"vae{HOSTILE}"
    held = workflow(name, mlflow=f"http://127.0.0.1:1/{HOSTILE}", **{"message": HOSTILE + LONG, **status})
    held["metadata"]["annotations"] = dict.fromkeys(held["metadata"].get("annotations") or {}, HOSTILE)
    one = pod(0, of=name)
    one["spec"]["nodeName"] = f"n1{HOSTILE}"
    one["status"]["message"] = HOSTILE
    waits = pod(1, of=name, gated=True)
    waits["metadata"]["name"] += HOSTILE
    stage.cluster.objects |= {WORKFLOWS: listed(held), PODS: listed(one, waits)}


def hostile_run(stage: Stage, *, finished: bool = True) -> Path:
    """Put the words into every text of a run's folder."""
    folder = write_example_run(stage.folder / ".specon", "over" if finished else "running")
    about = json.loads((folder / "run.json").read_text())
    about |= {"tracking_uri": f"http://evil/{HOSTILE}", "finished": finished, "objective": f"loss{HOSTILE}"}
    (folder / "run.json").write_text(json.dumps(about))
    for file in folder.rglob("*.json*"):
        if file.name == "run.json":
            continue
        told = [_told(json.loads(one)) for one in _values(file)]
        if not finished:
            told = [one for one in told if one.get("phase") not in {"succeeded", "failed", "stopped"}]
        file.write_text("".join(json.dumps(one) + "\n" for one in told))
        if not finished and file.name == "result.json":
            file.unlink()
    return folder


def _values(file: Path) -> list[str]:
    text = file.read_text()
    return text.splitlines() if file.suffix == ".jsonl" else [text]


def _told(value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {name: _told(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_told(one, key) for one in value]
    spoken = key in {"id", "trial", "node", "nodes", "first_node", "first_nodes", "reason", "objective", "stopped"}
    return f"{value}{HOSTILE}" if isinstance(value, str) and value and spoken else value


def refuse(stage: Stage) -> None:
    """Let the API server refuse everything in such words."""
    stage.cluster.refusals |= {("POST", path): 403 for path in (WORKFLOWS, f"{WORKFLOWS}/x")}


def of_runs(*commands: tuple[str, ...]) -> Callable[[Stage], list[Result]]:
    def invoke(stage: Stage) -> list[Result]:
        folders = [str(hostile_run(stage, finished=finished)) for finished in (True, False)]
        return [
            stage(*(folder if word == "RUN" else word for word in command))
            for folder in folders
            for command in commands
        ]

    return invoke


def in_both(*commands: tuple[str, ...]) -> Callable[[Stage], list[Result]]:
    """Call the commands for a run on this machine, over and not, and for a workflow, over and not."""

    def invoke(stage: Stage) -> list[Result]:
        found = of_runs(*commands)(stage)
        for status in ({}, {"phase": "Succeeded", "finishedAt": "2026-01-01T00:00:00Z"}):
            hostile_cluster(stage, **status)
            name = f"vae{HOSTILE}"
            found += [stage(*(name if word == "RUN" else word for word in one), "-n", "lab") for one in commands]
        return found

    return invoke


def told_hostile_words(*before: str) -> Callable[[Stage], list[Result]]:
    """Call a command that shows only what its own user writes: what was pasted may be another's."""
    return lambda stage: [stage(*before, f"--{HOSTILE}"), stage(*before, HOSTILE)]


def submitted(stage: Stage) -> list[Result]:
    file = stage.folder / "sweep.py"
    file.write_text(SWEEP.replace('name="vae"', f"name={('vae' + HOSTILE)!r}"))
    plain = stage.folder / "plain.py"
    plain.write_text(SWEEP)
    refuse(stage)
    return [stage("submit", str(file)), stage("submit", str(plain)), stage("submit", HOSTILE)]


def examined(stage: Stage) -> list[Result]:
    """Examine a cluster in which every object is full of such words; its pod's are in the tests of the command."""
    file = stage.folder / "sweep.py"
    file.write_text(SWEEP)
    named = {
        "metadata": {"name": f"n{HOSTILE}", "uid": HOSTILE},
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "2"}}]},
    }
    server = {"major": HOSTILE, "minor": HOSTILE, "gitVersion": HOSTILE + LONG}
    group = {"preferredVersion": {"version": "v1"}, "resources": [{"name": HOSTILE, "verbs": HOSTILE}]}
    lists = ("resourcequotas", "limitranges", "pods", "persistentvolumeclaims/specon-state", "serviceaccounts/default")
    paths = [f"/api/v1/namespaces/lab/{name}" for name in lists]
    paths += [
        "/api/v1/nodes",
        "/apis/apps/v1/deployments",
        WORKFLOWS,
        "/apis/kueue.x-k8s.io/v1/namespaces/lab/localqueues",
    ]
    stage.cluster.objects |= {"/version": server, **dict.fromkeys(paths, listed(named))}
    stage.cluster.objects |= dict.fromkeys(("/apis/argoproj.io/v1alpha1", "/apis/kueue.x-k8s.io"), group)
    return [stage("doctor", str(file), "--timeout", "10"), stage("doctor", "--json"), stage("doctor", HOSTILE)]


def refused_to_show(stage: Stage) -> list[Result]:
    """Ask for a page about what is not there; what a page shows is in the tests of pages."""
    hostile_cluster(stage)
    return [stage("ui", HOSTILE), stage("ui", HOSTILE, "-n", "lab"), stage("ui", f"--{HOSTILE}")]


def queued(stage: Stage) -> list[Result]:
    """List a workflow whose name, and whose place among others, hold such words."""
    hostile_cluster(stage)
    return [stage("queue", "-n", "lab"), stage("queue", "-n", "lab", "--json")]


SCENARIOS: Final[dict[str, Callable[[Stage], list[Result]]]] = {
    "run": lambda stage: [*told_hostile_words("run")(stage), stage("run", f"lr={HOSTILE},1", "--", HOSTILE)],
    "init": lambda stage: [
        *told_hostile_words("init")(stage),
        stage("init", "lr=1,2", "--", HOSTILE.replace("\0", "")),
    ],
    "simulate": lambda stage: [stage("simulate", f"--{HOSTILE}")],
    "doctor": examined,
    "submit": submitted,
    "status": in_both(("status", "RUN"), ("status",), ("status", "RUN", "--json")),
    "queue": queued,
    "ui": refused_to_show,
    "report": of_runs(("report", "RUN"), ("report", HOSTILE)),
    "export": of_runs(("export", "RUN"), ("export", HOSTILE)),
    "clean": of_runs(("clean", "RUN"), ("clean", HOSTILE), ("clean", "--state", f"s3://{HOSTILE}")),
    "replay": of_runs(("replay", "RUN", "--seeds", "1"), ("replay", HOSTILE)),
    "pause": in_both(("pause", "RUN", "--all"), ("pause", "RUN", HOSTILE)),
    "resume": in_both(("resume", "RUN", "--all", "--dry-run"), ("resume", "RUN", HOSTILE)),
    "stop": in_both(("stop", "RUN", "--all"), ("stop", "RUN", HOSTILE)),
    "set-policy": in_both(("set-policy", "RUN", "ahead"), ("set-policy", "RUN", HOSTILE)),
    "trust": lambda stage: [stage("trust", HOSTILE.replace("\0", ""))],
    "release": in_both(("release", "--all", "--dry-run"), ("release", "RUN", "--yes")),
    "policies": told_hostile_words("policies"),
    "controller": told_hostile_words("controller"),
}


def test_every_command_has_its_scenario() -> None:
    assert set(SCENARIOS) == set(main.list_commands(None))  # type: ignore[arg-type] # it needs no context


@pytest.mark.parametrize("command", SCENARIOS)
def test_no_command_sends_words_of_others_that_steer_the_terminal(command: str, stage: Stage) -> None:
    results = SCENARIOS[command](stage)
    for result in results:
        told = result.stdout + result.stderr
        assert not FORBIDDEN & set(told), (command, result.exit_code, told[:2000])
        assert "\x1b]8" not in told
        assert max(map(len, told.splitlines()), default=0) <= 2 * LONGEST_LINE or told.startswith(("{", "["))
    assert any("evil" in result.output for result in results) or command == "policies", [
        result.output[:300] for result in results
    ]


def test_commands_print_by_what_makes_words_harmless_and_by_nothing_else() -> None:
    """A command that is added cannot forget it."""
    root = Path(main.__module__.replace(".", "/")).parent
    for file in sorted((Path(__file__).parents[3] / root).glob("*.py")):
        if file.name == "output.py":
            continue
        calls = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        named = {ast.unparse(one) for one in calls}
        assert not named & {"click.echo", "click.secho", "print", "Console", "sys.stdout.write", "sys.stderr.write"}, (
            file
        )


def test_a_console_keeps_its_own_colours_and_loses_those_of_others() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, color_system="standard", width=200)
    console.print("[red]ours[/] [link=http://evil]there[/link] theirs\x1b[2J\u202e")
    told = out.getvalue()
    assert "\x1b[31mours" in told
    assert "\x1b[2J" not in told
    assert "\u202e" not in told
    assert "evil" not in told


FORMULAS: Final = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\uff1d1")


def exported(*texts: object) -> list[dict[str, str]]:
    trial = TrialResult("vae.t000", 0.0, 9.0, "n1", 0, 1, -0.5)
    params = {f"p{number}": text for number, text in enumerate(texts)}
    out = io.StringIO(newline="")
    _write(out, flat_rows([RunResult("=ahead", (replace(trial, params=params),))]))
    return list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))


def test_a_text_in_a_csv_file_is_no_formula() -> None:
    (row,) = exported(*FORMULAS)
    cells = [row[f"parameter.p{number}"] for number in range(len(FORMULAS))]
    assert all(cell.startswith("'") for cell in (*cells, row["policy"]))


def test_a_number_in_a_csv_file_stays_one() -> None:
    (row,) = exported(*[-1, -0.5, "-1e-05", "+3", True, "relu", "a=b"])
    cells = [row[f"parameter.p{number}"] for number in range(7)]
    assert cells == ["-1", "-0.5", "-1e-05", "+3", "True", "relu", "a=b"]
    assert row["final_metric"] == "-0.5"


def test_a_cell_of_a_csv_file_holds_no_escape_sequence() -> None:
    (row,) = exported(HOSTILE)
    assert not FORBIDDEN & set(row["parameter.p0"])
