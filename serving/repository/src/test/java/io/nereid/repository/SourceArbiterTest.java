// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.repository.Fakes.FakeLoader;
import io.nereid.repository.Fakes.Recorder;
import io.nereid.repository.SourceArbiter.Conflict;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import io.nereid.spi.Source.Target;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;

class SourceArbiterTest {
    /** A provider of models. */
    private static final class Registry {
        final Map<String, List<Long>> models = new LinkedHashMap<>();
        BiConsumer<String, List<Long>> listener = (model, versions) -> {};

        void put(String model, Long... versions) {
            models.put(model, List.of(versions));
            listener.accept(model, List.of(versions));
        }
    }

    /** A custom source, as in the documentation of {@link Source}. */
    private record RegistrySource(Registry registry) implements Source {
        @Override
        public void start(Target target) {
            registry.listener = (model, versions) -> emit(target, model, versions);
            registry.models.forEach((model, versions) -> emit(target, model, versions));
        }

        private static void emit(Target target, String model, List<Long> versions) {
            target.aspire(
                    model,
                    versions.stream()
                            .map(v -> AspiredVersion.of(loader(model, v)))
                            .toList());
        }

        @Override
        public void close() {
            registry.listener = (model, versions) -> {};
        }
    }

    private static FakeLoader loader(String model, long version) {
        return new FakeLoader(
                new ServableId(model, version), "f" + version, ModelConfig.unspecified(model), Path.of("/"));
    }

    private final Recorder manager = new Recorder();
    private final SourceArbiter gate = new SourceArbiter(manager);
    private final Registry first = new Registry();
    private final Registry second = new Registry();

    private void start() {
        gate.start("the first", new RegistrySource(first));
        gate.start("the second", new RegistrySource(second));
    }

    @Test
    void aSourceOfOnesOwnFeedsTheTargetUntilItIsClosed() {
        first.put("a", 1L, 2L);
        Source source = new RegistrySource(first);
        gate.start("registry", source);
        assertThat(manager.last("a").loadable()).containsExactly(1L, 2L);
        first.put("b", 5L);
        assertThat(manager.last("b").loadable()).containsExactly(5L);
        first.put("b");
        assertThat(manager.last("b").versions()).isEmpty();
        source.close();
        first.put("c", 1L);
        assertThat(manager.count("c")).isZero();
    }

    @Test
    void modelsOfBothSourcesAreServed() {
        first.put("a", 1L);
        second.put("b", 1L);
        start();
        assertThat(gate.owner("a")).isEqualTo("the first");
        assertThat(gate.owner("b")).isEqualTo("the second");
        assertThat(gate.owner("c")).isNull();
        assertThat(gate.conflicts()).isEmpty();
        assertThat(manager.all).hasSize(2);
    }

    @Test
    void theSourceThatNamedAModelFirstOwnsIt() {
        first.put("a", 1L);
        second.put("a", 7L);
        start();
        second.put("a", 8L);
        assertThat(manager.count("a")).isEqualTo(1);
        assertThat(manager.last("a").loadable()).containsExactly(1L);
        assertThat(gate.conflicts()).containsExactly(new Conflict("a", "the first", "the second"));
        assertThat(gate.conflicts().get(0))
                .hasToString(
                        "model 'a' of the second is not served, because the first named a model of that name first");
        first.put("a", 2L);
        assertThat(manager.last("a").loadable()).containsExactly(2L);
    }

    @Test
    void aModelThatItsOwnerLetsGoIsServedFromTheOtherWithItsLatestList() {
        first.put("a", 1L);
        second.put("a", 7L);
        start();
        second.put("a", 8L);
        first.put("a");
        assertThat(manager.last("a").loadable()).containsExactly(8L);
        assertThat(manager.all).noneMatch(e -> e.versions().isEmpty());
        assertThat(gate.owner("a")).isEqualTo("the second");
        assertThat(gate.conflicts()).isEmpty();
        first.put("a", 9L);
        assertThat(manager.last("a").loadable()).containsExactly(8L);
    }

    @Test
    void aSourceThatGivesUpAModelOfAnotherUnloadsNothing() {
        first.put("a", 1L);
        second.put("a", 7L);
        start();
        second.put("a");
        assertThat(manager.count("a")).isEqualTo(1);
        assertThat(gate.conflicts()).isEmpty();
        first.put("a");
        assertThat(manager.last("a").versions()).isEmpty();
        assertThat(gate.owner("a")).isNull();
    }

    @Test
    void whoeverIsFirstTheTargetHearsOfOneSourceOnly() throws Exception {
        for (int round = 0; round < 200; round++) {
            Recorder target = new Recorder();
            SourceArbiter raced = new SourceArbiter(target);
            CyclicBarrier barrier = new CyclicBarrier(2);
            Target one = raced.as("one");
            Target two = raced.as("two");
            Thread other = new Thread(() -> {
                await(barrier);
                two.aspire("a", List.of(AspiredVersion.of(loader("a", 2))));
            });
            other.start();
            await(barrier);
            one.aspire("a", List.of(AspiredVersion.of(loader("a", 1))));
            other.join();
            assertThat(target.all).hasSize(1);
            assertThat(raced.conflicts()).hasSize(1);
        }
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }
}
