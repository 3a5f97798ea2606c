// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A chart of lines and points as SVG, without scripts and fonts of its own. Confined to one thread. */
public final class LineChart {
    public static final int WIDTH = 720;
    public static final int HEIGHT = 380;
    private static final int LEFT = 70;
    private static final int RIGHT = 130;
    private static final int TOP = 40;
    private static final int BOTTOM = 50;
    private static final String[] COLOURS = {
        "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2"
    };

    private final String title;
    private final String horizontal;
    private final String vertical;
    private final List<Line> lines = new ArrayList<>();
    private List<Tick> ticks = List.of();

    /** A line through points, in the order of the lists; or the points alone. */
    private record Line(String name, List<double[]> points, boolean joined) {}

    /** A mark on the horizontal axis. */
    record Tick(double at, String text) {}

    public LineChart(String title, String horizontal, String vertical) {
        this.title = title;
        this.horizontal = horizontal;
        this.vertical = vertical;
    }

    /** Adds a line; points without a number are left out. */
    public void line(String name, List<double[]> points) {
        lines.add(new Line(name, finite(points), true));
    }

    /** Adds points that no line joins. */
    public void points(String name, List<double[]> points) {
        lines.add(new Line(name, finite(points), false));
    }

    private static List<double[]> finite(List<double[]> points) {
        return points.stream()
                .filter(p -> Double.isFinite(p[0]) && Double.isFinite(p[1]))
                .toList();
    }

    /** Sets the marks of the horizontal axis, which are at round numbers otherwise. */
    void ticks(List<Tick> marks) {
        ticks = List.copyOf(marks);
    }

    /** The elements of the chart, {@value #WIDTH} by {@value #HEIGHT}, moved down by {@code top}. */
    public String elements(int top) {
        double right = lines.stream()
                .flatMap(l -> l.points.stream())
                .mapToDouble(p -> p[0])
                .max()
                .orElse(1);
        double high = lines.stream()
                .flatMap(l -> l.points.stream())
                .mapToDouble(p -> p[1])
                .max()
                .orElse(1);
        double stepY = step(high);
        double maxY = Math.max(stepY, Math.ceil(high / stepY) * stepY);
        double maxX = Math.max(right, Double.MIN_NORMAL);
        List<Tick> marks = ticks;
        if (marks.isEmpty()) {
            double stepX = step(maxX);
            maxX = Math.max(stepX, Math.ceil(maxX / stepX) * stepX);
            marks = new ArrayList<>();
            for (double x = 0; x <= maxX * 1.0001; x += stepX) {
                marks.add(new Tick(x, label(x)));
            }
        }
        StringBuilder svg = new StringBuilder();
        svg.append("<g transform=\"translate(0,").append(top).append(")\">\n");
        text(svg, LEFT, 22, "start", title, " font-size=\"15\" font-weight=\"bold\"");
        int bottom = HEIGHT - BOTTOM;
        for (double y = 0; y <= maxY * 1.0001; y += stepY) {
            int at = y(y, maxY);
            svg.append(String.format(
                    Locale.ROOT,
                    "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n",
                    LEFT,
                    at,
                    WIDTH - RIGHT,
                    at));
            text(svg, LEFT - 8, at + 4, "end", label(y), "");
        }
        for (Tick mark : marks) {
            if (mark.at <= maxX * 1.0001) {
                text(svg, x(mark.at, maxX), bottom + 18, "middle", mark.text, "");
            }
        }
        text(svg, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle", horizontal, "");
        text(svg, 16, HEIGHT / 2, "middle", vertical, " transform=\"rotate(-90 16 " + HEIGHT / 2 + ")\"");
        for (int i = 0; i < lines.size(); i++) {
            draw(svg, lines.get(i), i, maxX, maxY);
        }
        return svg.append("</g>\n").toString();
    }

    private static void draw(StringBuilder svg, Line line, int index, double maxX, double maxY) {
        String colour = COLOURS[index % COLOURS.length];
        StringBuilder path = new StringBuilder();
        for (double[] point : line.points) {
            path.append(path.isEmpty() ? "" : " ")
                    .append(x(point[0], maxX))
                    .append(',')
                    .append(y(point[1], maxY));
        }
        if (line.joined) {
            svg.append("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"").append(colour);
            svg.append("\" points=\"").append(path).append("\"/>\n");
        }
        for (double[] point : line.points) {
            svg.append("<circle r=\"2.5\" fill=\"")
                    .append(colour)
                    .append("\" cx=\"")
                    .append(x(point[0], maxX));
            svg.append("\" cy=\"").append(y(point[1], maxY)).append("\"/>\n");
        }
        int at = TOP + 8 + index * 18;
        svg.append("<rect width=\"12\" height=\"4\" fill=\"").append(colour).append("\" x=\"");
        svg.append(WIDTH - RIGHT + 10).append("\" y=\"").append(at - 6).append("\"/>\n");
        text(svg, WIDTH - RIGHT + 28, at, "start", line.name, "");
    }

    private static int x(double value, double max) {
        return (int) Math.round(LEFT + value / max * (WIDTH - LEFT - RIGHT));
    }

    private static int y(double value, double max) {
        return (int) Math.round(HEIGHT - BOTTOM - value / max * (HEIGHT - TOP - BOTTOM));
    }

    private static void text(StringBuilder svg, int x, int y, String anchor, String text, String more) {
        svg.append("<text x=\"")
                .append(x)
                .append("\" y=\"")
                .append(y)
                .append("\" text-anchor=\"")
                .append(anchor);
        svg.append('"').append(more).append('>').append(escaped(text)).append("</text>\n");
    }

    /** A distance of marks that gives at most eight of them at round numbers. */
    private static double step(double max) {
        if (!(max > 0)) {
            return 1;
        }
        double unit = Math.pow(10, Math.floor(Math.log10(max / 8)));
        for (double factor : new double[] {1, 2, 5, 10}) {
            if (max / (unit * factor) <= 8) {
                return unit * factor;
            }
        }
        return unit * 10;
    }

    private static String label(double value) {
        String text =
                String.format(Locale.ROOT, value >= 10 || value == 0 ? "%.0f" : value >= 1 ? "%.1f" : "%.3f", value);
        return text.contains(".") ? text.replaceFirst("\\.?0+$", "") : text;
    }

    /** A text in XML or HTML. */
    public static String escaped(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }
}
