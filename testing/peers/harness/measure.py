# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts the servers of a workload, checks that their answers agree, and measures them in turns."""

import dataclasses
import itertools
import statistics

from . import load, machine, workloads
from .peers import names
from .places import Unavailable


class Session:
    """What all rows of a run share: the settings, the peers that are there, the log, and the results so far."""

    def __init__(self, settings, peers, tools, scratch, libraries, log):
        self.settings, self.peers, self.tools, self.scratch, self.libraries, self.log = settings, peers, tools, scratch, libraries, log
        self.results, self.skipped, self.failed = [], [], []

    def skip(self, what, reason):
        self.log(f"SKIPPED {what}: {reason}")
        self.skipped.append({"what": what, "reason": str(reason)})

    def answer(self, running, workload, form, model=None):
        """One request; raises WrongAnswer for a wrong answer, ValueError and OSError for none."""
        request = running.peer.request(workload, form, model)
        if request.grpc:
            values = load.call_grpc(self.tools, running.grpc, request, self.scratch)
        else:
            values = load.call(running.rest, request)
        if form == "stream":
            workload.check_stream(values)
        else:
            workload.check(values)

    def start(self, peer, workload, form, copies=1):
        """A server that has given the right answer."""
        peer.request(workload, form)
        running = peer.start(workload, form, self.scratch, copies)
        try:
            # Of copies the last one as well: only then it has loaded all of them.
            models = names(workload, copies)
            running.server.await_ready(lambda: [self.right(running, workload, form, model) for model in dict.fromkeys((models[-1], models[0]))])
        except BaseException:
            running.server.stop()
            raise
        return running

    def right(self, running, workload, form, model):
        try:
            self.answer(running, workload, form, model)
        except workloads.WrongAnswer as e:
            # Not a server that is not ready yet.
            raise Unavailable(f"wrong answer: {e}") from e

    def measure(self, rows):
        """Measures rows, those of one workload and form together, with all of its servers running."""
        for (name, form, kind), group in itertools.groupby(rows, key=lambda row: (row.workload, row.form, row.kind)):
            group = list(group)
            workload = workloads.Workload(name)
            workload.library = self.libraries.get(name)
            if kind == "start":
                for row in group:
                    self.starts(row, workload)
                continue
            try:
                if kind == "saturation":
                    load.needed(*(("h2load", "nghttp2-client") if form == "grpc" else ("wrk", "wrk")))
            except Unavailable as e:
                for row in group:
                    self.skip(f"row {row.name}", e)
                continue
            self.log(f"{name}, {form}: starting {', '.join(p.title for p in self.peers)}")
            started = []
            try:
                for peer in self.peers:
                    try:
                        started.append(self.start(peer, workload, form))
                        if peer.polls:
                            started[-1].server.pause(True)
                    except Unavailable as e:
                        self.reject(peer.name, ", ".join(row.name for row in group), e)
                for row in group:
                    self.saturate(row, workload, started)
            finally:
                for running in started:
                    running.server.stop()

    def reject(self, name, where, problem):
        """Notes that a server could not be measured: a failure when its answer is wrong or it is Nereid, else a skip."""
        what = f"{name} in {where}"
        if name == "nereid" or isinstance(problem.__cause__, workloads.WrongAnswer):
            self.log(f"FAILED {what}: {problem}")
            self.failed.append(f"{what}: {problem}")
        else:
            self.skip(what, problem)

    def once(self, row, running, workload, seconds):
        """A saturating load."""
        request = running.peer.request(workload, row.form)
        if request.grpc:
            return load.h2load(running.grpc, request, row.connections, row.streams, seconds, self.scratch)
        if row.kind == "stream":
            # The warm-up of the load generator itself, a JVM.
            first = min(1, seconds)
            return load.streams(self.settings.java, running.rest, request, row.connections, first, seconds, workload.tokens, self.scratch)
        return load.wrk(running.rest, request, row.connections, seconds, self.scratch)

    def sample(self, running, started, run):
        """Runs a load; its figures, with the processor time of the server and of what else ran."""
        names = {r.server.pid: f"idle {r.peer.name}" for r in started if r is not running}
        if running.peer.polls:
            running.server.pause(False)
        watch = machine.Watch(running.server.pid, names)
        try:
            outcome = run()
        finally:
            spent, others = watch.stop()
            if running.peer.polls:
                running.server.pause(True)
        if outcome.requests == 0:
            raise Unavailable(f"no request was answered well, {outcome.failed} were not")
        figures = {"rate": outcome.requests / outcome.seconds, "p50": outcome.p50, "p99": outcome.p99, "failed": outcome.failed}
        figures |= {"cpu_us": 1e6 * spent / max(1, outcome.sent), "others": others}
        return figures

    def rounds(self, row, workload, started, title, run):
        """Measures the servers in turns; a round begins with another one each time. Returns the result."""
        result = {"row": row.name, "title": title, "kind": row.kind, "servers": {r.peer.name: {"samples": []} for r in started}}
        for running in started:
            if running.peer.request(workload, row.form).grpc and row.form != "grpc":
                result["servers"][running.peer.name]["note"] = "over gRPC"
        for turn in range(self.settings.rounds):
            shift = turn % max(1, len(started))
            for running in started[shift:] + started[:shift]:
                entry = result["servers"][running.peer.name]
                if "problem" in entry:
                    continue
                try:
                    figures = self.sample(running, started, lambda: run(running, turn))
                except Unavailable as e:
                    entry["problem"] = str(e)
                    self.reject(running.peer.name, row.name, e)
                    continue
                entry["samples"].append(figures)
                others = ", ".join(f"{name} {cores}" for name, cores in figures["others"].items())
                self.log(
                    f"{row.name} round {turn + 1}: {running.peer.title}: {figures['rate']:,.1f}/s, p50 {figures['p50']:.2f} ms, p99 {figures['p99']:.2f} ms,"
                    f" {figures['cpu_us']:,.0f} us CPU a request, {figures['failed']} failed; other cores: {others or 'none'}"
                )
        self.results.append(result)
        return result

    def saturate(self, row, workload, started):
        started = list(started)
        for running in list(started):
            try:
                seconds = self.settings.warmup * running.peer.warmup
                self.sample(running, started, lambda: self.once(row, running, workload, seconds))
            except Unavailable as e:
                started.remove(running)
                self.reject(running.peer.name, row.name, e)
        seconds = self.settings.seconds
        result = self.rounds(row, workload, started, row.title, lambda running, _: self.once(row, running, workload, seconds))
        if row.open and self.settings.open:
            self.open(row, workload, started, result)

    def open(self, row, workload, started, saturated):
        """The same requests at half of the best peer's rate, by the servers that can take it."""
        capacity = {}
        for name, entry in saturated["servers"].items():
            if entry["samples"]:
                capacity[name] = statistics.median(s["rate"] for s in entry["samples"])
        others = [rate for name, rate in capacity.items() if name != "nereid"]
        if not others:
            self.skip(f"row {row.name}-open", "no peer was measured, so there is no rate to take half of")
            return
        rate = max(others) / 2
        rest = [r for r in started if not r.peer.request(workload, row.form).grpc]
        able = [r for r in rest if capacity.get(r.peer.name, 0) > 1.2 * rate]
        seconds = self.settings.seconds

        def run(running, turn):
            request = running.peer.request(workload, row.form)
            return load.open_loop(self.settings.java, running.rest, request, rate, min(3, self.settings.warmup), seconds, turn + 1, self.scratch)

        result = self.rounds(dataclasses.replace(row, name=row.name + "-open"), workload, able, f"the same, {rate:,.0f} requests/s at random times", run)
        result |= {"kind": "open", "rate": rate}
        for running in started:
            if running not in able:
                problem = "beyond its capacity" if running in rest else "over gRPC only"
                result["servers"][running.peer.name] = {"samples": [], "problem": problem}

    def starts(self, row, workload):
        """Starts each server anew in each round: the time to its first right answer, and its memory a second later."""
        result = {"row": row.name, "title": row.title, "kind": "start", "servers": {p.name: {"samples": []} for p in self.peers}}
        for turn in range(self.settings.rounds):
            for peer in self.peers:
                entry = result["servers"][peer.name]
                if "problem" in entry:
                    continue
                try:
                    running = self.start(peer, workload, row.form, row.copies)
                except Unavailable as e:
                    entry["problem"] = str(e)
                    self.reject(peer.name, row.name, e)
                    continue
                try:
                    self.settings.pause(1)
                    rss, pss = running.server.memory()
                finally:
                    running.server.stop()
                entry["samples"].append({"seconds": running.server.seconds_to_ready, "rss_mb": rss, "pss_mb": pss})
                self.log(f"{row.name} round {turn + 1}: {peer.title}: {running.server.seconds_to_ready:.2f} s, RSS {rss:.0f} MB, PSS {pss:.0f} MB")
        self.results.append(result)
