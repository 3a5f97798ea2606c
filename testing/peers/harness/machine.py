# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Processor time and memory of processes, read from /proc: of the tree of a server, and of everything else on the machine."""

import collections
import os
import pathlib
import platform
import re
import time

TICK = os.sysconf("SC_CLK_TCK")
PROC = pathlib.Path("/proc")
Process = collections.namedtuple("Process", "pid name parent session seconds children")


def processes():
    """All processes by their number; seconds is user and system time, children that of children that have ended."""
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            name = text[text.index("(") + 1 : text.rindex(")")]
            fields = text[text.rindex(")") + 2 :].split()
            user, system, *children = (int(f) / TICK for f in fields[11:15])
            found[int(entry.name)] = Process(int(entry.name), name, int(fields[1]), int(fields[3]), user + system, sum(children))
    return found


def tree(root, found):
    """The processes of a tree: root, its descendants, and those of its session whose parents have ended."""
    members = {pid for pid, p in found.items() if pid == root or p.session == root}
    grown = True
    while grown:
        children = {pid for pid, p in found.items() if p.parent in members}
        grown = not children <= members
        members |= children
    return members


def memory(pids):
    """Resident memory in MB of processes: counted once for each (RSS), and with shared pages divided among their users (PSS)."""
    rss = pss = 0
    for pid in pids:
        try:
            text = (PROC / str(pid) / "smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        rss += int(re.search(r"^Rss:\s+(\d+)", text, re.M).group(1))
        pss += int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1))
    return rss / 1024, pss / 1024


class Watch:
    """What the machine did while a server was measured; others are known servers, by the process at the root of each."""

    def __init__(self, root, others):
        self.root, self.others = root, others
        self.before, self.busy, self.begun = processes(), busy(), time.monotonic()

    def stop(self):
        """Seconds of processor time of the server's tree, and the cores that each other program used, by name."""
        after, busy_after, seconds = processes(), busy(), time.monotonic() - self.begun
        server = tree(self.root, after)
        # The time of a load generator that has ended is its parent's: this process has it.
        own, generators, names = 0.0, 0.0, collections.Counter()
        owners = {pid: name for root, name in self.others.items() for pid in tree(root, after)}
        for pid, process in after.items():
            earlier = self.before.get(pid)
            spent = max(0.0, process.seconds - (earlier.seconds if earlier else 0))
            if pid in server:
                own += spent
            elif pid == os.getpid():
                generators += spent + process.children - earlier.children
            else:
                names[owners.get(pid, process.name)] += spent
        # Processes that ended meanwhile can be counted together only, unless their parents waited for them.
        names["ended meanwhile"] = busy_after - self.busy - own - generators - sum(names.values())
        return own, {name: round(spent / seconds, 2) for name, spent in names.most_common() if spent / seconds >= 0.02}


def busy():
    """Seconds of processor time that the machine has used."""
    fields = [int(f) for f in (PROC / "stat").read_text(encoding="ascii").splitlines()[0].split()[1:]]
    # user, nice, system, irq, softirq
    return sum(fields[i] for i in (0, 1, 2, 5, 6)) / TICK


def describe():
    """The machine in a line for the report."""
    cpu = re.search(r"^model name\s*:\s*(.*)$", (PROC / "cpuinfo").read_text(encoding="utf-8"), re.M)
    total = int(re.search(r"MemTotal:\s+(\d+)", (PROC / "meminfo").read_text(encoding="utf-8")).group(1)) / 2**20
    return f"{len(os.sched_getaffinity(0))} cores of {cpu.group(1) if cpu else platform.machine()}, {total:.0f} GiB, Linux {platform.release()}"
