// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.app.tune.SimulatedModel.ServiceTime;
import io.nereid.app.tune.VariantSearch.Outcome;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class VariantSearchTest {
    private static final int CORES = 4;

    private static final SearchSpace SPACE = new SearchSpace(
            List.of(1, 2, 4, 8, 16, 32, 64),
            List.of(0L, 100L, 500L, 1000L, 2000L, 5000L),
            List.of(1, 2, 3, 4, 6, 8),
            List.of(1, 2, 4),
            SearchSpace.steps(128));

    private static ServiceTime model(String name) {
        return switch (name) {
            case "iris" -> new ServiceTime(4.1, 0.1, 0.97, 60, 0.166);
            case "minilm" -> new ServiceTime(910.6, 4927.9, 0.70, 80, 0.065);
            case "ocr_rec" -> new ServiceTime(0, 15669.3, 0.48, 300, 0.050);
            case "simple" -> new ServiceTime(3.5, 0.02, 1, 60, 0.202);
            // Not a real one: batches gain much, and their best size is far from the first.
            default -> new ServiceTime(6000, 150, 0.4, 80, 0.08);
        };
    }

    @ParameterizedTest
    @CsvSource({
        "iris, 0.4, 1",
        "iris, 1, 2",
        "minilm, 20, 3",
        "minilm, 60, 4",
        "ocr_rec, 60, 5",
        "ocr_rec, 200, 6",
        "simple, 0.4, 7",
        "simple, 1, 8",
        "fixed, 15, 9",
        "fixed, 50, 10"
    })
    void theBestOfTheGridIsFoundInAFifthOfItsMeasurements(String name, double limit, long seed) {
        ServiceTime time = model(name);
        ConfigVariant first = new ConfigVariant(4, 0, CORES, 1);
        SimulatedModel target = SimulatedModel.of(time, CORES, seed);
        Outcome outcome =
                Objects.requireNonNull(new VariantSearch(SPACE, limit, CORES, target, () -> false).search(first));

        double found = exact(time, outcome.after(), seed).rate();
        double best = bestOfGrid(time, limit, seed);
        assertThat(found).isGreaterThanOrEqualTo(0.95 * best);
        assertThat((double) target.measurements()).isLessThanOrEqualTo(0.2 * SPACE.measurements());
        assertThat(found)
                .isGreaterThanOrEqualTo(exact(time, outcome.before(), seed).rate() * 0.99);
    }

    @Test
    void differencesOfMeasurementsAreNotAnImprovement() {
        int[] measured = {0};
        VariantTarget target =
                (variant, concurrency) -> new VariantResult(variant, concurrency, 1000 + ++measured[0] % 2 * 15, 5, 0);
        ConfigVariant first = new ConfigVariant(4, 0, CORES, 1);
        Outcome outcome =
                Objects.requireNonNull(new VariantSearch(SPACE, 10, CORES, target, () -> false).search(first));
        assertThat(outcome.improved()).isFalse();
        assertThat(outcome.after().variant()).isEqualTo(first);
    }

    @Test
    void whatIsBetterOnlyOnceIsNotProposed() {
        ConfigVariant lucky = new ConfigVariant(8, 0, CORES, 1);
        int[] seen = {0};
        VariantTarget target = (variant, concurrency) ->
                new VariantResult(variant, concurrency, variant.equals(lucky) && ++seen[0] == 1 ? 2000 : 1000, 5, 0);
        ConfigVariant first = new ConfigVariant(4, 0, CORES, 1);
        Outcome outcome =
                Objects.requireNonNull(new VariantSearch(SPACE, 10, CORES, target, () -> false).search(first));
        assertThat(seen[0]).isGreaterThan(1);
        assertThat(outcome.improved()).isFalse();
    }

    @Test
    void aConfigurationThatCannotBeLoadedIsLeftOut() {
        VariantTarget target = (variant, concurrency) -> {
            if (variant.threads() > 1) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "no memory");
            }
            return new VariantResult(variant, concurrency, 1000 + 100 * variant.batchSize(), 5, 0);
        };
        Outcome outcome = Objects.requireNonNull(
                new VariantSearch(SPACE, 10, CORES, target, () -> false).search(new ConfigVariant(4, 0, CORES, 1)));
        assertThat(outcome.after().variant().batchSize()).isEqualTo(64);
        assertThat(outcome.refused()).isNotEmpty().allSatisfy((variant, why) -> {
            assertThat(variant.threads()).isGreaterThan(1);
            assertThat(why).isEqualTo("no memory");
        });
    }

    @Test
    void whenTheTimeIsUpTheBestSoFarIsProposed() {
        SimulatedModel target = SimulatedModel.of(model("fixed"), CORES, 1);
        Outcome outcome =
                Objects.requireNonNull(new VariantSearch(SPACE, 15, CORES, target, () -> target.measurements() >= 20)
                        .search(new ConfigVariant(4, 0, CORES, 1)));
        assertThat(outcome.improved()).isTrue();
        assertThat(outcome.after().rate()).isGreaterThan(outcome.before().rate());
        assertThat(target.measurements()).isLessThan(40);
    }

    /** The rate of the best configuration and load within the limit: the promising ones of a quick pass, measured long. */
    private static double bestOfGrid(ServiceTime time, double limit, long seed) {
        SimulatedModel quick = new SimulatedModel(time, CORES, 99, 300, seed);
        List<VariantResult> all = new ArrayList<>();
        for (int size : SPACE.batchSizes()) {
            for (long delay : SPACE.delays()) {
                for (int count : SPACE.instances()) {
                    for (int threads : SPACE.threads()) {
                        for (int load : SPACE.concurrencies()) {
                            VariantResult result = quick.measure(new ConfigVariant(size, delay, count, threads), load);
                            if (result.latencyMillis() > 2 * limit) {
                                break;
                            }
                            all.add(result);
                        }
                    }
                }
            }
        }
        all.removeIf(result -> !result.keeps(limit));
        return all.stream()
                .sorted(Comparator.comparingDouble(VariantResult::rate).reversed())
                .limit(30)
                .map(result -> exact(time, result, seed))
                .filter(result -> result.keeps(limit))
                .mapToDouble(VariantResult::rate)
                .max()
                .orElse(0);
    }

    private static VariantResult exact(ServiceTime time, VariantResult of, long seed) {
        return new SimulatedModel(time, CORES, 99, 20_000, seed + 1000).measure(of.variant(), of.concurrency());
    }
}
