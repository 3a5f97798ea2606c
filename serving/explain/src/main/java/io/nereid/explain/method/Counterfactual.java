// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.base.ServingException;
import io.nereid.explain.request.Background;
import io.nereid.explain.request.ExplainOptions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * Counterfactual explanations: the nearest rows for which the model makes the desired prediction (Wachter, Mittelstadt,
 * Russell 2017). An evolutionary search that starts from background rows and random rows, mutates them, moves them back
 * towards the original row, and resets single features, so that as few features as possible change. Values stay within
 * the range of the background's values. Distances are the sums of the changes, each divided by the feature's median
 * absolute deviation. Stateless.
 */
public final class Counterfactual {
    private static final int SAMPLES = 2000;
    private static final int CROWD = 50;
    private static final int ELITE = 8;
    /** The number of rounds without an improvement after which the search ends. */
    private static final int PATIENCE = 10;
    /** The cost of a changed feature in addition to its distance. */
    private static final double CHANGE = 0.5;

    private Counterfactual() {}

    /** Explains every row of a task. */
    public static CompletableFuture<ExplanationTask.Answer> explain(ExplanationTask question) {
        Background background = question.background();
        CounterfactualGoal goal = CounterfactualGoal.of(question);
        Space space = Space.of(question, background);
        int samples = (int) question.options().whole("nsamples", SAMPLES, CROWD, 1 << 20);
        int count = (int) question.options().whole("count", 1, 1, 100);
        question.budget()
                .check(
                        (long) samples * question.rows().length,
                        "the search for " + question.rows().length + " instances with " + samples + " samples");
        List<Object> results = new ArrayList<>();
        CompletableFuture<Void> before = CompletableFuture.completedFuture(null);
        for (int i = 0; i < question.rows().length; i++) {
            Search search = new Search(question, i, goal, space, background, samples, count);
            before = before.thenCompose(done -> search.round()).thenRun(() -> results.add(search.result()));
        }
        return before.thenApply(done ->
                new ExplanationTask.Answer(results, Map.of("algorithm", "counterfactual", "nsamples", samples)));
    }

    /**
     * The search space.
     *
     * @param least the lower limits by feature
     * @param most the upper limits by feature; a feature with equal limits does not change
     * @param scale the unit of distances by feature
     * @param whole whether the feature has integer values
     */
    private record Space(double[] least, double[] most, double[] scale, boolean[] whole) {
        static Space of(ExplanationTask question, @Nullable Background background) {
            int features = question.features();
            Space space =
                    new Space(new double[features], new double[features], new double[features], new boolean[features]);
            Map<?, ?> ranges = question.options().get("ranges") instanceof Map<?, ?> given ? given : Map.of();
            Object wrong = question.options().get("ranges");
            if (wrong != null && !(wrong instanceof Map)) {
                throw ExplainOptions.wrong("ranges", wrong, "an object of [least, most] by feature");
            }
            for (int f = 0; f < features; f++) {
                Background.Spread spread = background == null ? null : background.spread(f);
                space.whole[f] = question.columns().whole(f) || (spread != null && spread.whole());
                space.scale[f] = 1;
                if (spread != null) {
                    space.least[f] = spread.least();
                    space.most[f] = spread.most();
                    space.scale[f] = spread.medianDeviation() > 0
                            ? spread.medianDeviation()
                            : spread.deviation() > 0 ? spread.deviation() : 1;
                }
            }
            for (Map.Entry<?, ?> range : ranges.entrySet()) {
                int f = question.columns().place(String.valueOf(range.getKey()), "ranges");
                if (!(range.getValue() instanceof double[] limits) || limits.length != 2 || !(limits[0] <= limits[1])) {
                    throw ExplainOptions.wrong(
                            "ranges", range.getValue(), "[least, most] for feature " + range.getKey());
                }
                space.least[f] = limits[0];
                space.most[f] = limits[1];
                if (background == null) {
                    space.scale[f] = Math.max(Double.MIN_NORMAL, (limits[1] - limits[0]) / 4);
                }
            }
            if (background == null && ranges.isEmpty()) {
                throw Background.missing("counterfactual", "which show how far each feature may move, or 'ranges'");
            }
            for (Object name : list(question.options().get("immutable"))) {
                int f = question.columns().place(name, "immutable");
                space.most[f] = space.least[f];
            }
            return space;
        }

        private static List<Object> list(@Nullable Object given) {
            if (given == null) {
                return List.of();
            }
            if (given instanceof double[] numbers) {
                List<Object> all = new ArrayList<>();
                for (double number : numbers) {
                    all.add(number);
                }
                return all;
            }
            if (given instanceof List<?> names) {
                return new ArrayList<>(names);
            }
            if (given instanceof String names) {
                return List.of((Object[]) names.split(","));
            }
            throw ExplainOptions.wrong("immutable", given, "a list of features");
        }

        boolean moves(int feature) {
            return least[feature] < most[feature];
        }

        double within(int feature, double value) {
            double v = Math.min(most[feature], Math.max(least[feature], value));
            double whole = Math.rint(v);
            return this.whole[feature] && whole >= least[feature] && whole <= most[feature] ? whole : v;
        }
    }

    /** A row with its prediction. */
    private record Candidate(double[] row, double[] prediction, double gap, double distance, BitSet changed) {
        double cost() {
            return distance + CHANGE * changed.cardinality();
        }
    }

    private static final Comparator<Candidate> BEST =
            Comparator.comparingDouble(Candidate::gap).thenComparingDouble(Candidate::cost);

    /** The search for one row. Confined to one stage at a time. */
    private static final class Search {
        private final ExplanationTask question;
        private final double[] x;
        private final double[] prediction;
        private final CounterfactualGoal goal;
        private final Space space;
        private final @Nullable Background background;
        private final SplittableRandom random;
        private final int[] movable;
        private final int count;
        private final Map<BitSet, Candidate> found = new HashMap<>();
        private List<Candidate> elite = new ArrayList<>();
        private @Nullable Candidate sparsified;
        private int left;
        private int idle;
        private boolean first = true;

        Search(
                ExplanationTask question,
                int row,
                CounterfactualGoal goal,
                Space space,
                @Nullable Background background,
                int samples,
                int count) {
            this.question = question;
            this.x = question.rows()[row];
            this.prediction = question.predictions()[row];
            this.goal = goal;
            this.space = space;
            this.background = background;
            this.random = question.random(row);
            this.left = samples;
            this.count = count;
            int[] all = new int[x.length];
            int n = 0;
            for (int f = 0; f < x.length; f++) {
                if (space.moves(f)) {
                    all[n++] = f;
                }
            }
            this.movable = Arrays.copyOf(all, n);
            if (n == 0) {
                throw ServingException.invalidArgument(
                        "no feature may move: all are immutable, or have one value in the background",
                        "give ranges, or a background with more than one value for some feature");
            }
        }

        CompletableFuture<Void> round() {
            if (left <= 0 || idle >= PATIENCE || goal.gap(prediction) == 0) {
                return CompletableFuture.completedFuture(null);
            }
            List<double[]> crowd = first ? begin() : breed();
            first = false;
            List<double[]> asked = crowd.subList(0, Math.min(crowd.size(), left));
            left -= asked.size();
            double[][] rows = asked.toArray(new double[0][]);
            return question.model().ask(rows).thenCompose(answers -> {
                select(rows, answers);
                return round();
            });
        }

        /** The first generation: background rows, half of them the nearest ones, and random rows. */
        private List<double[]> begin() {
            List<double[]> crowd = new ArrayList<>();
            if (background != null) {
                List<double[]> near = new ArrayList<>();
                for (double[] row : background.rows()) {
                    double[] moved = x.clone();
                    for (int f : movable) {
                        moved[f] = Double.isFinite(row[f]) ? space.within(f, row[f]) : x[f];
                    }
                    near.add(moved);
                }
                near.sort(Comparator.comparingDouble(this::distance));
                // Near ones, and some from all over.
                for (int i = 0; i < Math.min(near.size(), CROWD / 2); i++) {
                    crowd.add(near.get(i < CROWD / 4 ? i : (int) ((long) i * near.size() / (CROWD / 2))));
                }
            }
            while (crowd.size() < CROWD) {
                crowd.add(anywhere());
            }
            return crowd;
        }

        private double[] anywhere() {
            double[] row = x.clone();
            int changes = 1 + random.nextInt(movable.length);
            for (int i = 0; i < changes; i++) {
                int f = movable[random.nextInt(movable.length)];
                row[f] = uniform(f);
            }
            return row;
        }

        private double uniform(int f) {
            return space.within(f, space.least[f] + random.nextDouble() * (space.most[f] - space.least[f]));
        }

        /** The next generation: the best valid candidate with each change undone once, then mutations of the elite. */
        private List<double[]> breed() {
            List<double[]> crowd = new ArrayList<>();
            Candidate best = elite.get(0);
            if (best.gap == 0 && best != sparsified) {
                sparsified = best;
                for (int f = best.changed.nextSetBit(0);
                        f >= 0 && crowd.size() < CROWD;
                        f = best.changed.nextSetBit(f + 1)) {
                    double[] row = best.row.clone();
                    row[f] = x[f];
                    crowd.add(row);
                }
            }
            while (crowd.size() < CROWD) {
                Candidate parent = elite.get(random.nextInt(elite.size()));
                crowd.add(child(parent));
            }
            return crowd;
        }

        /**
         * Mutates a candidate: undoes a change, moves one or all changes towards the row, adds noise, crosses over with
         * another candidate, draws a feature anew, or draws a random row. A candidate that is not valid yet only
         * explores.
         */
        private double[] child(Candidate parent) {
            double[] row = parent.row.clone();
            int[] changed = parent.changed.stream().toArray();
            int way = parent.gap == 0 && changed.length > 0 ? random.nextInt(6) : 3 + random.nextInt(4);
            switch (way) {
                case 0:
                    int back = changed[random.nextInt(changed.length)];
                    row[back] = x[back];
                    break;
                case 1:
                    int f = changed[random.nextInt(changed.length)];
                    row[f] = towards(f, row[f], random.nextDouble());
                    break;
                case 2:
                    double part = random.nextDouble() * 0.5;
                    for (int c : changed) {
                        row[c] = towards(c, row[c], part);
                    }
                    break;
                case 3:
                    int moved = movable[random.nextInt(movable.length)];
                    double from = Double.isFinite(row[moved]) ? row[moved] : uniform(moved);
                    row[moved] = space.within(moved, from + random.nextGaussian() * space.scale[moved]);
                    break;
                case 4:
                    Candidate other = elite.get(random.nextInt(elite.size()));
                    for (int c : movable) {
                        row[c] = random.nextBoolean() ? row[c] : other.row[c];
                    }
                    break;
                case 5:
                    int anew = movable[random.nextInt(movable.length)];
                    row[anew] = uniform(anew);
                    break;
                default:
                    return anywhere();
            }
            return row;
        }

        private double towards(int f, double value, double part) {
            return Double.isFinite(x[f]) ? within(f, value + part * (x[f] - value)) : value;
        }

        /** Limits a value to the search space; the row's own value is always allowed. */
        private double within(int f, double value) {
            double low = Math.min(space.least[f], x[f]);
            double high = Math.max(space.most[f], x[f]);
            double v = Math.min(high, Math.max(low, value));
            return space.whole[f] ? Math.rint(v) : v;
        }

        private double distance(double[] row) {
            double sum = 0;
            for (int f : movable) {
                double d = Math.abs(row[f] - x[f]) / space.scale[f];
                sum += Double.isNaN(d) ? (Double.compare(row[f], x[f]) == 0 ? 0 : 1) : d;
            }
            return sum;
        }

        /**
         * Selects the elite: first by the gap to the goal, then by cost. Keeps the best valid candidate for each set of
         * changed features.
         */
        private void select(double[][] rows, double[][] answers) {
            Candidate before = elite.isEmpty() ? null : elite.get(0);
            List<Candidate> all = new ArrayList<>(elite);
            for (int i = 0; i < rows.length; i++) {
                BitSet changed = new BitSet();
                for (int f : movable) {
                    if (Double.compare(rows[i][f] + 0.0, x[f] + 0.0) != 0) {
                        changed.set(f);
                    }
                }
                Candidate candidate =
                        new Candidate(rows[i], answers[i], goal.gap(answers[i]), distance(rows[i]), changed);
                all.add(candidate);
                if (candidate.gap == 0) {
                    found.merge(changed, candidate, (a, b) -> BEST.compare(a, b) <= 0 ? a : b);
                }
            }
            all.sort(BEST);
            elite = new ArrayList<>(all.subList(0, Math.min(ELITE, all.size())));
            boolean better = before == null || BEST.compare(elite.get(0), before) < 0;
            idle = better || elite.get(0).gap > 0 ? 0 : idle + 1;
        }

        Map<String, Object> result() {
            List<Candidate> all = new ArrayList<>(found.values());
            all.sort(BEST.thenComparing(c -> c.changed.toString()));
            List<Object> rows = new ArrayList<>();
            for (Candidate c : all.subList(0, Math.min(count, all.size()))) {
                List<Object> changes = new ArrayList<>();
                for (int f = c.changed.nextSetBit(0); f >= 0; f = c.changed.nextSetBit(f + 1)) {
                    Map<String, Object> change = new LinkedHashMap<>();
                    change.put("feature", question.columns().names().get(f));
                    change.put("from", x[f]);
                    change.put("to", c.row[f]);
                    changes.add(change);
                }
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("instance", c.row);
                one.put("prediction", ShapValues.single(c.prediction));
                one.put("distance", c.distance);
                one.put("changed", changes);
                rows.add(one);
            }
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("counterfactuals", rows);
            if (rows.isEmpty()) {
                result.put(
                        "message",
                        goal.gap(prediction) == 0
                                ? "the prediction is the desired one already"
                                : "no row with the desired prediction was found; try a larger nsamples, wider ranges"
                                        + " or fewer immutable features");
            }
            result.put("prediction", ShapValues.single(prediction));
            result.put("feature_names", question.columns().names());
            return result;
        }
    }
}
