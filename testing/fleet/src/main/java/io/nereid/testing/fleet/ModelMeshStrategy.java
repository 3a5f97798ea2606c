// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * The rules of ModelMesh (kserve/modelmesh, archived in 2026), with its default numbers, and with a view of the pods that is
 * never stale:
 *
 * <ul>
 *   <li>a missing model goes to a random one of the best pods: while pods have free memory, those with the fewest models and
 *       most of the free memory; otherwise those whose least recently used model is oldest, within 45 s or a tenth of the age
 *   <li>among copies the pod with the fewest requests in flight
 *   <li>every 10 s: more copies of a model with over 2,000 requests a minute and copy, a third of the pods at most; a second
 *       copy of a model that was also used 7 to 40 minutes before, while a tenth of all memory is free or nothing younger than
 *       20 hours is evicted
 *   <li>every 6 minutes, while less than a twentieth is free: a second copy goes that was not used for a tenth of the age of
 *       what is evicted; of more copies one goes when the others can carry the rate
 *   <li>every 7 minutes the leader loads models that are not loaded into free memory, the most recently used first: so a lost
 *       pod's models come back by requests until then
 *   <li>a pod that ends has its models of the last hour loaded elsewhere first
 * </ul>
 */
final class ModelMeshStrategy implements FleetStrategy {
    private static final long SECOND = 1_000_000_000L;
    private static final int SCALE_UP_RPM = 2_000;
    private static final int RATE_SECONDS = 10;
    private static final int JANITOR_SECONDS = 360;
    private static final int REAPER_SECONDS = 420;
    private static final long SECOND_COPY_MIN = 420 * SECOND;
    private static final long SECOND_COPY_MAX = 2_400 * SECOND;
    private static final long SECOND_COPY_AGE = 72_000 * SECOND;
    private static final long MIGRATED_AGE = 3_600 * SECOND;
    private static final double RECOVERED_SHARE = 0.9;

    private final FleetScenario scenario;
    private final FleetWorkload workload;
    private final LruPods caches;
    private final Random random;
    private final List<List<Integer>> copies = new ArrayList<>();
    private final Map<Integer, Integer> counts = new HashMap<>();
    private final long[] lastUsed;
    private final long[] earlierUse;
    private final int[] rpm;
    private final List<int[]> evictions = new ArrayList<>();
    private int ticks;

    ModelMeshStrategy(FleetScenario scenario, FleetWorkload workload) {
        this.scenario = scenario;
        this.workload = workload;
        this.caches = new LruPods(scenario, workload);
        this.random = new Random(scenario.seed() + 2);
        this.lastUsed = new long[scenario.models()];
        this.earlierUse = new long[scenario.models()];
        this.rpm = new int[scenario.models()];
        for (int i = 0; i < scenario.models(); i++) {
            copies.add(new ArrayList<>(1));
            lastUsed[i] = -1;
            earlierUse[i] = -1;
        }
    }

    @Override
    public String name() {
        return "ModelMesh's rules";
    }

    @Override
    public void joined(int pod, long now) {
        caches.pods.put(pod, new LruPods.Pod(pod));
    }

    @Override
    public void lost(int pod, long now) {
        caches.pods.remove(pod);
        copies.forEach(pods -> pods.removeIf(copy -> copy == pod));
    }

    @Override
    public void drain(int pod, long now) {
        LruPods.Pod leaving = caches.pods.get(pod);
        if (leaving == null) {
            return;
        }
        leaving.draining = true;
        List<Integer> waiting = new ArrayList<>(leaving.waiting);
        leaving.waiting.clear();
        leaving.coming.removeAll(waiting);
        waiting.forEach(model -> place(model, now));
        // The most recently used first: the map has them last.
        List<Integer> models = new ArrayList<>(leaving.loaded.keySet());
        for (int i = models.size() - 1; i >= 0; i--) {
            int model = models.get(i);
            if (now - lastUsed[model] <= MIGRATED_AGE && copies.get(model).size() == 1) {
                place(model, now);
            }
        }
    }

    @Override
    public boolean drained(int pod) {
        LruPods.Pod leaving = caches.pods.get(pod);
        if (leaving == null) {
            return true;
        }
        for (int model : leaving.loaded.keySet()) {
            if (copies.get(model).size() == 1 && isComing(model)) {
                return false;
            }
        }
        leaving.loaded.keySet().forEach(model -> copies.get(model).removeIf(copy -> copy == pod));
        return leaving.requests == 0;
    }

    @Override
    public int route(int model, long bits, long now) {
        LruPods.Pod best = null;
        for (int number : copies.get(model)) {
            LruPods.Pod pod = caches.pods.get(number);
            if (pod != null && (best == null || pod.requests < best.requests)) {
                best = pod;
            }
        }
        if (best == null || !caches.begin(best, model, now)) {
            return -1;
        }
        counts.merge(model, 1, Integer::sum);
        return best.number;
    }

    @Override
    public void missed(int model, long now) {
        lastUsed[model] = now;
        if (!isComing(model)) {
            place(model, now);
        }
    }

    @Override
    public void done(int model, int pod, long busyNanos, long now) {
        caches.end(pod, model);
    }

    @Override
    public void loaded(int model, int pod, long now) {
        LruPods.Pod on = caches.pods.get(pod);
        if (on != null) {
            caches.loaded(on, model, Math.max(0, lastUsed[model]));
            copies.get(model).add(pod);
        }
    }

    @Override
    public void unloaded(int model, int pod, long now) {
        LruPods.Pod on = caches.pods.get(pod);
        if (on != null) {
            caches.unloaded(on, model);
        }
    }

    @Override
    public void tick(long now) {
        ticks++;
        int seconds = 2 * ticks;
        if (seconds % RATE_SECONDS == 0) {
            trackRates(now);
        }
        if (seconds % JANITOR_SECONDS == 0) {
            removeCopies(now);
        }
        if (seconds % REAPER_SECONDS == 0) {
            loadIntoFreeMemory(now);
        }
    }

    private void trackRates(long now) {
        double free = free();
        boolean second = free >= 0.1 || now - globalOldest(now) > SECOND_COPY_AGE;
        Arrays.fill(rpm, 0);
        counts.forEach((model, count) -> {
            rpm[model] = count * 60 / RATE_SECONDS;
            int have = copies.get(model).size();
            if (earlierUse[model] < 0 || now - earlierUse[model] > SECOND_COPY_MAX) {
                boolean recent = lastUsed[model] >= 0 && now - lastUsed[model] <= SECOND_COPY_MAX;
                earlierUse[model] = recent ? lastUsed[model] : now;
            }
            boolean regular = now - earlierUse[model] >= SECOND_COPY_MIN;
            lastUsed[model] = now;
            if (have == 1 && regular && second) {
                place(model, now);
            } else if (have > 0 && rpm[model] / have >= SCALE_UP_RPM && !isComing(model)) {
                int more = Math.min(rpm[model] / have / SCALE_UP_RPM, Math.max(2, caches.pods.size() / 3));
                for (int i = 0; i < more; i++) {
                    place(model, now);
                }
            }
        });
        counts.clear();
    }

    private void removeCopies(long now) {
        if (free() > 0.05) {
            return;
        }
        long age = now - globalOldest(now);
        for (int model = 0; model < scenario.models(); model++) {
            List<Integer> on = copies.get(model);
            boolean idle = on.size() == 2 && now - lastUsed[model] > age / 10;
            boolean light = on.size() > 2 && rpm[model] < SCALE_UP_RPM * 3 / 4 * (on.size() - 1);
            if (idle || light) {
                int least = on.get(0);
                for (int pod : on) {
                    if (oldest(pod, now) > oldest(least, now)) {
                        least = pod;
                    }
                }
                int chosen = least;
                on.removeIf(pod -> pod == chosen);
                evictions.add(new int[] {model, least});
            }
        }
    }

    private void loadIntoFreeMemory(long now) {
        double budget = (free() - (1 - RECOVERED_SHARE)) * scenario.podBytes() * caches.pods.size();
        List<Integer> gone = new ArrayList<>();
        for (int model = 0; model < scenario.models(); model++) {
            if (copies.get(model).isEmpty() && !isComing(model) && lastUsed[model] >= 0) {
                gone.add(model);
            }
        }
        gone.sort(Comparator.comparingLong((Integer model) -> lastUsed[model]).reversed());
        for (int model : gone) {
            budget -= workload.bytes(model);
            if (budget < 0) {
                return;
            }
            place(model, now);
        }
    }

    @Override
    public void orders(Orders orders, long now) {
        for (int[] one : evictions) {
            LruPods.Pod pod = caches.pods.get(one[1]);
            if (pod != null) {
                caches.evict(pod, one[0], orders);
            }
        }
        evictions.clear();
        caches.pump(new Orders() {
            @Override
            public void load(int model, int pod) {
                orders.load(model, pod);
            }

            @Override
            public void unload(int model, int pod) {
                copies.get(model).removeIf(copy -> copy == pod);
                orders.unload(model, pod);
            }
        });
    }

    @Override
    public long used(int pod) {
        LruPods.Pod on = caches.pods.get(pod);
        return on == null ? 0 : on.used;
    }

    private void place(int model, long now) {
        List<LruPods.Pod> order = new ArrayList<>();
        for (LruPods.Pod pod : caches.pods.values()) {
            if (!pod.draining && !pod.loaded.containsKey(model) && !pod.coming.contains(model)) {
                order.add(pod);
            }
        }
        if (order.isEmpty()) {
            return;
        }
        order.sort(Comparator.comparing((LruPods.Pod pod) -> isFull(pod))
                .thenComparingLong(pod -> isFull(pod) ? pod.oldest(now) : 0)
                .thenComparingInt(pod -> pod.loaded.size() + pod.coming.size())
                .thenComparingLong(pod -> pod.used));
        LruPods.Pod best = order.get(0);
        List<LruPods.Pod> shortlist = new ArrayList<>();
        int bestCount = best.loaded.size() + best.coming.size();
        long age = now - best.oldest(now);
        for (LruPods.Pod pod : order) {
            if (isFull(best)) {
                long younger = pod.oldest(now) - best.oldest(now);
                if (younger > 45 * SECOND && younger > age / 10) {
                    break;
                }
            } else {
                int count = pod.loaded.size() + pod.coming.size();
                if (isFull(pod)
                        || (scenario.podBytes() - pod.used) < (scenario.podBytes() - best.used) / 4
                        || (count >= 10 && count > bestCount + bestCount / 4)) {
                    break;
                }
            }
            shortlist.add(pod);
        }
        // Two random ones of the shortlist, and of these the one with less load: random, and away from loaded pods.
        LruPods.Pod a = shortlist.get(random.nextInt(shortlist.size()));
        LruPods.Pod b = shortlist.get(random.nextInt(shortlist.size()));
        caches.want(b.requests < a.requests ? b : a, model);
    }

    private boolean isComing(int model) {
        for (LruPods.Pod pod : caches.pods.values()) {
            if (pod.coming.contains(model)) {
                return true;
            }
        }
        return false;
    }

    private boolean isFull(LruPods.Pod pod) {
        return scenario.podBytes() - pod.used < scenario.podBytes() / 20;
    }

    private double free() {
        double used = 0;
        for (LruPods.Pod pod : caches.pods.values()) {
            used += pod.used;
        }
        return 1 - used / (caches.pods.size() * (double) scenario.podBytes());
    }

    private long globalOldest(long now) {
        long oldest = now;
        for (LruPods.Pod pod : caches.pods.values()) {
            oldest = Math.min(oldest, pod.oldest(now));
        }
        return oldest;
    }

    private long oldest(int number, long now) {
        LruPods.Pod pod = caches.pods.get(number);
        return pod == null ? now : pod.oldest(now);
    }
}
