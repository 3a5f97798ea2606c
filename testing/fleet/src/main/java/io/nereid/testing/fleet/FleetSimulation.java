// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * Runs a {@link FleetScenario} with one {@link FleetStrategy} in virtual time. Single-threaded; the same arguments give the
 * same outcome.
 */
final class FleetSimulation {
    private static final long SECOND = 1_000_000_000L;
    private static final long UNLOAD = 20_000_000L;
    private static final long TICK = 2 * SECOND;
    private static final int WINDOW = 10;

    /** A pod refuses requests when this many wait for each worker: about four seconds of work. */
    private static final int QUEUE = 100;

    /** Drained pods begin one after another. */
    private static final int DRAIN_STEP = 5;

    private enum Kind {
        ARRIVAL,
        DONE,
        LOADED,
        UNLOADED,
        TICK
    }

    private static final class Request {
        private final int model;
        private final long arrived;
        private final long busy;
        private boolean hit;
        private @Nullable Pod pod;

        Request(int model, long arrived, long busy) {
            this.model = model;
            this.arrived = arrived;
            this.busy = busy;
        }
    }

    private static final class Pod {
        private final int number;
        private final Deque<Request> queue = new ArrayDeque<>();
        private final List<Request> running = new ArrayList<>();
        private boolean alive = true;
        private boolean draining;
        private double work;

        Pod(int number) {
            this.number = number;
        }
    }

    private final FleetScenario scenario;
    private final FleetWorkload workload;
    private final FleetStrategy strategy;
    private final EventQueue<Kind> events = new EventQueue<>();
    private final Random random;
    private final Map<Integer, Pod> pods = new LinkedHashMap<>();
    private final Map<Integer, Deque<Request>> waiting = new HashMap<>();
    private final FleetOutcome outcome;
    private LatencyHistogram window = new LatencyHistogram();
    private long windowRequests;
    private long windowHits;
    private int windowLoads;
    private int copies;
    private int nextPod;
    private int drained;
    private long now;

    FleetSimulation(FleetScenario scenario, FleetWorkload workload, FleetStrategy strategy) {
        this.scenario = scenario;
        this.workload = workload;
        this.strategy = strategy;
        this.random = new Random(scenario.seed() + 3);
        this.outcome = new FleetOutcome(strategy.name());
    }

    FleetOutcome run() {
        for (int i = 0; i < scenario.pods(); i++) {
            join();
        }
        events.add(workload.gap(), Kind.ARRIVAL, null, 0, 0);
        events.add(TICK, Kind.TICK, null, 0, 0);
        long end = scenario.seconds() * SECOND;
        while (true) {
            EventQueue.Event<Kind> event = events.poll();
            now = event.at();
            if (now >= end) {
                return outcome;
            }
            switch (event.kind()) {
                case ARRIVAL -> {
                    events.add(now + workload.gap(), Kind.ARRIVAL, null, 0, 0);
                    // Drawn on arrival, so that all strategies have the same requests.
                    int model = workload.next(now);
                    Request request = new Request(model, now, workload.cost(model));
                    boolean counts = now >= scenario.warmup() * SECOND;
                    request.hit = dispatch(request);
                    windowRequests++;
                    windowHits += request.hit ? 1 : 0;
                    if (counts) {
                        outcome.requests++;
                        outcome.hits += request.hit ? 1 : 0;
                    }
                }
                case DONE -> {
                    if (event.subject() instanceof Request ended) {
                        done(ended);
                    }
                }
                case LOADED -> {
                    if (alive(event.second())) {
                        copies++;
                        strategy.loaded(event.first(), event.second(), now);
                        wake(event.first());
                    }
                }
                case UNLOADED -> {
                    if (alive(event.second())) {
                        strategy.unloaded(event.first(), event.second(), now);
                    }
                }
                case TICK -> tick();
            }
            orders();
        }
    }

    private void orders() {
        strategy.orders(
                new FleetStrategy.Orders() {
                    @Override
                    public void load(int model, int pod) {
                        windowLoads++;
                        if (now >= scenario.warmup() * SECOND) {
                            outcome.loads++;
                        }
                        events.add(now + FleetScenario.loadNanos(workload.bytes(model)), Kind.LOADED, null, model, pod);
                    }

                    @Override
                    public void unload(int model, int pod) {
                        copies--;
                        events.add(now + UNLOAD, Kind.UNLOADED, null, model, pod);
                    }
                },
                now);
    }

    private boolean dispatch(Request request) {
        int number = strategy.route(request.model, random.nextLong(), now);
        if (number < 0) {
            waiting.computeIfAbsent(request.model, m -> new ArrayDeque<>()).add(request);
            strategy.missed(request.model, now);
            return false;
        }
        Pod pod = pods.get(number);
        if (pod == null) {
            throw new IllegalStateException(strategy.name() + " routed a request to pod " + number + ", which is gone");
        }
        request.pod = pod;
        if (pod.queue.size() >= QUEUE * scenario.workers()) {
            strategy.done(request.model, number, 0, now);
            if (request.arrived >= scenario.warmup() * SECOND) {
                outcome.refused++;
            }
            return true;
        }
        if (pod.running.size() < scenario.workers()) {
            start(pod, request);
        } else {
            pod.queue.add(request);
        }
        return true;
    }

    private void start(Pod pod, Request request) {
        pod.running.add(request);
        pod.work += request.busy;
        events.add(now + request.busy, Kind.DONE, request, 0, 0);
    }

    private void done(Request request) {
        Pod pod = request.pod;
        if (pod == null || !pod.alive || !pod.running.remove(request)) {
            return;
        }
        strategy.done(request.model, pod.number, request.busy, now);
        window.record(now - request.arrived);
        if (request.arrived >= scenario.warmup() * SECOND) {
            outcome.answered++;
            outcome.latency.record(now - request.arrived);
            if (request.hit) {
                outcome.hitLatency.record(now - request.arrived);
            }
        }
        Request next = pod.queue.poll();
        if (next != null) {
            start(pod, next);
        }
    }

    /** Routes what waits for a model again. */
    private void wake(int model) {
        Deque<Request> requests = waiting.remove(model);
        if (requests != null) {
            requests.forEach(this::dispatch);
        }
    }

    private void tick() {
        int second = (int) (now / SECOND);
        events.add(now + TICK, Kind.TICK, null, 0, 0);
        if (second == scenario.loseAt()) {
            List<Pod> all = serving();
            for (int i = 0; i < scenario.lose(); i++) {
                lose(all.get(all.size() * i / scenario.lose()));
            }
        }
        if (second == scenario.replaceAt()) {
            for (int i = 0; i < scenario.lose(); i++) {
                join();
            }
        }
        if (second == scenario.growAt()) {
            for (int i = 0; i < scenario.grow(); i++) {
                join();
            }
        }
        // Ticks are at even seconds only.
        if (second >= scenario.shrinkAt()
                && drained < scenario.grow()
                && second >= scenario.shrinkAt() + drained * DRAIN_STEP) {
            Pod pod = serving().get(0);
            pod.draining = true;
            drained++;
            strategy.drain(pod.number, now);
            // Requests that wait for a load on that pod ask again, as a gateway does.
            retryWaiting();
        }
        for (Pod pod : List.copyOf(pods.values())) {
            if (pod.draining && pod.running.isEmpty() && pod.queue.isEmpty() && strategy.drained(pod.number)) {
                lose(pod);
            }
        }
        strategy.tick(now);
        double most = 0;
        for (Pod pod : pods.values()) {
            most = Math.max(most, (double) strategy.used(pod.number) / scenario.podBytes());
        }
        outcome.fullest = Math.max(outcome.fullest, most);
        if (second % WINDOW == 0) {
            close(second - WINDOW);
        }
    }

    private void close(int second) {
        double work = 0;
        double busiest = 0;
        double bytes = 0;
        double fullest = 0;
        for (Pod pod : pods.values()) {
            work += pod.work;
            busiest = Math.max(busiest, pod.work);
            pod.work = 0;
            bytes += strategy.used(pod.number);
            fullest = Math.max(fullest, strategy.used(pod.number));
        }
        int count = pods.size();
        outcome.windows.add(new FleetOutcome.Window(
                second,
                windowRequests == 0 ? 1 : (double) windowHits / windowRequests,
                window.millis(0.99),
                windowLoads,
                serving().size(),
                copies,
                work == 0 ? 1 : busiest * count / work,
                bytes == 0 ? 1 : fullest * count / bytes));
        window = new LatencyHistogram();
        windowRequests = 0;
        windowHits = 0;
        windowLoads = 0;
    }

    private void join() {
        Pod pod = new Pod(nextPod++);
        pods.put(pod.number, pod);
        strategy.joined(pod.number, now);
    }

    private void lose(Pod pod) {
        pod.alive = false;
        pods.remove(pod.number);
        strategy.lost(pod.number, now);
        List<Request> cut = new ArrayList<>(pod.running);
        cut.addAll(pod.queue);
        outcome.retried += cut.size();
        cut.forEach(this::dispatch);
        retryWaiting();
    }

    private void retryWaiting() {
        for (int model : List.copyOf(waiting.keySet())) {
            wake(model);
        }
    }

    private List<Pod> serving() {
        return pods.values().stream().filter(pod -> !pod.draining).toList();
    }

    private boolean alive(int pod) {
        return pods.containsKey(pod);
    }
}
