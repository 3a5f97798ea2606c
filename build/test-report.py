#!/usr/bin/env python3
# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the reports of a Maven test run and prints what a reader of a CI log wants to know.

    build/test-report.py --since FILE [--flaky LIST] [--skips FILE]

--since   only reports newer than this file count
--flaky   the committed list of known flaky tests; a test that passed only on the second try and is not on it is an error
--skips   a file to which one line for each skipped test is added

Prints "N passed, N failed, N skipped". Exits with 1 when a test is flaky and not on the list.
"""
import argparse
import collections
import pathlib
import sys
import xml.etree.ElementTree as ET


def known(path):
    """The tests of the list: one `class.method  reason` a line, comments after #."""
    names = set()
    if path and pathlib.Path(path).exists():
        for line in pathlib.Path(path).read_text().splitlines():
            line = line.split("#")[0].strip()
            if line:
                names.add(line.split()[0])
    return names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--since", required=True)
    parser.add_argument("--flaky")
    parser.add_argument("--skips")
    arguments = parser.parse_args()
    since = pathlib.Path(arguments.since).stat().st_mtime
    run = failed = skipped = 0
    flaky, reasons = [], collections.Counter()
    for report in sorted(pathlib.Path(".").glob("**/target/surefire-reports/TEST-*.xml")):
        if report.stat().st_mtime < since:
            continue
        for case in ET.parse(report).getroot().iter("testcase"):
            run += 1
            name = f"{case.get('classname')}.{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif case.find("flakyFailure") is not None or case.find("flakyError") is not None:
                flaky.append(name)
            elif (skip := case.find("skipped")) is not None:
                skipped += 1
                # An assumption has its text in the element, on the first line of a stack trace.
                first = (skip.text or "").strip().split("\n")[0].split("Assumption failed: ")[-1]
                text = (skip.get("message") or first or "no reason given").replace("\n", " ")
                reasons[(case.get("classname").rsplit(".", 1)[-1], text)] += 1
    listed = known(arguments.flaky)
    unlisted = [name for name in flaky if name.split("(")[0] not in listed]
    for name in flaky:
        print(f"FLAKY: {name} passed only on the second try" + ("" if name in unlisted else " (known)"))
    if arguments.skips:
        with open(arguments.skips, "a") as out:
            for (test, reason), count in sorted(reasons.items()):
                out.write(f"{test}, {count} test(s): {reason}\n")
    if unlisted:
        print(f"A flaky test is a defect. Mend it, or name it with its reason in {arguments.flaky}.")
    print(f"{run - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
