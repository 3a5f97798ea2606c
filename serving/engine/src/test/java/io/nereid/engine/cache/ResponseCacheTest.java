// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.CacheStore;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.engine.ensemble.RecordingJob;
import io.nereid.engine.ensemble.StubComposingModels.Ledger;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ResponseCacheTest {
    private static final ServableId ID = new ServableId("m", 1);
    private static final ModelConfig CONFIG =
            ModelConfig.builder("m").maxBatchSize(0).responseCache(true).build();

    private final Ledger ledger = new Ledger();
    private final List<Long> misses = new ArrayList<>();

    @AfterEach
    void everyTensorOfTheTestHasBeenFreed() {
        assertThat(ledger.open).hasValue(0);
    }

    @Test
    void anEqualRequestIsAnsweredFromTheCopyThatWasKept() {
        try (ResponseCache cache = ResponseCache.local(1 << 20, Hash128.seeded(1), Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            Played first = play(version, request(List.of(), Map.of(), x(1, 2)), 7);
            assertThat(first.computed).isTrue();
            assertThat(misses).hasSize(1);
            Played second = play(version, request(List.of(), Map.of(), x(1, 2)), 8);
            assertThat(second.computed).isFalse();
            assertThat(second.values).isEqualTo(first.values).containsExactly(7);
            assertThat(second.parameters).isEqualTo(Map.of("p", 7L));
            assertThat(misses).hasSize(1);
            assertThat(cache.statistics()).containsEntry("entries", 1L);
        }
    }

    @Test
    void aRequestThatDiffersInAnythingIsComputed() {
        List<List<RequestedOutput>> wanted =
                List.of(List.of(), List.of(new RequestedOutput("Y", 0)), List.of(new RequestedOutput("Y", 2)));
        try (ResponseCache cache = ResponseCache.local(1 << 20, Hash128.seeded(1), Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            int n = 0;
            for (List<RequestedOutput> outputs : wanted) {
                for (Map<String, Object> parameters : List.<Map<String, Object>>of(
                        Map.of(),
                        Map.of("a", 1L),
                        Map.of("a", 2L),
                        Map.of("a", "1"),
                        Map.of("a", true),
                        Map.of("a", 1.0))) {
                    assertThat(play(version, request(outputs, parameters, x(1, 2)), ++n).computed)
                            .isTrue();
                }
            }
            assertThat(play(version, request(List.of(), Map.of(), x(1, 3)), ++n).computed)
                    .isTrue();
            Tensor column = ledger.int32("X", Shape.of(2, 1), 1, 2);
            assertThat(play(version, request(List.of(), Map.of(), column), ++n).computed)
                    .isTrue();
            Tensor other = ledger.int32("Z", Shape.of(2), 1, 2);
            assertThat(play(version, request(List.of(), Map.of(), other), ++n).computed)
                    .isTrue();
            Tensor unsigned = ledger.tensor("X", DataType.UINT32, Shape.of(2), new byte[] {1, 0, 0, 0, 2, 0, 0, 0});
            assertThat(play(version, request(List.of(), Map.of(), unsigned), ++n).computed)
                    .isTrue();
            assertThat(cache.statistics()).containsEntry("entries", (long) n);
        }
    }

    @Test
    void theOrderInWhichInputsAndParametersAreGivenMakesNoDifference() {
        try (ResponseCache cache = ResponseCache.local(1 << 20, Hash128.seeded(1), Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            Tensor a = ledger.int32("A", Shape.of(1), 1);
            Tensor b = ledger.int32("B", Shape.of(1), 2);
            play(version, request(List.of(), Map.of("x", 1L, "y", 2L), a, b), 1);
            Tensor a2 = ledger.int32("A", Shape.of(1), 1);
            Tensor b2 = ledger.int32("B", Shape.of(1), 2);
            assertThat(play(version, request(List.of(), Map.of("y", 2L, "x", 1L), b2, a2), 2).computed)
                    .isFalse();
        }
    }

    @Test
    void requestsWhoseHashesMeetNeverGetEachOthersAnswers() {
        Hash128 broken = () -> new Hash128.State() {
            @Override
            public void add(ByteBuffer bytes) {}

            @Override
            public long high() {
                return 1;
            }

            @Override
            public long low() {
                return 1;
            }
        };
        try (ResponseCache cache = ResponseCache.local(1 << 20, broken, Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            for (int i = 0; i < 10; i++) {
                Played played = play(version, request(List.of(), Map.of(), x(i, i)), i);
                assertThat(played.computed).isTrue();
                assertThat(played.values).containsExactly(i);
            }
            Played again = play(version, request(List.of(), Map.of(), x(0, 0)), 99);
            assertThat(again.computed).isFalse();
            assertThat(again.values).containsExactly(0);
            assertThat(cache.statistics()).containsEntry("collisions", 9L).containsEntry("entries", 1L);
        }
    }

    @Test
    void theLeastRecentlyUsedIsGivenUpFirstAndTheBytesStayWithinTheSize() {
        try (ResponseCache cache = ResponseCache.local(3_000, Hash128.seeded(1), Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            play(version, request(List.of(), Map.of(), x(1, 1)), 1);
            play(version, request(List.of(), Map.of(), x(2, 2)), 2);
            play(version, request(List.of(), Map.of(), x(3, 3)), 3);
            play(version, request(List.of(), Map.of(), x(4, 4)), 4);
            assertThat(play(version, request(List.of(), Map.of(), x(1, 1)), 9).computed)
                    .isFalse();
            for (int i = 5; cache.statistics().get("evictions") == 0; i++) {
                play(version, request(List.of(), Map.of(), x(i, i)), i);
                assertThat(cache.statistics().get("bytes")).isLessThanOrEqualTo(3_000);
            }
            assertThat(play(version, request(List.of(), Map.of(), x(1, 1)), 9).computed)
                    .isFalse();
            assertThat(play(version, request(List.of(), Map.of(), x(2, 2)), 9).computed)
                    .isTrue();
        }
    }

    @Test
    void anAnswerThatIsTooLargeIsNotKept() {
        try (ResponseCache cache = ResponseCache.local(600, Hash128.seeded(1), Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            play(version, request(List.of(), Map.of(), x(new int[200])), 1);
            assertThat(cache.statistics()).containsEntry("entries", 0L).containsEntry("refused", 1L);
        }
    }

    @Test
    void aReloadBeginsWithNothingAndTheOldLoadTakesItsEntriesAlong() {
        try (ResponseCache cache = ResponseCache.local(1 << 20, Hash128.seeded(1), Clock.system())) {
            VersionResponseCache old = version(cache, "same");
            play(old, request(List.of(), Map.of(), x(1)), 1);
            VersionResponseCache next = version(cache, "same");
            Played played = play(next, request(List.of(), Map.of(), x(1)), 2);
            assertThat(played.computed).isTrue();
            old.close();
            assertThat(cache.statistics()).containsEntry("entries", 1L);
            assertThat(play(next, request(List.of(), Map.of(), x(1)), 3).values).containsExactly(2);
            next.close();
            assertThat(cache.statistics()).containsEntry("entries", 0L).containsEntry("bytes", 0L);
        }
    }

    @Test
    void aHitOutlivesItsEntryAndTheMemoryGoesWithTheLastOfThem() {
        LocalResponseCache cache = new LocalResponseCache(1 << 20);
        InferenceRequest request = request(List.of(), Map.of(), x(1));
        CacheKey key = CacheKey.of(new byte[0], request, Hash128.seeded(0));
        Tensor slab = ledger.int32("slab", Shape.of(4), 1, 2, 3, 4);
        Tensor small = slab.retainSlice(Shape.of(1), 4, 4);
        cache.put(this, key, List.of(small), Map.of());
        small.close();
        slab.close();
        assertThat(ledger.open)
                .as("the request's input is retained, the slab is not")
                .hasValue(1);
        CachedResponse answer = Objects.requireNonNull(cache.get(key));
        CachedResponse twin = Objects.requireNonNull(cache.get(key));
        MemoryRegion shared = answer.outputs().get(0).region();
        assertThat(twin.outputs().get(0).region()).as("no copy").isSameAs(shared);
        Tensor.closeAll(twin.outputs());
        cache.close();
        assertThat(answer.outputs().get(0).buffer().getInt()).isEqualTo(2);
        Tensor.closeAll(answer.outputs());
        assertThatThrownBy(() -> shared.getByte(0)).isInstanceOf(RuntimeException.class);
        request.release();
    }

    @Test
    void aModelWithManyAnswersOrWithMemoryIsNotCached() {
        ResponseCache cache = ResponseCache.local(1 << 20, Hash128.seeded(1), Clock.system());
        assertThat(cache.of(ID, CONFIG, "f", misses::add)).isNotNull();
        assertThat(cache.of(ID, CONFIG.toBuilder().responseCache(false).build(), "f", misses::add))
                .isNull();
        assertThat(cache.of(ID, CONFIG.toBuilder().decoupled(true).build(), "f", misses::add))
                .isNull();
    }

    @Test
    void invalidCacheSettingsAreRejected() {
        assertThatThrownBy(() -> ResponseCache.open("local", Map.of(), List.of(), Clock.system()))
                .hasMessage("the local response cache needs a size");
        assertThatThrownBy(() -> ResponseCache.open("local", Map.of("size", "-1"), List.of(), Clock.system()))
                .hasMessageContaining("'-1'");
        assertThatThrownBy(
                        () -> ResponseCache.open("local", Map.of("size", "1", "sise", "1"), List.of(), Clock.system()))
                .hasMessageContaining("'sise'");
        assertThatThrownBy(
                        () -> ResponseCache.open("local", Map.of("size", "" + (1L << 60)), List.of(), Clock.system()))
                .hasMessageContaining("three quarters");
        assertThatThrownBy(() -> ResponseCache.open("lokal", Map.of("size", "1"), List.of(), Clock.system()))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.remedy()).startsWith("this server has local"));
        ResponseCache.open("local", Map.of("size", "1000"), List.of(), Clock.system())
                .close();
    }

    @Test
    void anAnswerSurvivesItsBytesAndDamagedBytesAreNone() {
        Tensor numbers = ledger.int32("Y", Shape.of(2, 1), 3, 4);
        Tensor text = ledger.tensor("T", DataType.BYTES, Shape.of(1), new byte[] {1, 0, 0, 0, 'a'});
        Map<String, Object> parameters = Map.of("a", 1L, "b", "ü", "c", true, "d", 0.5);
        byte[] bytes = Objects.requireNonNull(CachedResponse.encode(List.of(numbers, text), parameters));
        numbers.close();
        text.close();
        CachedResponse answer = Objects.requireNonNull(CachedResponse.decode(bytes));
        assertThat(answer.parameters()).isEqualTo(parameters);
        assertThat(answer.outputs()).extracting(Tensor::toString).containsExactly("INT32[2,1] 'Y'", "BYTES[1] 'T'");
        assertThat(answer.outputs().get(0).buffer().getInt(4)).isEqualTo(4);
        Tensor.closeAll(answer.outputs());
        for (int length = 0; length < bytes.length; length++) {
            assertThat(CachedResponse.decode(Arrays.copyOf(bytes, length))).isNull();
        }
        Random random = new Random(5);
        for (int i = 0; i < 5_000; i++) {
            byte[] damaged = bytes.clone();
            damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
            CachedResponse read = CachedResponse.decode(damaged);
            if (read != null) {
                Tensor.closeAll(read.outputs());
            }
        }
    }

    @Test
    void everyByteOfAKeyMovesTheHash() {
        Hash128 hash = Hash128.seeded(42);
        Set<Long> highs = new HashSet<>();
        Set<Long> lows = new HashSet<>();
        int n = 0;
        for (int length = 0; length < 100; length++) {
            byte[] bytes = new byte[length];
            for (int bit = -1; bit < 8 * length; bit++) {
                if (bit >= 0) {
                    bytes[bit / 8] ^= (byte) (1 << bit % 8);
                }
                Hash128.State state = hash.begin();
                state.add(ByteBuffer.wrap(bytes));
                highs.add(state.high());
                lows.add(state.low());
                n++;
                if (bit >= 0) {
                    bytes[bit / 8] = 0;
                }
            }
        }
        assertThat(highs).hasSize(n);
        assertThat(lows).hasSize(n);
        assertThat(highs.stream().filter(h -> (h & 15) == 3).count()).isBetween(n / 32L, n / 8L);
    }

    @Test
    void manyThreadsSeeOnlyAnswersOfTheirOwnKeys() throws Exception {
        ThreadPoolExecutor pool = Threads.pool("cache", 4);
        try (ResponseCache cache = ResponseCache.local(20_000, Hash128.seeded(3), Clock.system())) {
            VersionResponseCache version = Objects.requireNonNull(cache.of(ID, CONFIG, "f", nanos -> {}));
            List<Future<?>> all = new ArrayList<>();
            for (int t = 0; t < 4; t++) {
                Random random = new Random(t);
                all.add(pool.submit(() -> {
                    for (int i = 0; i < 20_000; i++) {
                        int k = random.nextInt(60);
                        Played played = play(version, request(List.of(), Map.of(), x(k)), k);
                        assertThat(played.values).containsExactly(k);
                        if (i % 1_000 == 0) {
                            version.close();
                        }
                    }
                }));
            }
            for (Future<?> f : all) {
                f.get(60, TimeUnit.SECONDS);
            }
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void anExternalStoreRespondsLaterAndNoThreadWaits() {
        FakeStore store = new FakeStore();
        try (ResponseCache cache = ResponseCache.remote(store, Clock.system())) {
            VersionResponseCache version = version(cache, "f");
            Played first = play(version, request(List.of(), Map.of(), x(1)), 5);
            assertThat(first.computed).as("the store has not responded").isFalse();
            store.answer();
            assertThat(first.values).containsExactly(5);
            assertThat(store.kept).hasSize(1);
            VersionResponseCache elsewhere = version(cache, "f");
            Played second = play(elsewhere, request(List.of(), Map.of(), x(1)), 6);
            store.answer();
            assertThat(second.computed).isFalse();
            assertThat(second.values).containsExactly(5);
            Played other = play(version(cache, "changed"), request(List.of(), Map.of(), x(1)), 7);
            store.answer();
            assertThat(other.values).containsExactly(7);
            Played broken = play(version, request(List.of(), Map.of(), x(1)), 8);
            store.fail();
            assertThat(broken.values).as("without the store it is computed").containsExactly(8);
            version.close();
            assertThat(store.kept).as("other servers may use it").hasSize(2);
        }
    }

    @Test
    void anEnsemblesAnswersInAStoreOutsideAreFoundByTheSameLoadOnly() {
        FakeStore store = new FakeStore();
        ModelConfig ensemble = CONFIG.toBuilder()
                .ensemble(new EnsembleScheduling(List.of(), 0))
                .build();
        try (ResponseCache cache = ResponseCache.remote(store, Clock.system())) {
            VersionResponseCache load = Objects.requireNonNull(cache.of(ID, ensemble, "f", misses::add));
            VersionResponseCache next = Objects.requireNonNull(cache.of(ID, ensemble, "f", misses::add));
            Played first = play(load, request(List.of(), Map.of(), x(1)), 5);
            store.answer();
            Played again = play(load, request(List.of(), Map.of(), x(1)), 6);
            store.answer();
            Played anew = play(next, request(List.of(), Map.of(), x(1)), 7);
            store.answer();
            assertThat(first.values).containsExactly(5);
            assertThat(again.values).containsExactly(5);
            assertThat(anew.values).containsExactly(7);
        }
    }

    private VersionResponseCache version(ResponseCache cache, String fingerprint) {
        return Objects.requireNonNull(cache.of(ID, CONFIG, fingerprint, misses::add));
    }

    private Tensor x(int... values) {
        return ledger.int32("X", Shape.of(values.length), values);
    }

    private static InferenceRequest request(
            List<RequestedOutput> outputs, Map<String, Object> parameters, Tensor... tensors) {
        return new InferenceRequest(
                ModelRef.latest("m"), "", Arrays.asList(tensors), outputs, parameters, Long.MAX_VALUE, 0);
    }

    /** The outcome of a request to a model that returns one number. */
    private static final class Played {
        boolean computed;
        List<Integer> values = List.of();
        Map<String, Object> parameters = Map.of();
    }

    private Played play(VersionResponseCache cache, InferenceRequest request, int answer) {
        Played played = new Played();
        CacheJob job = new CacheJob(request, played);
        cache.serve(job, () -> {
            played.computed = true;
            job.complete(new ArrayList<>(List.of(ledger.int32("Y", Shape.of(1), answer))), Map.of("p", (long) answer));
        });
        return played;
    }

    /** Ends as the server's job does: stores the response first, then closes the inputs. */
    private static final class CacheJob implements CacheableJob {
        private final RecordingJob job;
        private final InferenceRequest request;
        private final Played played;
        private @Nullable ResponseCacheWriter keeper;

        CacheJob(InferenceRequest request, Played played) {
            this.job = new RecordingJob(request);
            this.request = request;
            this.played = played;
        }

        @Override
        public void cached(List<Tensor> outputs, Map<String, Object> parameters, long lookupNanos) {
            end(outputs, parameters);
        }

        @Override
        public void cacheWriter(ResponseCacheWriter value) {
            keeper = value;
        }

        @Override
        public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
            if (keeper != null) {
                keeper.write(outputs, parameters);
            }
            end(outputs, parameters);
        }

        private void end(List<Tensor> outputs, Map<String, Object> parameters) {
            played.values = outputs.stream().map(t -> t.buffer().getInt(0)).toList();
            played.parameters = parameters;
            job.complete(outputs, parameters);
        }

        @Override
        public InferenceRequest request() {
            return request;
        }

        @Override
        public int batchSize() {
            return 1;
        }

        @Override
        public void respond(List<Tensor> outputs, Map<String, Object> parameters) {}

        @Override
        public void fail(ServingException e) {
            job.fail(e);
        }
    }

    /** A store that responds when the test completes it. */
    private static final class FakeStore implements CacheStore {
        final Map<ByteBuffer, byte[]> kept = new HashMap<>();
        private final List<Runnable> asked = new ArrayList<>();
        private final List<CompletableFuture<byte @Nullable []>> open = new ArrayList<>();

        @Override
        public CompletionStage<byte @Nullable []> get(byte[] key) {
            CompletableFuture<byte @Nullable []> future = new CompletableFuture<>();
            open.add(future);
            asked.add(() -> future.complete(kept.get(ByteBuffer.wrap(key))));
            return future;
        }

        void answer() {
            open.clear();
            asked.remove(0).run();
        }

        void fail() {
            asked.clear();
            open.remove(0).completeExceptionally(new IllegalStateException("no store"));
        }

        @Override
        public void put(byte[] key, byte[] value) {
            kept.put(ByteBuffer.wrap(key), value);
        }

        @Override
        public void purge(byte[] keyPrefix) {
            kept.keySet()
                    .removeIf(k -> k.remaining() >= keyPrefix.length
                            && k.slice(0, keyPrefix.length).equals(ByteBuffer.wrap(keyPrefix)));
        }

        @Override
        public Map<String, Long> statistics() {
            return Map.of("entries", (long) kept.size());
        }

        @Override
        public void close() {}
    }
}
