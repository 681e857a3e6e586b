"""Writes what this version keeps, for later versions to go on with: ``python -m tests.version_skew FOLDER``."""

import base64
import json
import shutil
import sys
from pathlib import Path

from controllers.core.actions import Resize
from controllers.core.model import TrialId
from controllers.core.ports import refused
from controllers.local_run.run_folder import find_or_make_run
from controllers.worlds.argo.calls.untrusted import gzipped
from controllers.worlds.local.engine_files import StateFile
from controllers.worlds.local.jobs import JobLedger, save_ledger
from tests.hera_specon.report.example_run import write_example_run
from tests.version_skew.half_done import STOP_AT, train, write_engine_states

try:  # an earlier version kept it with the engine's files
    from controllers.record.actions import ActionFile
except ImportError:
    from controllers.worlds.local.engine_files import ActionFile  # type: ignore[attr-defined,no-redef]


def write(folder: Path) -> None:
    """Write all fixtures into ``folder``, which must not be there yet."""
    write_engine_states(folder / "engine")
    specon = json.loads((folder / "engine" / "specon.json").read_text())
    (folder / "engine" / "configmap.txt").write_text(base64.b64encode(gzipped(specon["state"])).decode() + "\n")
    train(folder / "hooks", "first", STOP_AT)
    run = write_example_run(folder, "demo-1")
    part = run / "01-specon-flowcon"
    StateFile(part, lambda: float(specon["at"])).save(lambda: specon["state"], urgent=True)
    ActionFile(part).acted(3.0, Resize(TrialId("trial-1"), 0.2), "because", refused("no room"))
    save_ledger(part / "ledger.json", JobLedger(delays={"wait": 4.0}))
    unfinished = find_or_make_run(folder, "cut", {"workflow": "cut"}, fresh=True)
    unfinished.describe({"nodes": 2, "policies": ["default"]})
    unfinished.keep_order({"workflow": {"spec": {}}, "policies": ["default"], "source": "cut.yaml"})
    shutil.copy("workflows/demo.yaml", folder / "demo.yaml")


if __name__ == "__main__":
    write(Path(sys.argv[1]).absolute())
