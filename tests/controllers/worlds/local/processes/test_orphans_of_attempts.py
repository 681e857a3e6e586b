"""A process that outlives the first one of its attempt may have to save: nobody takes it for a stranger."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId, AttemptTree


def test_an_orphan_is_its_attempts_before_anybody_has_noted_that_the_launcher_ended() -> None:
    launch = ["/bin/sh", "-c", "sleep 1000 & echo $!; wait"]
    with subprocess.Popen(launch, stdout=subprocess.PIPE, start_new_session=True, text=True) as launcher:
        assert launcher.stdout is not None
        program = int(launcher.stdout.readline())
        tree = AttemptTree(AttemptId("a", launcher.pid, proctree.start_time(launcher.pid) or 0))
        assert not tree.owns(program)
        launcher.kill()
        os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)
        assert tree.owns(program)
        os.kill(program, signal.SIGKILL)


ENDS_AFTER_A_LOOK = """
import os, subprocess
from controllers.worlds.local.processes import proctree
from controllers.worlds.local.processes.attempt_tree import AttemptId
from controllers.worlds.local.processes.trees import Trees
launcher = subprocess.Popen(["/bin/sh", "-c", "exit 1"], start_new_session=True)
program = subprocess.Popen(["/bin/sh", "-c", "read word; exit 75"], stdin=subprocess.PIPE)
ended = os.WEXITED | os.WNOWAIT
os.waitid(os.P_PID, launcher.pid, ended)
trees = Trees()
trees.add(AttemptId("a", launcher.pid, proctree.start_time(launcher.pid)))
tree = trees._trees[launcher.pid]
tree._members[program.pid] = tree._asked[program.pid] = proctree.start_time(program.pid)
look = trees._look_at
def look_and_end(child):
    look(child)
    if child == program.pid:
        program.stdin.close()
        os.waitid(os.P_PID, program.pid, ended)
        trees._look_at = look
trees._look_at = look_and_end
print([exit.code for exit in trees.reap()])
"""


def test_a_program_that_saves_and_leaves_while_others_are_looked_at_is_heard() -> None:
    # Whatever else is a child of the process that looks is killed, so it is none of the tests'.
    command = [sys.executable, "-c", ENDS_AFTER_A_LOOK]
    done = subprocess.run(command, cwd=Path(__file__).parents[5], capture_output=True, text=True, check=False)
    assert done.stdout == "[75]\n", done.stderr
