# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The process of a server: started in a session of its own, so that all of it can be found, counted and ended."""

import contextlib
import os
import signal
import socket
import subprocess
import time

from . import machine
from .places import Unavailable, last_line

running = set()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A running server. seconds_to_ready is the time from its start to its first right answer, once await_ready has returned."""

    def __init__(self, name, command, log, environment=None, directory=None, grace=10):
        self.name, self.log, self.grace = name, log, grace
        self.begun = time.monotonic()
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **(environment or {})},
                cwd=directory,
                start_new_session=True,
            )
        running.add(self)

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def await_ready(self, answers, seconds=120):
        """Waits until answers() returns without an exception."""
        while True:
            try:
                answers()
                self.seconds_to_ready = time.monotonic() - self.begun
                return
            except (OSError, ValueError) as e:
                problem = e
            if self.process.poll() is not None:
                raise Unavailable(f"{self.name} ended with {self.process.returncode}: {last_line(self.output())}; all of it in {self.log}")
            if time.monotonic() - self.begun > seconds:
                raise Unavailable(f"{self.name} did not answer within {seconds} s ({problem}): {last_line(self.output())}; all of it in {self.log}")
            time.sleep(0.01)

    def pause(self, stopped):
        """Stops all processes of the server, or lets them go on."""
        for pid in machine.tree(self.pid, machine.processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if stopped else signal.SIGCONT)

    def memory(self):
        return machine.memory(machine.tree(self.pid, machine.processes()))

    def stop(self):
        running.discard(self)
        members = machine.tree(self.pid, machine.processes())
        if self.process.poll() is None:
            self.pause(False)
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.grace)
        # Workers that outlived their parent, and those that did not listen.
        left = members | machine.tree(self.pid, machine.processes())
        for pid in left:
            if pid in machine.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()


def stop_all():
    for server in list(running):
        server.stop()
