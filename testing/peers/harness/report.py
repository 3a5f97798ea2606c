# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The results as a table in Markdown, with the ratio of Nereid to the best peer and how sure it is."""

import random
import statistics

RESAMPLES = 5000


def figure(value):
    """A number with three digits that mean something."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def spread(values, unit=""):
    """The median, with the smallest and the largest."""
    middle = figure(statistics.median(values)) + unit
    return middle if len(values) == 1 else f"{middle} ({figure(min(values))}-{figure(max(values))})"


def interval(ours, theirs, seed=1):
    """The ratio of two medians, and the interval that has 95 % of the ratios of resampled rounds."""
    source = random.Random(seed)

    def median(values):
        return statistics.median(source.choices(values, k=len(values)))

    ratios = sorted(median(ours) / median(theirs) for _ in range(RESAMPLES))
    return statistics.median(ours) / statistics.median(theirs), ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES)]


# By kind of row: what is compared, and whether more is better.
COMPARED = {"saturation": ("rate", True), "stream": ("rate", True), "open": ("p99", False), "start": ("seconds", False)}


def compare(result):
    """Adds the best peer, and the ratio of Nereid to it with its interval, to a result that has both."""
    key, more = COMPARED[result["kind"]]
    good = {n: [s[key] for s in e["samples"]] for n, e in result["servers"].items() if e["samples"] and not any(s.get("failed") for s in e["samples"])}
    ours = good.pop("nereid", None)
    if ours and good:
        best = (max if more else min)(good, key=lambda name: statistics.median(good[name]))
        ratio, low, high = interval(ours, good[best])
        result |= {"compared": key, "best_peer": best, "ratio": ratio, "interval": [low, high]}
    cpu = {n: statistics.median(s["cpu_us"] for s in result["servers"][n]["samples"]) for n in [*good, "nereid"] if n in result["servers"] and result["kind"] != "start" and result["servers"][n]["samples"]}
    if "nereid" in cpu and len(cpu) > 1:
        frugal = min((n for n in cpu if n != "nereid"), key=cpu.get)
        result |= {"cpu_ratio": cpu["nereid"] / cpu[frugal], "most_frugal_peer": frugal}


def others(samples):
    """What else used the machine: for each program the most cores of a round."""
    most = {}
    for sample in samples:
        for name, cores in sample.get("others", {}).items():
            most[name] = max(most.get(name, 0), cores)
    return ", ".join(f"{name} {cores:.2g}" for name, cores in sorted(most.items(), key=lambda item: -item[1])[:3])


def line(name, entry, kind, titles):
    samples, title = entry["samples"], titles[name] + (f" ({entry['note']})" if "note" in entry else "")
    if not samples:
        return f"| | {title} | {entry.get('problem', 'not measured')} | | | | | |"
    if kind == "start":
        return f"| | {title} | {spread([s['seconds'] for s in samples], ' s')} | | | RSS {spread([s['rss_mb'] for s in samples], ' MB')} | | |"
    failed = sum(s["failed"] for s in samples)
    cells = [spread([s["rate"] for s in samples], "/s"), spread([s["p50"] for s in samples]), spread([s["p99"] for s in samples])]
    return f"| | {title} | {' | '.join(cells)} | {spread([s['cpu_us'] for s in samples])} | {failed} | {others(samples)} |"


def verdict(result, titles):
    if "ratio" not in result:
        return ""
    low, high = result["interval"]
    what = "events/s" if result["kind"] == "stream" else {"rate": "requests/s", "p99": "p99", "seconds": "time"}[result["compared"]]
    text = f"{what} {result['ratio']:.2f} times {titles[result['best_peer']]}'s (95 %: {low:.2f}-{high:.2f})"
    if "cpu_ratio" in result:
        text += f"; CPU {result['cpu_ratio']:.2f} times {titles[result['most_frugal_peer']]}'s"
    return text


def table(report):
    """The table in Markdown."""
    titles = report["titles"]
    rows = ["| row | server | throughput | p50 ms | p99 ms | CPU us/request | failed | other processes, cores |", "|---|---|---|---|---|---|---|---|"]
    for result in report["rows"]:
        rows.append(f"| **{result['row']}**: {result['title']} | | {verdict(result, titles)} | | | | | |")
        rows += [line(name, entry, result["kind"], titles) for name, entry in result["servers"].items()]
    text = "\n".join(rows)
    if report["skipped"]:
        text += "\n\nSkipped:\n" + "\n".join(f"- {s['what']}: {s['reason']}" for s in report["skipped"])
    head = f"{report['machine']}; {report['rounds']} rounds of {report['seconds']} s; medians with the smallest and the largest; {report['date']}"
    versions = "; ".join(f"{titles[n]} {v}" for n, v in report["versions"].items())
    return f"{head}\n{versions}\n\n{text}\n"
