// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

final class PoolPlacementTest {
    private static final long SECOND = 1_000_000_000L;

    /** A pool whose loads and unloads end when the test says so; it keeps its own account of the memory. */
    private static final class Pool {
        private final PoolPlacement placement = new PoolPlacement(PlacementSettings.DEFAULT);
        private final Map<String, Long> used = new TreeMap<>();
        private final Map<String, Long> limits = new HashMap<>();
        private final Map<String, Integer> loading = new HashMap<>();
        private final List<PlacementAction> open = new ArrayList<>();
        private final List<String> loads = new ArrayList<>();
        private final Random random = new Random(7);
        private long now;

        void join(String pod, long bytes) {
            limits.put(pod, bytes);
            placement.join(new PooledPod(pod, bytes, 4, 2), now);
        }

        void take() {
            for (PlacementAction action : placement.actions(now)) {
                open.add(action);
                if (action.kind() == PlacementAction.Kind.LOAD) {
                    long sum = used.merge(action.pod(), action.bytes(), Long::sum);
                    assertThat(sum).as("bytes on %s", action.pod()).isLessThanOrEqualTo(limits.get(action.pod()));
                    assertThat(loading.merge(action.pod(), 1, Integer::sum)).isLessThanOrEqualTo(2);
                    loads.add(action.model());
                }
            }
        }

        /** Ends what runs, until nothing runs. */
        void settle() {
            take();
            while (!open.isEmpty()) {
                finish(open.remove(0));
                take();
            }
        }

        void finish(PlacementAction action) {
            if (action.kind() == PlacementAction.Kind.LOAD) {
                loading.merge(action.pod(), -1, Integer::sum);
                placement.loaded(action.model(), action.pod(), action.bytes(), now);
            } else {
                used.merge(action.pod(), -action.bytes(), Long::sum);
                placement.unloaded(action.model(), action.pod(), now);
            }
        }

        /** One request, with loading when it must be. */
        void serve(String model) {
            ModelCopy copy = placement.table().acquire(model, random.nextLong(), now);
            if (copy == null) {
                placement.request(model, now);
                settle();
                copy = placement.table().acquire(model, random.nextLong(), now);
            }
            assertThat(copy).as(model).isNotNull();
            copy.release(10_000_000);
        }

        void tick(int seconds) {
            now += seconds * SECOND;
            placement.tick(now);
            settle();
        }
    }

    private static Pool pool(int pods, int models, long bytes) {
        Pool pool = new Pool();
        for (int i = 0; i < pods; i++) {
            pool.join("pod-" + i, 1_000);
        }
        for (int i = 0; i < models; i++) {
            pool.placement.add(new PooledModel("m" + i, bytes, false), 0);
        }
        pool.tick(1);
        return pool;
    }

    private static List<String> on(Pool pool, String pod, int models) {
        List<String> found = new ArrayList<>();
        for (int i = 0; i < models; i++) {
            if (pool.placement.table().pods("m" + i).contains(pod)) {
                found.add("m" + i);
            }
        }
        return found;
    }

    @Test
    void theLeastRecentlyUsedGoesAndWhatIsInUseStays() {
        Pool pool = pool(1, 12, 100);
        ModelCopy held = null;
        for (int i = 0; i < 10; i++) {
            pool.now += SECOND;
            pool.serve("m" + i);
            if (i == 0) {
                held = pool.placement.table().acquire("m0", 0, pool.now);
            }
        }
        pool.now += SECOND;
        pool.serve("m10");
        assertThat(pool.placement.table().pods("m0")).as("in use").isNotEmpty();
        assertThat(pool.placement.table().pods("m1")).as("the oldest idle one").isEmpty();
        assertThat(pool.placement.table().pods("m2")).isNotEmpty();
        assertThat(held).isNotNull();
        held.release(1);
    }

    @Test
    void aLoadWaitsForTheEndOfTheUnload() {
        Pool pool = pool(1, 11, 100);
        for (int i = 0; i < 10; i++) {
            pool.serve("m" + i);
        }
        pool.placement.request("m10", pool.now);
        List<PlacementAction> first = pool.placement.actions(pool.now);
        assertThat(first).extracting(PlacementAction::kind).containsExactly(PlacementAction.Kind.UNLOAD);
        assertThat(pool.placement.actions(pool.now)).isEmpty();
        pool.placement.unloaded(first.get(0).model(), "pod-0", pool.now);
        assertThat(pool.placement.actions(pool.now))
                .containsExactly(new PlacementAction(PlacementAction.Kind.LOAD, "m10", "pod-0", 100));
    }

    @Test
    void whatFitsNowhereIsRefusedWithFigures() {
        Pool pool = pool(2, 1, 1_001);
        assertThatThrownBy(() -> pool.placement.request("m0", pool.now))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED))
                .hasMessageContaining("needs 1001 bytes, and none of 2 pods can free that")
                .hasMessageContaining("1000 of 1000 bytes free, 0 in use, 0 pinned");
        pool.placement.add(new PooledModel("fixed", 900, true), pool.now);
        pool.placement.add(new PooledModel("fixed-too", 900, true), pool.now);
        pool.settle();
        pool.placement.add(new PooledModel("late", 200, false), pool.now);
        assertThatThrownBy(() -> pool.placement.request("late", pool.now)).hasMessageContaining("900 pinned");
        assertThatThrownBy(() -> pool.placement.request("other", pool.now))
                .hasMessageContaining("the pool has no model 'other'");
    }

    @Test
    void aModelThatIsLargerThanDeclaredMakesOthersGo() {
        Pool pool = pool(1, 11, 100);
        for (int i = 0; i < 9; i++) {
            pool.now += SECOND;
            pool.serve("m" + i);
        }
        pool.placement.request("m9", pool.now);
        pool.placement.actions(pool.now);
        pool.placement.loaded("m9", "pod-0", 250, pool.now);
        assertThat(pool.placement.actions(pool.now))
                .extracting(PlacementAction::model)
                .containsExactly("m0", "m1");
    }

    @Test
    void loadAddsCopiesAndItsEndRemovesThem() {
        Pool pool = pool(8, 4, 100);
        pool.serve("m0");
        for (int s = 0; s < 60; s += 2) {
            // 200 requests of 10 ms a second are 2 busy workers.
            for (int i = 0; i < 400; i++) {
                pool.serve("m0");
            }
            pool.tick(2);
        }
        int copies = pool.placement.table().pods("m0").size();
        assertThat(copies).isBetween(4, 6);
        for (int s = 0; s < 3_000; s += 2) {
            pool.tick(2);
        }
        assertThat(pool.placement.table().pods("m0")).hasSize(1);
    }

    @Test
    void ofALostPodModelsInUseComeBackInTheOrderOfTheirRates() {
        Pool pool = pool(5, 30, 100);
        for (int i = 0; i < 30; i++) {
            pool.serve("m" + i);
        }
        pool.tick(700);
        for (int i = 0; i < 15; i++) {
            for (int n = 0; n <= i; n++) {
                pool.serve("m" + i);
            }
        }
        pool.tick(2);
        List<String> lost = on(pool, "pod-2", 30);
        lost.removeIf(model -> pool.placement.table().pods(model).size() > 1);
        List<String> used = new ArrayList<>(lost);
        used.removeIf(model -> Integer.parseInt(model.substring(1)) >= 15);
        assertThat(used).isNotEmpty();
        pool.loads.clear();
        pool.placement.lost("pod-2", pool.now);
        pool.settle();
        assertThat(pool.loads).containsExactlyInAnyOrderElementsOf(used);
        for (String model : used) {
            assertThat(pool.placement.table().pods(model))
                    .as(model)
                    .isNotEmpty()
                    .doesNotContain("pod-2");
        }
    }

    @Test
    void aNewPodTakesWhatIsItsOwnAndTheOldCopyServesMeanwhile() {
        int models = 200;
        Pool pool = pool(10, models, 20);
        for (int i = 0; i < models; i++) {
            pool.serve("m" + i);
        }
        pool.tick(2);
        Map<String, List<String>> before = new TreeMap<>();
        for (int i = 0; i < models; i++) {
            before.put("m" + i, pool.placement.table().pods("m" + i));
        }
        pool.loads.clear();
        pool.join("pod-new", 1_000);
        pool.take();
        before.forEach(
                (model, pods) -> assertThat(pool.placement.table().pods(model)).isEqualTo(pods));
        pool.settle();
        assertThat(pool.loads.size()).isBetween(8, 30);
        before.forEach((model, pods) -> {
            List<String> after = pool.placement.table().pods(model);
            assertThat(after).as(model).isNotEmpty();
            if (!pool.loads.contains(model)) {
                assertThat(after).as(model).isEqualTo(pods);
            }
        });
    }

    @Test
    void aDrainedPodGivesUpNothingBeforeItIsElsewhere() {
        Pool pool = pool(4, 20, 100);
        for (int i = 0; i < 20; i++) {
            pool.serve("m" + i);
        }
        List<String> there = on(pool, "pod-1", 20);
        assertThat(there).isNotEmpty();
        pool.placement.drain("pod-1", pool.now);
        pool.take();
        assertThat(on(pool, "pod-1", 20)).isEqualTo(there);
        assertThat(pool.placement.isDrained("pod-1")).isFalse();
        for (int i = 0; i < 30 && !pool.placement.isDrained("pod-1"); i++) {
            pool.tick(2);
            for (String model : there) {
                assertThat(pool.placement.table().pods(model)).as(model).isNotEmpty();
            }
        }
        assertThat(pool.placement.isDrained("pod-1")).isTrue();
        assertThat(on(pool, "pod-1", 20)).isEmpty();
    }

    @Test
    void aDrainEndsInTimeAlthoughOtherLoadsGoFirst() {
        Pool pool = pool(2, 8, 100);
        for (int i = 0; i < 8; i++) {
            pool.serve("m" + i);
        }
        assertThat(on(pool, "pod-1", 8)).isNotEmpty();
        pool.placement.drain("pod-1", pool.now);
        for (int second = 0; second < 20; second++) {
            // Loads start and never end, so that nothing moves.
            assertThat(on(pool, "pod-1", 8)).as("after %s s", second).isNotEmpty();
            pool.now += SECOND;
            pool.placement.tick(pool.now);
            pool.take();
        }
        assertThat(on(pool, "pod-1", 8)).isEmpty();
        pool.settle();
        pool.serve("m0");
        assertThat(pool.placement.isDrained("pod-1")).isTrue();
    }

    @Test
    void theOnlyPodServesOnWhileItDrains() {
        Pool pool = pool(1, 3, 100);
        for (int i = 0; i < 3; i++) {
            pool.serve("m" + i);
        }
        pool.placement.drain("pod-0", pool.now);
        pool.tick(5);
        assertThat(on(pool, "pod-0", 3)).hasSize(3);
        pool.join("pod-1", 1_000);
        pool.tick(2);
        pool.tick(2);
        assertThat(on(pool, "pod-1", 3)).hasSize(3);
        assertThat(pool.placement.isDrained("pod-0")).isTrue();
    }

    @Test
    void aFailedLoadIsTriedOnAnotherPod() {
        Pool pool = pool(3, 1, 100);
        String first = pool.placement.request("m0", pool.now);
        pool.placement.actions(pool.now);
        pool.placement.loadFailed("m0", first, pool.now);
        assertThat(pool.placement.request("m0", pool.now)).isNotEqualTo(first);
    }

    @Test
    void theSameCallsGiveTheSameActions() {
        List<List<String>> runs = new ArrayList<>();
        for (int run = 0; run < 2; run++) {
            Pool pool = pool(6, 100, 90);
            Random random = new Random(3);
            for (int i = 0; i < 2_000; i++) {
                pool.serve("m" + (int) (100 * random.nextDouble() * random.nextDouble()));
                if (i % 50 == 0) {
                    pool.tick(2);
                }
                if (i == 1_000) {
                    pool.placement.lost("pod-3", pool.now);
                    pool.used.remove("pod-3");
                }
            }
            runs.add(pool.loads);
        }
        assertThat(runs.get(0)).isEqualTo(runs.get(1)).hasSizeGreaterThan(100);
        assertThat(new TreeSet<>(runs.get(0))).hasSizeGreaterThan(90);
    }

    @Test
    void ofTwoCopiesTheLessLoadedPodIsTaken() {
        PoolPlacement placement = new PoolPlacement(PlacementSettings.DEFAULT);
        assertThat(placement.table().acquire("m", 1, 0)).isNull();
        CopyTable table = new CopyTable();
        PodLoad busy = new PodLoad(new PooledPod("busy", 1, 1, 1));
        PodLoad free = new PodLoad(new PooledPod("free", 1, 1, 1));
        ModelUsage usage = new ModelUsage(0);
        ModelCopy one = new ModelCopy("m", busy, usage, 0);
        table.add(one);
        table.add(new ModelCopy("m", free, usage, 0));
        busy.begin();
        Random random = new Random(1);
        for (int i = 0; i < 100; i++) {
            ModelCopy copy = table.acquire("m", random.nextLong(), i);
            assertThat(copy).isNotNull();
            assertThat(copy.pod()).isEqualTo("free");
            copy.release(1);
        }
        assertThat(one.closeIfIdle()).isTrue();
        free.begin();
        free.begin();
        ModelCopy copy = table.acquire("m", 5, 0);
        assertThat(copy).isNotNull();
        assertThat(copy.pod()).as("a closed copy takes nothing").isEqualTo("free");
        assertThat(copy.closeIfIdle()).as("in use").isFalse();
    }
}
