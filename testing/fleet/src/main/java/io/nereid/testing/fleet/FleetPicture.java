// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/** Draws outcomes over time as SVG, in colours that are readable on a light and on a dark page. Stateless. */
final class FleetPicture {
    private static final List<String> COLOURS = List.of("#2a9d8f", "#e08e0b", "#c0507a");
    private static final int WIDTH = 720;
    private static final int LEFT = 64;
    private static final int RIGHT = 30;
    private static final int PANEL = 150;
    private static final int TOP = 56;
    private static final int GAP = 44;
    private static final String INK = "#808080";

    private FleetPicture() {}

    static String draw(FleetScenario scenario, List<FleetOutcome> outcomes) {
        int height = TOP + 3 * (PANEL + GAP);
        StringBuilder svg = new StringBuilder();
        svg.append(String.format(
                Locale.ROOT,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\""
                        + " font-family=\"sans-serif\" font-size=\"12\" fill=\"%s\">%n",
                WIDTH,
                height,
                WIDTH,
                height,
                INK));
        for (int i = 0; i < outcomes.size(); i++) {
            int x = LEFT + i * 200;
            svg.append(String.format(
                    Locale.ROOT,
                    "<line x1=\"%d\" y1=\"16\" x2=\"%d\" y2=\"16\" stroke=\"%s\" stroke-width=\"3\"/>"
                            + "<text x=\"%d\" y=\"20\">%s</text>%n",
                    x,
                    x + 20,
                    COLOURS.get(i),
                    x + 26,
                    outcomes.get(i).strategy));
        }
        panel(
                svg,
                scenario,
                outcomes,
                0,
                "requests that find their model loaded, % (cut at 80)",
                w -> 100 * w.hitRate(),
                80,
                100);
        panel(svg, scenario, outcomes, 1, "p99 latency of 10 s, s (cut at 6)", w -> w.p99() / 1000, 0, 6);
        panel(svg, scenario, outcomes, 2, "loads in 10 s (cut at 2,000)", FleetOutcome.Window::loads, 0, 2_000);
        return svg.append("</svg>\n").toString();
    }

    private static void panel(
            StringBuilder svg,
            FleetScenario scenario,
            List<FleetOutcome> outcomes,
            int index,
            String title,
            ToDoubleFunction<FleetOutcome.Window> value,
            double from,
            double most) {
        int top = TOP + index * (PANEL + GAP);
        double seen = 0;
        for (FleetOutcome outcome : outcomes) {
            for (FleetOutcome.Window window : outcome.windows) {
                if (window.second() >= scenario.warmup()) {
                    seen = Math.max(seen, value.applyAsDouble(window));
                }
            }
        }
        double to = Math.min(most, Math.max(from + 1e-9, seen));
        svg.append(String.format(
                Locale.ROOT, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>%n", LEFT, top - 8, title));
        for (int i = 0; i <= 4; i++) {
            double y = top + PANEL * (1 - i / 4.0);
            svg.append(String.format(
                    Locale.ROOT,
                    "<line x1=\"%d\" y1=\"%.0f\" x2=\"%d\" y2=\"%.0f\" stroke=\"%s\" stroke-opacity=\"0.3\"/>"
                            + "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s</text>%n",
                    LEFT,
                    y,
                    WIDTH - RIGHT,
                    y,
                    INK,
                    LEFT - 6,
                    y + 4,
                    number(from + (to - from) * i / 4)));
        }
        mark(svg, scenario, top, scenario.loseAt(), "-" + scenario.lose());
        mark(svg, scenario, top, scenario.replaceAt(), "+" + scenario.lose());
        mark(svg, scenario, top, scenario.growAt(), "+" + scenario.grow());
        mark(svg, scenario, top, scenario.shrinkAt(), "-" + scenario.grow());
        for (int i = outcomes.size() - 1; i >= 0; i--) {
            StringBuilder points = new StringBuilder();
            for (FleetOutcome.Window window : outcomes.get(i).windows) {
                if (window.second() >= scenario.warmup()) {
                    double share = (value.applyAsDouble(window) - from) / (to - from);
                    points.append(String.format(
                            Locale.ROOT,
                            "%.1f,%.1f ",
                            x(scenario, window.second()),
                            top + PANEL * (1 - Math.max(0, Math.min(1, share)))));
                }
            }
            svg.append(String.format(
                    Locale.ROOT,
                    "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"%s\"/>%n",
                    COLOURS.get(i),
                    points.toString().trim()));
        }
        for (int minute = scenario.warmup() / 60; minute <= scenario.seconds() / 60; minute += 10) {
            svg.append(String.format(
                    Locale.ROOT,
                    "<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">%d min</text>%n",
                    x(scenario, minute * 60),
                    top + PANEL + 16,
                    minute));
        }
    }

    private static void mark(StringBuilder svg, FleetScenario scenario, int top, int second, String text) {
        svg.append(String.format(
                Locale.ROOT,
                "<line x1=\"%1$.0f\" y1=\"%2$d\" x2=\"%1$.0f\" y2=\"%3$d\" stroke=\"%4$s\" stroke-dasharray=\"3 3\"/>"
                        + "<text x=\"%5$.0f\" y=\"%6$d\" font-size=\"11\">%7$s</text>%n",
                x(scenario, second),
                top,
                top + PANEL,
                INK,
                x(scenario, second) + 3,
                top + PANEL - 4,
                text));
    }

    private static double x(FleetScenario scenario, int second) {
        double share = (double) (second - scenario.warmup()) / (scenario.seconds() - scenario.warmup());
        return LEFT + share * (WIDTH - LEFT - RIGHT);
    }

    private static String number(double value) {
        return value == Math.rint(value)
                ? String.format(Locale.ROOT, "%.0f", value)
                : String.format(Locale.ROOT, value < 10 ? "%.1f" : "%.0f", value);
    }
}
