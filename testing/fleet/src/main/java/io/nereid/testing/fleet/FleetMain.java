// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Prints the figures of all strategies as a table, and draws them: {@code FleetMain [--small]
 * [--seed=NUMBER] [FOLDER FOR PICTURES]}. */
public final class FleetMain {
    private FleetMain() {}

    /** Runs the simulation; see the class comment. */
    public static void main(String[] args) throws IOException {
        FleetScenario scenario = FleetScenario.full();
        Path pictures = null;
        for (String arg : args) {
            if (arg.equals("--small")) {
                scenario = FleetScenario.small();
            } else if (arg.matches("--seed=\\d{1,18}")) {
                scenario = scenario.seeded(Long.parseLong(arg.substring("--seed=".length())));
            } else if (arg.startsWith("-")) {
                System.err.println("'" + arg + "' is not an option (expected --small, --seed=NUMBER or a folder)");
                System.exit(2);
            } else {
                pictures = Path.of(arg);
            }
        }
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        List<FleetOutcome> outcomes = new ArrayList<>();
        for (var strategy : FleetStrategies.ALL) {
            outcomes.add(FleetStrategies.run(scenario, strategy));
        }
        out.println(table(scenario, outcomes));
        if (pictures != null) {
            Files.createDirectories(pictures);
            Files.writeString(pictures.resolve("fleet.svg"), FleetPicture.draw(scenario, outcomes));
        }
    }

    static String table(FleetScenario s, List<FleetOutcome> outcomes) {
        StringBuilder text = new StringBuilder("| |");
        outcomes.forEach(o -> text.append(' ').append(o.strategy).append(" |"));
        text.append("\n|---|").append("---|".repeat(outcomes.size()));
        row(text, "requests that find their model loaded", outcomes, o -> percent(o.hitRate()));
        row(
                text,
                "p50 / p99 / p99.9 latency, ms",
                outcomes,
                o -> String.format(
                        Locale.ROOT,
                        "%.0f / %.0f / %.0f",
                        o.latency.millis(0.5),
                        o.latency.millis(0.99),
                        o.latency.millis(0.999)));
        row(
                text,
                "p99 of requests that find their model, ms",
                outcomes,
                o -> String.format(Locale.ROOT, "%.0f", o.hitLatency.millis(0.99)));
        row(text, "refused: queue of the pod full", outcomes, o -> percent(o.refusedShare()));
        row(
                text,
                "loads a second",
                outcomes,
                o -> String.format(Locale.ROOT, "%.1f", (double) o.loads / (s.seconds() - s.warmup())));
        row(text, s.lose() + " pods lost: further loads in 2 min", outcomes, o -> "" + o.moves(s.loseAt(), 120));
        row(
                text,
                s.lose() + " pods lost: lowest hit rate in 10 s",
                outcomes,
                o -> percent(o.lowestHitRate(s.loseAt(), 60)));
        row(text, s.grow() + " pods more: further loads in 5 min", outcomes, o -> "" + o.moves(s.growAt(), 300));
        row(
                text,
                s.grow() + " pods more: lowest hit rate in 10 s",
                outcomes,
                o -> percent(o.lowestHitRate(s.growAt(), 120)));
        row(text, s.grow() + " pods fewer: further loads in 5 min", outcomes, o -> "" + o.moves(s.shrinkAt(), 300));
        row(
                text,
                s.grow() + " pods fewer: lowest hit rate in 10 s",
                outcomes,
                o -> percent(o.lowestHitRate(s.shrinkAt(), 300)));
        row(
                text,
                "busiest pod / mean, over 10 s",
                outcomes,
                o -> String.format(Locale.ROOT, "%.2f", o.meanLoadBalance(s.warmup())));
        row(
                text,
                "fullest pod / mean",
                outcomes,
                o -> String.format(Locale.ROOT, "%.2f", o.meanMemoryBalance(s.warmup())));
        row(text, "most memory used / limit", outcomes, o -> String.format(Locale.ROOT, "%.3f", o.fullest));
        return text.append('\n').toString();
    }

    private interface Figure {
        String of(FleetOutcome outcome);
    }

    private static void row(StringBuilder text, String name, List<FleetOutcome> outcomes, Figure figure) {
        text.append("\n| ").append(name).append(" |");
        outcomes.forEach(o -> text.append(' ').append(figure.of(o)).append(" |"));
    }

    private static String percent(double share) {
        return String.format(Locale.ROOT, "%.2f %%", 100 * share);
    }
}
