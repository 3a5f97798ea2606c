// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Searches the configuration that serves most requests within a latency limit, in a small part of the measurements of the whole
 * grid. Confined to one thread.
 *
 * <ol>
 *   <li>The configuration that the model has is measured under growing loads: the highest rate within the limit is what has to be
 *       beaten. (Without any, the lowest latency of a single request is.)
 *   <li>Ways to use the cores: for each number of threads, as many instances as fill them.
 *   <li>From the best so far, neighbours in each direction: batch size, instances and threads, alone and against each other, delay. A
 *       step that gains is repeated in its direction; the search ends when no step gains {@value #GAIN} or its time is up.
 *   <li>The first and the best configuration are measured again in turn. The best one is proposed only if it is better then, too.
 * </ol>
 *
 * <p>A configuration is measured at the load at which the best one has its rate, then at higher loads while it gains. Where it exceeds
 * the limit, lower loads follow, but only while its rate is above the best: fewer requests in flight never give a higher rate.
 */
final class VariantSearch {
    /** The share by which a rate must be higher to count as better: less is within the differences between measurements. */
    static final double GAIN = 0.02;

    /** How often both configurations are measured at the end. An odd number, for the median. */
    private static final int CONFIRMATIONS = 3;

    /** How many lower loads are tried at the end. */
    private static final int LOWER_LOADS = 2;

    private final SearchSpace space;
    private final double limitMillis;
    private final int cores;
    private final VariantTarget target;
    private final BooleanSupplier ended;
    private final Map<Load, VariantResult> measured = new LinkedHashMap<>();
    private final Map<ConfigVariant, VariantResult> evaluated = new LinkedHashMap<>();
    private final Map<ConfigVariant, String> refused = new LinkedHashMap<>();
    private int measurements;
    private @Nullable VariantResult best;

    private record Load(ConfigVariant variant, int concurrency) {}

    /**
     * The result of a search. Immutable.
     *
     * @param before the first configuration at its best load, measured at the end
     * @param after the proposed one; {@code before} when nothing better was found
     * @param results every measurement of the search, in its order
     * @param refused configurations that the model could not be loaded with, with the reason
     * @param measurements the number of all measurements
     */
    record Outcome(
            VariantResult before,
            VariantResult after,
            List<VariantResult> results,
            Map<ConfigVariant, String> refused,
            int measurements) {
        boolean improved() {
            return !after.variant().equals(before.variant());
        }
    }

    /**
     * Creates a search.
     *
     * @param cores the cores of the server
     * @param ended whether the search has to end, because of its time or an interrupt
     */
    VariantSearch(SearchSpace space, double limitMillis, int cores, VariantTarget target, BooleanSupplier ended) {
        this.space = space;
        this.limitMillis = limitMillis;
        this.cores = cores;
        this.target = target;
        this.ended = ended;
    }

    /**
     * Searches.
     *
     * @param first the configuration that the model has now, whose values the space has
     * @return null when it was interrupted before the first configuration was measured
     * @throws ServingException when the model cannot be loaded with its first configuration
     */
    @Nullable Outcome search(ConfigVariant first) {
        VariantResult start = climb(first);
        if (start == null) {
            return null;
        }
        best = start;
        evaluated.put(first, start);
        for (ConfigVariant filled : waysToFillTheCores(first)) {
            var unused = attempt(filled);
        }
        boolean gained = true;
        while (gained && !ended.getAsBoolean()) {
            gained = step();
        }
        return confirmed(start, best());
    }

    /** Measures every configuration at every load up to the limit, instead of the search. Null as {@link #search}. */
    @Nullable Outcome grid(ConfigVariant first) {
        VariantResult start = climb(first);
        if (start == null) {
            return null;
        }
        best = start;
        for (int size : space.batchSizes()) {
            for (long delay : space.delays()) {
                for (int count : space.instances()) {
                    for (int width : space.threads()) {
                        allLoads(new ConfigVariant(size, delay, count, width));
                    }
                }
            }
        }
        return confirmed(start, best());
    }

    private void allLoads(ConfigVariant variant) {
        try {
            for (int load = 0; load < space.concurrencies().size() && !ended.getAsBoolean(); load++) {
                VariantResult result = measure(variant, load);
                if (result == null || !keeps(result)) {
                    return;
                }
                if (better(result, best())) {
                    best = result;
                }
            }
        } catch (ServingException e) {
            refuse(variant, e);
        }
    }

    /** Notes why the model cannot be loaded with a configuration, which ends the search only where none can be loaded. */
    private void refuse(ConfigVariant variant, ServingException why) {
        if (why.code() == ErrorCode.UNAUTHENTICATED || why.code() == ErrorCode.PERMISSION_DENIED) {
            throw why;
        }
        refused.put(variant, why.getMessage());
    }

    private VariantResult best() {
        VariantResult now = best;
        if (now == null) {
            throw new IllegalStateException("nothing is measured");
        }
        return now;
    }

    /** Tries the neighbours of the best configuration; true when one is better. */
    private boolean step() {
        ConfigVariant from = best().variant();
        boolean gained = false;
        for (ConfigVariant neighbour : neighbours(from)) {
            ConfigVariant before = best().variant();
            if (attempt(neighbour)) {
                gained = true;
                follow(before, neighbour);
            }
        }
        return gained;
    }

    /** Repeats a step of one value in its direction while it gains. */
    private void follow(ConfigVariant before, ConfigVariant after) {
        ConfigVariant from = before;
        ConfigVariant to = after;
        while (true) {
            ConfigVariant next = to;
            if (from.batchSize() != to.batchSize()) {
                next = to.withBatchSize(beyond(space.batchSizes(), from.batchSize(), to.batchSize()));
            } else if (from.delayMicros() != to.delayMicros()) {
                next = to.withDelayMicros(beyond(space.delays(), from.delayMicros(), to.delayMicros()));
            } else if (from.threads() == to.threads()) {
                next = to.withWidth(beyond(space.instances(), from.instances(), to.instances()), to.threads());
            }
            if (next.equals(to) || !attempt(next)) {
                return;
            }
            from = to;
            to = next;
        }
    }

    /** The value that follows {@code to} when one comes from {@code from}; {@code to} at the end of the list. */
    private static <T extends Comparable<T>> T beyond(List<T> values, T from, T to) {
        int at = values.indexOf(to) + (to.compareTo(from) > 0 ? 1 : -1);
        return at < 0 || at >= values.size() ? to : values.get(at);
    }

    private Set<ConfigVariant> neighbours(ConfigVariant from) {
        Set<ConfigVariant> result = new LinkedHashSet<>();
        SearchSpace.beside(space.batchSizes(), from.batchSize()).forEach(size -> result.add(from.withBatchSize(size)));
        List<Integer> counts = SearchSpace.beside(space.instances(), from.instances());
        List<Integer> widths = SearchSpace.beside(space.threads(), from.threads());
        counts.forEach(count -> result.add(from.withWidth(count, from.threads())));
        widths.forEach(width -> result.add(from.withWidth(from.instances(), width)));
        for (int count : counts) {
            for (int width : widths) {
                if ((count > from.instances()) != (width > from.threads())) {
                    result.add(from.withWidth(count, width));
                }
            }
        }
        SearchSpace.beside(space.delays(), from.delayMicros())
                .forEach(delay -> result.add(from.withDelayMicros(delay)));
        // The gain of batches may begin beyond the next size.
        space.batchSizes().stream()
                .skip(Math.max(0, space.batchSizes().size() - 1))
                .forEach(size -> result.add(from.withBatchSize(size)));
        return result;
    }

    private List<ConfigVariant> waysToFillTheCores(ConfigVariant first) {
        List<ConfigVariant> result = new ArrayList<>();
        for (int threads : space.threads()) {
            int wanted = Math.max(1, cores / threads);
            space.instances().stream()
                    .min(Comparator.comparingInt(count -> Math.abs(count - wanted)))
                    .ifPresent(count -> result.add(first.withWidth(count, threads)));
        }
        return result;
    }

    /** Measures a configuration; true when it is better than the best so far, which it then is. */
    private boolean attempt(ConfigVariant variant) {
        if (evaluated.containsKey(variant) || refused.containsKey(variant) || ended.getAsBoolean()) {
            return false;
        }
        VariantResult result;
        try {
            result = evaluate(variant, space.concurrencies().indexOf(best().concurrency()));
        } catch (ServingException e) {
            refuse(variant, e);
            return false;
        }
        if (result == null) {
            return false;
        }
        evaluated.put(variant, result);
        if (!better(result, best())) {
            return false;
        }
        best = result;
        return true;
    }

    private boolean keeps(VariantResult result) {
        return result.keeps(limitMillis);
    }

    private boolean better(VariantResult one, VariantResult other) {
        if (keeps(one) != keeps(other)) {
            return keeps(one);
        }
        return keeps(one)
                ? one.rate() > other.rate() * (1 + GAIN)
                : one.concurrency() == other.concurrency()
                        && one.failed() <= other.failed()
                        && one.latencyMillis() < other.latencyMillis() * (1 - GAIN);
    }

    /** The best load of the first configuration: every second load from the lowest, then those around the best. */
    private @Nullable VariantResult climb(ConfigVariant variant) {
        int highest = 0;
        VariantResult now = measure(variant, 0);
        VariantResult top = now;
        int without = 0;
        for (int at = 2;
                now != null
                        && keeps(now)
                        && without < 2
                        && at < space.concurrencies().size();
                at += 2) {
            now = measure(variant, at);
            if (now == null || !keeps(now) || top == null || now.rate() <= top.rate() * (1 + GAIN)) {
                without++;
            } else {
                top = now;
                highest = at;
                without = 0;
            }
        }
        best = top;
        return top == null ? null : evaluate(variant, highest);
    }

    /** The best load of a configuration, from the load of the best one upwards or downwards; null when interrupted. */
    private @Nullable VariantResult evaluate(ConfigVariant variant, int start) {
        VariantResult at = measure(variant, start);
        if (at == null) {
            return null;
        }
        return keeps(at) ? upwards(variant, start, at) : downwards(variant, start, at);
    }

    private VariantResult upwards(ConfigVariant variant, int start, VariantResult first) {
        VariantResult top = first;
        int without = 0;
        for (int at = start + 1; at < space.concurrencies().size(); at++) {
            VariantResult next = measure(variant, at);
            if (next == null || !keeps(next)) {
                break;
            }
            if (next.rate() > top.rate() * (1 + GAIN)) {
                top = next;
                without = 0;
            } else if (++without == 2 || top.rate() < best().rate()) {
                break;
            }
        }
        return top;
    }

    private VariantResult downwards(ConfigVariant variant, int start, VariantResult first) {
        VariantResult now = first;
        for (int at = start - 1; at >= 0; at--) {
            VariantResult best = best();
            if (keeps(best) && !best.variant().equals(variant) && now.rate() <= best.rate() * (1 + GAIN)) {
                break;
            }
            VariantResult next = measure(variant, at);
            if (next == null) {
                break;
            }
            now = next;
            if (keeps(now)) {
                break;
            }
        }
        return now;
    }

    private @Nullable VariantResult measure(ConfigVariant variant, int load) {
        int concurrency = space.concurrencies().get(load);
        Load key = new Load(variant, concurrency);
        VariantResult known = measured.get(key);
        if (known != null) {
            return known;
        }
        VariantResult result = target.measure(variant, concurrency);
        if (result != null) {
            measurements++;
            measured.put(key, result);
        }
        return result;
    }

    /**
     * Measures both again, in turn, so that what happens to the machine meanwhile happens to both. Where the found one exceeds the limit
     * now, it is at the edge of it: the next lower loads are tried.
     */
    private Outcome confirmed(VariantResult start, VariantResult found) {
        VariantResult before = start;
        if (!found.variant().equals(start.variant())) {
            int load = space.concurrencies().indexOf(found.concurrency());
            for (int lower = 0; lower <= Math.min(load, LOWER_LOADS); lower++) {
                VariantResult[] both =
                        again(start, found.variant(), space.concurrencies().get(load - lower));
                if (both == null) {
                    break;
                }
                before = both[0];
                if (better(both[1], before)) {
                    return outcome(before, both[1]);
                }
                if (keeps(both[1]) || !keeps(before)) {
                    break;
                }
            }
        }
        return outcome(before, before);
    }

    /** The medians of both; null when interrupted. */
    private VariantResult @Nullable [] again(VariantResult start, ConfigVariant found, int concurrency) {
        List<VariantResult> one = new ArrayList<>();
        List<VariantResult> other = new ArrayList<>();
        for (int i = 0; i < CONFIRMATIONS; i++) {
            VariantResult first = target.measure(start.variant(), start.concurrency());
            VariantResult second = first == null ? null : target.measure(found, concurrency);
            if (first == null || second == null) {
                return null;
            }
            measurements += 2;
            one.add(first);
            other.add(second);
        }
        return new VariantResult[] {median(one), median(other)};
    }

    private Outcome outcome(VariantResult before, VariantResult after) {
        return new Outcome(before, after, List.copyOf(measured.values()), Map.copyOf(refused), measurements);
    }

    /** The median of the rates with the median of the latencies. */
    private static VariantResult median(List<VariantResult> results) {
        VariantResult any = results.get(0);
        return new VariantResult(
                any.variant(),
                any.concurrency(),
                results.stream().mapToDouble(VariantResult::rate).sorted().toArray()[results.size() / 2],
                results.stream()
                        .mapToDouble(VariantResult::latencyMillis)
                        .sorted()
                        .toArray()[results.size() / 2],
                results.stream().mapToLong(VariantResult::failed).sorted().toArray()[results.size() / 2]);
    }
}
