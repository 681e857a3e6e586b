import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from controllers.worlds.local.shares import SharesError, SharesNameError, choose_shares
from controllers.worlds.local.shares.cgroup_files import Mounts

NOTHING = Mounts(mounts="", own="0::/\n")
NOBODY = "65534"
REPOSITORY = Path(__file__).parents[5]
AS_NOBODY = """
import subprocess, time
from controllers.worlds.local.shares import choose_shares
shares = choose_shares("nobody")
print(type(shares).__name__)
shares.add_node("node", 0.45)
busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], start_new_session=True) for _ in "ab"]
for key, cpu, process in zip("ab", (0.25, 0.75), busy):
    shares.add(key, "node", cpu)
    shares.adopt(key, process.pid)
time.sleep(5)
used = [shares.used(key) for key in "ab"]
shares.close()
for process in busy:
    process.wait()
print(used[0] / sum(used))
"""


def test_without_control_groups_the_pacer_is_taken_and_says_what_it_is() -> None:
    shares = choose_shares("run", mounts=NOTHING)
    assert shares.description.startswith("pacer: an ordinary user")
    shares.close()


@pytest.mark.parametrize("kind", ["cgroup-v1", "cgroup-v2"])
def test_a_way_that_is_asked_for_and_does_not_work_is_an_error(kind: str) -> None:
    with pytest.raises(SharesError, match=f"{kind} do not work here: no cgroup"):
        choose_shares("run", kind, mounts=NOTHING)  # type: ignore[arg-type]


def test_a_run_whose_name_leads_elsewhere_is_refused() -> None:
    with pytest.raises(SharesNameError, match=r"'\.\./run'"):
        choose_shares("../run")


def test_groups_left_by_a_killed_run_of_the_same_name_are_killed_and_removed() -> None:
    name = f"left-{os.getpid()}"
    try:
        first = choose_shares(name, "cgroup-v1")
    except SharesError as error:
        pytest.skip(str(error))
    first.add_node("node", 0.5)
    join = first.add("a", "node", 0.5)
    script = 'for f; do echo $$ > "$f"; done; exec sleep 1000'
    with subprocess.Popen(["/bin/sh", "-c", script, "sh", *join], start_new_session=True) as process:
        deadline = time.monotonic() + 20
        while not Path(join[0]).read_text().strip() and time.monotonic() < deadline:
            time.sleep(0.01)
        second = choose_shares(name, "cgroup-v1")
        assert process.wait(20) == -9
    second.add_node("node", 0.5)
    second.close()
    assert not Path(join[0]).parents[2].exists()


def test_mounts_are_found_together_or_apart_and_inside_a_container(tmp_path: Path) -> None:
    together, unified = tmp_path / "cpu,cpuacct", tmp_path / "with blank"
    (together / "mine").mkdir(parents=True)
    (unified / "user" / "app").mkdir(parents=True)
    escaped = str(unified).replace(" ", "\\040")
    mounts = f"cgroup {together} cgroup rw,cpu,cpuacct 0 0\ncgroup2 {escaped} cgroup2 rw 0 0\n"
    here = Mounts(mounts, "3:cpu,cpuacct:/mine\n0::/user/app\n")
    assert here.v1("cpu") == here.v1("cpuacct") == together / "mine"
    assert here.v1("memory") is None
    assert here.v2() == (unified / "user" / "app", unified / "user", unified)
    in_container = Mounts(mounts, "3:cpu,cpuacct:/docker/4711\n0::/../..\n")
    assert in_container.v1("cpu") == together
    assert in_container.v2() == (unified,)


@pytest.mark.alone
@pytest.mark.slow
def test_an_ordinary_user_gets_shares_by_the_pacer(tmp_path: Path) -> None:
    script = tmp_path / "as_nobody.py"
    script.write_text(AS_NOBODY)
    answer = _as_nobody(script)
    kind, part = answer.split()
    assert kind == "Pacer"
    assert float(part) == pytest.approx(0.25, abs=0.06)


def _as_nobody(script: Path) -> str:
    setpriv = shutil.which("setpriv")
    if os.getuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv to become an ordinary user")
    path = os.pathsep.join([str(REPOSITORY), sysconfig.get_path("purelib")])
    prefix = [setpriv, "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    for python in (sys.executable, "/usr/bin/python3"):
        can_start_itself = "import subprocess, sys, psutil; subprocess.run([sys.executable, '-c', ''], check=True)"
        environment = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
        command = [*prefix, python]
        if subprocess.run(
            [*command, "-c", can_start_itself], env=environment, capture_output=True, check=False
        ).returncode:
            continue
        done = subprocess.run(
            [*command, "-c", script.read_text()], env=environment, capture_output=True, text=True, check=True, cwd="/"
        )
        return done.stdout
    pytest.skip("no interpreter that an ordinary user may run")
