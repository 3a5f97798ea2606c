#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""
Nereid beside other model servers; run.sh prepares what this needs. See README.md.

Ends with 1 when an answer is wrong or Nereid could not be measured, and with 77 when no peer could be measured.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from harness import chart, measure, peers, report, rows, server, workloads
from harness import machine as machines
from harness.environments import Environment
from harness.places import TARGET, Unavailable


def log(text):
    print(text, file=sys.stderr, flush=True)


def number(least, kind):
    """An argument of a kind that is not below the least."""

    def parse(text):
        value = kind(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        return value

    return parse


def arguments():
    parser = argparse.ArgumentParser(prog="testing/peers/run.sh", description="Measures Nereid beside other model servers.")
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"the peers to compare with: {' '.join(n for n in peers.ALL if n != 'nereid')} (default: all)")
    parser.add_argument("--rows", default="", metavar="ROW,...", help=f"the rows, separated by commas, or all: {' '.join(rows.BY_NAME)} (default: all)")
    parser.add_argument("--rounds", type=number(1, int), default=5, metavar="N", help="rounds in which the servers take turns (default: 5)")
    parser.add_argument("--seconds", type=number(1, int), default=4, metavar="S", help="seconds of each measurement (default: 4)")
    parser.add_argument("--warmup", type=number(1, int), default=15, metavar="S", help="seconds of load before a row's first round for Nereid, a JVM; a third for the peers (default: 15)")
    parser.add_argument("--no-open", dest="open", action="store_false", help="leave out the load at a fixed rate")
    parser.add_argument("--short", action="store_true", help="a check that it works: two rounds of a second, of two peers and a few rows unless others are named; the figures mean nothing")
    parser.add_argument("--out", type=pathlib.Path, default=TARGET / "results", metavar="DIR", help="where table.md, results.json and chart.svg go (default: target/peers/results)")
    settings = parser.parse_args()
    if settings.short:
        settings.rounds, settings.seconds, settings.warmup = 2, 1, 1
        settings.peers = settings.peers or list(rows.SHORT_PEERS)
        settings.rows = settings.rows or ",".join(rows.SHORT)
    for name in settings.peers:
        if name not in peers.ALL or name == "nereid":
            parser.error(f"unknown peer {name}; the peers are {' '.join(n for n in peers.ALL if n != 'nereid')}")
    settings.rows = list(rows.BY_NAME) if settings.rows in ("", "all") else settings.rows.split(",")
    for name in settings.rows:
        if name not in rows.BY_NAME:
            parser.error(f"unknown row {name}; the rows are {' '.join(rows.BY_NAME)}")
    settings.java, settings.pause = os.environ["PEERS_JAVA"], time.sleep
    return settings


def prepare(session, names, trees):
    """The peers of these names that are there."""
    there = []
    for name in names:
        try:
            peers.ALL[name].prepare(trees, log)
            there.append(peers.ALL[name])
        except Unavailable as e:
            session.skip(name, e)
    return there


def write(session, settings):
    for result in session.results:
        report.compare(result)
    found = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machines.describe(),
        "command": "testing/peers/run.sh " + " ".join(sys.argv[1:]),
        "rounds": settings.rounds,
        "seconds": settings.seconds,
        "titles": {name: peer.title for name, peer in peers.ALL.items()},
        "versions": {peer.name: peer.version() for peer in session.peers},
        "rows": session.results,
        "skipped": session.skipped,
    }
    settings.out.mkdir(parents=True, exist_ok=True)
    text = report.table(found)
    (settings.out / "results.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    (settings.out / "chart.svg").write_text(chart.svg(found), encoding="utf-8")
    (settings.out / "table.md").write_text(text, encoding="utf-8")
    print(text)
    log(f"written: table.md, results.json and chart.svg in {settings.out}")


def main():
    settings = arguments()
    # Ctrl-C and a time limit end the servers as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="nereid-peers-"))
    try:
        try:
            trees = any(rows.BY_NAME[name].workload in workloads.TREES for name in settings.rows)
            tools = Environment("tools", trees, log)
            libraries, missing = workloads.make(tools, sorted({rows.BY_NAME[name].workload for name in settings.rows}), log)
        except Unavailable as e:
            print(f"SKIPPED all: {e}")
            sys.exit(77)
        for workload in set(libraries) & set(peers.PLUGINS):
            try:
                peers.ALL["nereid"].install(peers.PLUGINS[workload], log)
            except Unavailable as e:
                missing[workload] = e
        session = measure.Session(settings, [], tools, scratch, libraries, log)
        session.peers = prepare(session, ["nereid", *(n for n in peers.ALL if n in settings.peers or not settings.peers and n != "nereid")], trees)
        chosen = []
        for name in settings.rows:
            row = rows.BY_NAME[name]
            if row.workload in missing:
                session.skip(f"row {name}", missing[row.workload])
            else:
                chosen.append(row)
        order = list(rows.BY_NAME)
        try:
            session.measure(sorted(chosen, key=lambda row: order.index(row.name)))
        finally:
            # What has been measured by a Ctrl-C too.
            write(session, settings)
        measured = {name for result in session.results for name, entry in result["servers"].items() if entry["samples"]}
        for result in session.results:
            unanswered = sum(s.get("failed", 0) for s in result["servers"].get("nereid", {"samples": []})["samples"])
            if unanswered:
                session.failed.append(f"nereid in {result['row']}: {unanswered} requests failed")
        for problem in session.failed:
            print(f"FAILED {problem}")
        for skipped in session.skipped:
            print(f"SKIPPED {skipped['what']}: {skipped['reason']}")
        if not measured - {"nereid"}:
            print("SKIPPED all: no peer could be measured" + (f" ({session.skipped[-1]['reason']})" if session.skipped else ""))
            sys.exit(1 if session.failed else 77)
        if session.failed or "nereid" not in measured:
            sys.exit(1)
    except Unavailable as e:
        print(f"FAILED {e}")
        sys.exit(1)
    finally:
        server.stop_all()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
