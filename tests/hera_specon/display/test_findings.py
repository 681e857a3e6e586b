from rich.console import Console

from hera_specon.display.findings import counted, findings_table
from hera_specon.doctor.findings import fault, ok, unknown, warning

FOUND = [
    ok("Kubernetes", "v1.36.2"),
    warning("controller", "there is none", "Install it.", "kubectl apply -k manifests/overlays/namespaced"),
    fault("Argo's API", "no Argo", "Ask the platform team."),
    fault("MLflow", "refused", "See whether it runs."),
    unknown("nodes", "you may not read it", "Ask."),
]


def test_what_to_do_stands_below_what_was_found() -> None:
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as shown:
        console.print(findings_table(FOUND))
    lines = [line.rstrip() for line in shown.get().splitlines()]
    at = next(number for number, line in enumerate(lines) if "there is none" in line)
    assert "Install it." in lines[at + 1]
    assert "kubectl apply -k manifests/overlays/namespaced" in lines[at + 2]


def test_how_it_came_out_is_counted() -> None:
    assert counted(FOUND) == "1 ok, 1 warning, 2 faults, 1 cannot tell"
    assert counted(FOUND[:1]) == "1 ok"
