// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.batcher.DynamicBatcher;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import java.util.function.IntToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * A load on a batcher with one instance, on a clock that jumps from event to event. All times are seconds from the
 * start. Confined to one thread.
 */
final class LoadSimulation implements BatchRunner {
    final ManualTime time = new ManualTime();
    final DynamicBatcher batcher;
    final Random random;
    /** Ended requests, in the order of their ends. */
    final List<Ended> ended = new ArrayList<>();

    /** Ends the simulation after so many refused requests. */
    long stopAfterRefusals = Long.MAX_VALUE;

    /** The most nanoseconds between two looks for a batch that is ready, for those that a timer releases. */
    long step = Long.MAX_VALUE;

    private long refusals;
    /** The longest queue. */
    int longest;

    private final DeviceExecutor pool = new DeviceExecutor("simulation", 0, time, time);
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final long zero = time.nanos();
    private final double end;
    private IntToDoubleFunction service = batch -> 0.01;
    private long order;
    private int number;

    /** An ended request: when it arrived and ended, and whether it was served. */
    record Ended(double arrived, double at, boolean served, FakeJob job) {
        double took() {
            return at - arrived;
        }
    }

    private record Event(long at, long order, Runnable action) implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            return at == other.at ? Long.compare(order, other.order) : Long.compare(at, other.at);
        }
    }

    LoadSimulation(long seed, double seconds, ModelConfig config, AdmissionControl admission) {
        this.random = new Random(seed);
        this.end = seconds;
        this.batcher = new DynamicBatcher(
                config, this, pool, new SchedulerOptions(1_000_000, InlinePolicy.NEVER).withAdmission(admission));
    }

    /** One instance without batching, a target of one second. */
    static LoadSimulation of(long seed, double seconds) {
        return new LoadSimulation(
                seed,
                seconds,
                ModelConfig.builder("m").instances(1).build(),
                AdmissionControl.overload(Duration.ofSeconds(1)));
    }

    double now() {
        return (time.nanos() - zero) / 1e9;
    }

    /** Sets the seconds of a run by the number of its requests. */
    LoadSimulation service(IntToDoubleFunction seconds) {
        service = seconds;
        return this;
    }

    LoadSimulation service(double seconds) {
        return service(batch -> seconds);
    }

    void at(double second, Runnable action) {
        events.add(new Event(zero + (long) (second * 1e9), order++, action));
    }

    /** Requests at random, so many in a second. */
    LoadSimulation open(DoubleUnaryOperator perSecond) {
        at(0, () -> arrival(perSecond));
        return this;
    }

    LoadSimulation open(double perSecond) {
        return open(t -> perSecond);
    }

    private void arrival(DoubleUnaryOperator perSecond) {
        double rate = perSecond.applyAsDouble(now());
        if (rate > 0) {
            submit(FakeJob.of(number++), null);
        }
        at(now() + (rate > 0 ? -Math.log(1 - random.nextDouble()) / rate : 0.01), () -> arrival(perSecond));
    }

    /** Clients that send the next request when they have the response, after a time at random with this mean. */
    LoadSimulation closed(int clients, double startWithin, double think) {
        for (int i = 0; i < clients; i++) {
            at(startWithin * random.nextDouble(), () -> client(think));
        }
        return this;
    }

    private void client(double think) {
        submit(FakeJob.of(number++), () -> {
            double pause = think == 0 ? 0.0005 : -think * Math.log(1 - random.nextDouble());
            at(now() + pause, () -> client(think));
        });
    }

    /** So many requests at once. */
    LoadSimulation burst(double second, int requests) {
        at(second, () -> {
            for (int i = 0; i < requests; i++) {
                submit(FakeJob.of(number++), null);
            }
        });
        return this;
    }

    void submit(FakeJob job, @Nullable Runnable then) {
        double arrived = now();
        job.onEnd = j -> {
            refusals += j.code == ErrorCode.OK ? 0 : 1;
            ended.add(new Ended(arrived, now(), j.code == ErrorCode.OK, j));
            if (then != null) {
                then.run();
            }
        };
        try {
            batcher.submit(job);
            longest = Math.max(longest, batcher.queued());
        } catch (ServingException e) {
            job.fail(e);
        }
    }

    LoadSimulation run() {
        while (now() < end && refusals < stopAfterRefusals) {
            if (!pool.runNext()) {
                Event next = events.peek();
                if (next == null) {
                    break;
                }
                if (next.at - time.nanos() > step) {
                    time.advance(step);
                    continue;
                }
                events.poll();
                time.advance(Math.max(0, next.at - time.nanos()));
                next.action.run();
            }
        }
        return this;
    }

    @Override
    public void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
        long until = time.nanos() + (long) (service.applyAsDouble(jobs.size()) * 1e9);
        for (Event e = events.peek(); e != null && e.at <= until; e = events.peek()) {
            events.poll();
            time.advance(Math.max(0, e.at - time.nanos()));
            e.action.run();
        }
        time.advance(Math.max(0, until - time.nanos()));
        jobs.forEach(j -> j.complete(List.of(), Map.of()));
    }

    @Override
    public boolean joinable(InferenceJob a, InferenceJob b) {
        return true;
    }

    // ---- results ----

    long refused() {
        return ended.stream().filter(e -> !e.served).count();
    }

    /** Requests served in a second, from one time to another. */
    double goodput(double from, double to) {
        return ended.stream().filter(e -> e.served && e.at >= from && e.at < to).count() / (to - from);
    }

    /** The percentile of the seconds that requests took, of the served or of the refused ones that ended in a time. */
    double percentile(double percent, boolean served, double from, double to) {
        double[] all = ended.stream()
                .filter(e -> e.served == served && e.at >= from && e.at < to)
                .mapToDouble(Ended::took)
                .sorted()
                .toArray();
        return all.length == 0 ? 0 : all[(int) Math.min(all.length - 1, Math.ceil(all.length * percent / 100))];
    }
}
