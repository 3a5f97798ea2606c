# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""The results as one SVG: for each row the servers on a logarithmic axis, as multiples of Nereid's value."""

import math
import statistics
from xml.sax.saxutils import escape

from .report import COMPARED

COLOURS = {"nereid": "#0b6e99", "triton": "#76b900", "mlserver": "#c44e52", "kserve": "#8172b3", "litserve": "#d98e04", "bentoml": "#937860", "fastapi": "#009485", "tfserving": "#ff6f00", "ovms": "#0068b5"}
LEFT, WIDTH, ROW, TOP = 150, 700, 30, 70


def points(result):
    """For each server the median, the smallest and the largest, as multiples of Nereid's median; how good, so that more is better."""
    key, more = COMPARED[result["kind"]]
    values = {name: [s[key] for s in e["samples"]] for name, e in result["servers"].items() if e["samples"]}
    if "nereid" not in values:
        return {}
    own = statistics.median(values["nereid"])

    def relative(value):
        return value / own if more else own / value

    found = {}
    for name, all_of_them in values.items():
        if min(all_of_them) > 0:
            found[name] = tuple(relative(f(all_of_them)) for f in (statistics.median, min, max))
    return found


def svg(report):
    rows = [(r, points(r)) for r in report["rows"]]
    rows = [(r, p) for r, p in rows if p]
    every = [v for _, p in rows for point in p.values() for v in point] or [1]
    low, high = math.floor(min(math.log10(v) for v in every)), max(1, math.ceil(max(math.log10(v) for v in every)))

    def x(value):
        return LEFT + WIDTH * (math.log10(value) - low) / (high - low)

    height = TOP + ROW * len(rows) + 30
    names = [n for n in COLOURS if any(n in p for _, p in rows)]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" font-family="sans-serif" font-size="12">']
    out += ["<title>Nereid beside other model servers</title>", f'<rect width="100%" height="{height}" fill="#ffffff"/>']
    out.append(f'<text x="10" y="20" font-size="14">Multiples of Nereid: throughput, or speed where the row is of latency or start (right is better)</text>')
    for i, name in enumerate(names):
        at = 20 + i * 110
        out.append(f'<circle cx="{at}" cy="40" r="5" fill="{COLOURS[name]}"/><text x="{at + 10}" y="44">{escape(report["titles"][name])}</text>')
    for power in range(low, high + 1):
        at = x(10.0**power)
        label = f"{10**power}" if power >= 0 else f"1/{10**-power}"
        out.append(f'<line x1="{at:.1f}" y1="{TOP - 8}" x2="{at:.1f}" y2="{height - 26}" stroke="{"#888888" if power == 0 else "#dddddd"}"/>')
        out.append(f'<text x="{at:.1f}" y="{height - 10}" text-anchor="middle">{label}</text>')
    for i, (result, found) in enumerate(rows):
        y = TOP + ROW * i + ROW // 2
        out.append(f'<text x="10" y="{y + 4}">{escape(result["row"])}</text>')
        for name in names:
            if name in found:
                middle, a, b = found[name]
                out.append(f'<line x1="{x(a):.1f}" y1="{y}" x2="{x(b):.1f}" y2="{y}" stroke="{COLOURS[name]}" stroke-width="2"/>')
                out.append(f'<circle cx="{x(middle):.1f}" cy="{y}" r="5" fill="{COLOURS[name]}" fill-opacity="0.85"><title>{escape(report["titles"][name])}: {middle:.3g}</title></circle>')
    return "\n".join(out + ["</svg>"]) + "\n"
