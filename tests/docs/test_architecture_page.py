"""The map of the code is as the code is: its links, and the orders that it draws."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from controllers.core.actions import Resize
from controllers.core.engine import Engine
from controllers.core.means import Means
from controllers.core.model import Phase
from controllers.core.policy import Policy
from controllers.core.stop_rules import StopRules
from controllers.driving import assembly, drivers
from controllers.driving.clock import SweepClock
from controllers.driving.drivers import make_drivers
from controllers.lab.simulation import run as simulation
from controllers.local_run.sweep import LocalSweep
from controllers.policies.registry import parse_policy
from controllers.policies.wrappers.wrapper import Wrapper
from controllers.search.spec import Dimension, NumberRange, SearchSpec
from tests.controllers.cluster.conftest import Stage
from tests.controllers.cluster.conftest import stage as stage  # noqa: PLC0414 - a fixture
from tests.controllers.worlds.simulated.workloads import scenario, trial

REPOSITORY: Final = Path(__file__).parents[2]
PAGE: Final = REPOSITORY / "docs" / "explanation" / "architecture.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
CONTRACTS: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
    "contracts"
]
_NAMED: Final = re.compile(r"\[`([\w.]+)`\]\((\.\./\.\./[\w./]+\.py)\)")
_FILE: Final = re.compile(r"\]\(\.\./\.\./([\w./]+\.py)\)")
_RULES: Final = {"s": StopRules(value=0.1)}
_SEARCH: Final = SearchSpec(
    sampler="random", space=(Dimension(name="lr", domain=NumberRange(low=0.1, high=1.0)),)
).written()


def drawn(what: str) -> list[str]:
    """Return the lines of the drawing, or of the table, that follows the mark ``what``."""
    after = TEXT.partition(f"<!-- drawn: {what} -->\n")[2]
    assert after, f"the page does not draw {what!r}"
    if after.startswith("```"):
        return after.split("```")[1].splitlines()[1:]
    return after.partition("\n\n")[0].splitlines()[2:]


def first_words(what: str) -> list[str]:
    """Return the first column of a drawing, without the lines that lead to it."""
    return [re.split(r"\s{2,}", line.lstrip("│├└─ "))[0] for line in drawn(what)]


def section(heading: str) -> str:
    return TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def layers_of(container: str) -> list[list[str]]:
    """Return the layers that import-linter keeps a package to, the highest first."""
    found = [one for one in CONTRACTS if one["type"] == "layers" and one["containers"] == [container]]
    (contract,) = found
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


@lru_cache
def defined_in(path: Path) -> frozenset[str]:
    """Return the classes, functions and methods of a file by their dotted names."""

    def names(body: list[ast.stmt], before: str = "") -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield f"{before}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from names(node.body, f"{node.name}.")

    return frozenset(names(ast.parse(path.read_text(encoding="utf-8")).body))


def test_what_a_link_names_is_in_the_file_that_it_leads_to() -> None:
    links = _NAMED.findall(TEXT)
    wrong = [(name, path) for name, path in links if name not in defined_in((PAGE.parent / path).resolve())]
    assert len(links) > 80
    assert wrong == []


def test_the_folders_are_drawn_as_import_linter_keeps_them() -> None:
    top, *controllers, bottom = first_words("layers of controllers")
    assert (top, bottom) == ("hera_specon", "mlflow_hooks")
    assert [line.split(" | ") for line in controllers] == layers_of("controllers")
    assert [[line] for line in first_words("layers of controllers.worlds.argo")] == layers_of("controllers.worlds.argo")


def test_the_order_of_policies_is_drawn_as_import_linter_keeps_it() -> None:
    registry, systems, around, kit = layers_of("controllers.policies")
    assert first_words("layers of controllers.policies") == [registry[0], "a policy", "wrappers", kit[0]]
    assert "ahead" in systems
    assert "wrappers" in around


def test_what_the_core_and_the_policies_must_not_import_is_said() -> None:
    (pure,) = [one for one in CONTRACTS if one.get("source_modules") == ["controllers.core", "controllers.policies"]]
    said = section("The folders, from the bottom up").partition("They import none of")[2].partition(".\n")[0]
    assert re.findall(r"`(\w+)`", said) == pure["forbidden_modules"]


def test_every_phase_is_described_in_its_order() -> None:
    rows = [re.findall(r"`(\w+)`", row.split("|")[1])[0] for row in drawn("phases")]
    assert rows == [phase.value for phase in Phase]
    after = {word for row in drawn("phases") for word in re.findall(r"`([a-z]+)`", row)}
    assert after == {phase.value for phase in Phase}


def test_every_place_that_changes_a_phase_is_named() -> None:
    changing = {path.relative_to(REPOSITORY).as_posix() for path in files_that_set_phases()}
    assert len(changing) > 4
    assert changing - set(_FILE.findall(section("The states of a trial"))) == set()
    assert {name for name in changing if name.startswith(("controllers/policies", "controllers/core"))} == set()


def files_that_set_phases() -> Iterator[Path]:
    """Yield the controllers' files with a property that works a phase out, or that replace the phase of a record."""
    for path in sorted((REPOSITORY / "controllers").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text))) if "phase=" in text or "def phase" in text else []
        works_out = any(
            isinstance(node, ast.FunctionDef) and node.name == "phase" and node.returns and _is_phase(node.returns)
            for node in nodes
        )
        replaces = any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "replace"
            and any(given.arg == "phase" and not isinstance(given.value, ast.Constant) for given in node.keywords)
            for node in nodes
        )
        if works_out or replaces:
            yield path


def _is_phase(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "Phase"


def test_every_program_of_ours_that_a_run_starts_is_drawn() -> None:
    started = {module.rpartition(".")[2] for module in programs_started()}
    assert started == {*re.findall(r"\((\w+)\)", "\n".join(drawn("processes"))), "worker"}
    assert "search/worker.py" in section("The processes of `specon run`")  # it is a cluster's


def programs_started() -> Iterator[str]:
    """Yield the modules that are started as processes of their own."""
    for folder in ("controllers", "hera_specon"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r"\bown_command\((?:\s*)(\w+)[,.)]", text):
                given = re.search(rf"^{name}(?:: Final)? = \"([\w.]+)\"$", text, re.MULTILINE)
                if "def own_command" not in text:
                    yield given[1] if given else name


def around(conditions: Callable[[str], bool]) -> list[str]:
    """Return the wrappers that are drawn around a policy, the outermost first, where ``conditions`` takes theirs."""
    rows = [re.split(r"\s{2,}", line.lstrip("│├└─ ")) for line in drawn("around a policy")]
    return [name for name, _, condition in rows if conditions(condition)]


def wrapped(policy: Policy[Any]) -> list[str]:
    """Return the wrappers of ``policy``, the outermost first."""
    names = []
    while isinstance(policy, Wrapper):
        names.append(type(policy).__name__)
        policy = policy.within[0]
    return names


@pytest.fixture
def assembled(monkeypatch: pytest.MonkeyPatch) -> list[Policy[Any]]:
    """The policy of each engine that is put together, with all that stands around it."""
    policies: list[Policy[Any]] = []

    def assemble(*given: Any, **named: Any) -> Engine[Any]:  # noqa: ANN401 - whatever the real one takes
        engine = assembly.assemble(*given, **named)
        policies.append(engine._policy)
        return engine

    monkeypatch.setattr(drivers, "assemble", assemble)
    monkeypatch.setattr(simulation, "assemble", assemble)
    return policies


def test_every_wrapper_is_told_why_it_stands_there() -> None:
    told = re.findall(r"^\| \[`(\w+)`\]", section("What stands around a policy"), re.MULTILINE)
    assert told == first_words("around a policy")


def test_around_a_policy_in_a_cluster_stands_what_is_drawn(
    stage: Callable[..., Stage], assembled: list[Policy[Any]]
) -> None:
    it = stage(policy="specon+flowcon")
    it.world.can = it.world.can - {Resize}
    it.campaign = replace(it.campaign, means=Means(by_s=3600.0), stops=_RULES)
    it.start()
    assert wrapped(assembled[-1]) == around(lambda _: True)


def test_around_a_policy_on_this_machine_stands_what_is_drawn(tmp_path: Path, assembled: list[Policy[Any]]) -> None:
    nothing: Any = SimpleNamespace(short=str, cores_used=dict, to_come=tuple, load=lambda: None)
    services: Any = SimpleNamespace(screen=SimpleNamespace(foresee=None, say=None))
    plan = SimpleNamespace(folder=tmp_path, stops=_RULES, earlier=None)
    sweep: Any = SimpleNamespace(_plan=plan, _services=services, _mlflow=SimpleNamespace(tell=None), _others=None)
    ports = LocalSweep._ports(sweep, nothing, nothing, nothing, SweepClock(0.0))
    make_drivers(ports)(parse_policy("specon+flowcon"))
    assert wrapped(assembled[-1]) == around(lambda condition: not condition.startswith("a cluster"))


@pytest.mark.parametrize("search", ["", _SEARCH], ids=["no-search", "search"])
def test_around_a_policy_in_virtual_time_stands_what_is_drawn(assembled: list[Policy[Any]], search: str) -> None:
    simulation.simulate(scenario([trial("a", 10, search=search)]), parse_policy("specon+flowcon"), stops=_RULES)
    conditions = ("where", "always", *(["real worlds, and searches in virtual time"] if search else []))
    assert wrapped(assembled[-1]) == around(lambda condition: condition.startswith(conditions))
