// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.InstanceGroup;
import io.nereid.spi.ModelConfig.Sequence;
import io.nereid.spi.ModelConfig.Sequence.Direct;
import io.nereid.spi.ModelConfig.Sequence.Oldest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The instances with their places, the places that are free, and the backlog of sequences that wait for one, in the order
 * they came. While a place is free the backlog is empty. Guarded by the batcher's lock, but for {@link #close}.
 */
final class Lanes {
    private final Sequences sequences;
    private final ModelConfig config;
    private final Sequence settings;
    private final BatchRunner runner;
    private final DevicePool pool;
    private final SchedulerOptions options;
    private final TreeMap<Integer, SequenceLane> lanes = new TreeMap<>();
    private final PriorityQueue<Slot> free = new PriorityQueue<>();
    private final Set<Integer> opening = new HashSet<>();
    private final LinkedHashSet<Strand> backlog = new LinkedHashSet<>();
    private int wanted;
    private long pastBatches;

    Lanes(
            Sequences sequences,
            ModelConfig config,
            Sequence settings,
            BatchRunner runner,
            DevicePool pool,
            SchedulerOptions options) {
        this.sequences = sequences;
        this.config = config;
        this.settings = settings;
        this.runner = runner;
        this.pool = pool;
        this.options = options;
    }

    private SequenceLane open(int instance) {
        int rows = Math.max(1, config.maxBatchSize());
        ModelConfig own =
                config.toBuilder().instanceGroups(List.of(group(instance))).build();
        if (settings.strategy() instanceof Oldest oldest) {
            int places = oldest.maxCandidates() > 0 ? oldest.maxCandidates() : rows;
            return new OldestLane(sequences, instance, places, own, oldest, runner, pool, options);
        }
        return new DirectLane(sequences, instance, rows, own, (Direct) settings.strategy(), runner, options);
    }

    /** The group that gives an instance, with that one alone; those beyond the configured ones are like the last. */
    private InstanceGroup group(int instance) {
        InstanceGroup one = InstanceGroup.cpu(config.name(), 1);
        int end = 0;
        for (InstanceGroup g : config.instanceGroups()) {
            if (!g.passive()) {
                int within = Math.max(0, instance - end);
                List<Integer> gpu = g.gpus().isEmpty()
                        ? List.of()
                        : List.of(g.gpus().get(within % g.gpus().size()));
                one = new InstanceGroup(g.name(), g.kind(), 1, gpu, false, g.hostPolicy(), g.resources(), g.priority());
                end += g.count();
                if (instance < end) {
                    break;
                }
            }
        }
        return one;
    }

    /** Gives a new sequence the lowest free place, or else puts it into the backlog. */
    void place(Strand strand) {
        Slot slot = free.poll();
        if (slot == null) {
            strand.backlogged = true;
            backlog.add(strand);
        } else {
            seat(strand, slot);
        }
    }

    private static void seat(Strand strand, Slot slot) {
        slot.strand = strand;
        strand.slot = slot;
    }

    /** A sequence gives its place to the next. */
    void release(Strand strand, Outbox out, long now) {
        Slot slot = strand.slot;
        if (slot == null) {
            return;
        }
        strand.slot = null;
        slot.strand = null;
        if (slot.lane.removed) {
            settled(slot.lane, out);
        } else {
            fill(slot, out, now);
        }
    }

    private void fill(Slot slot, Outbox out, long now) {
        if (backlog.isEmpty()) {
            free.add(slot);
            return;
        }
        Strand next = backlog.iterator().next();
        backlog.remove(next);
        next.backlogged = false;
        seat(next, slot);
        sequences.book.seated(next, out, now);
    }

    /** A sequence is over, wherever it was. */
    void leave(Strand strand, Outbox out, long now) {
        if (strand.backlogged) {
            strand.backlogged = false;
            backlog.remove(strand);
        }
        release(strand, out, now);
    }

    /** Requests that wait in the backlog. */
    int backlogged() {
        return backlog.stream().mapToInt(strand -> strand.queue.size()).sum();
    }

    void resize(int count, Outbox out, long now) {
        wanted = count;
        for (int i = 0; i < count; i++) {
            SequenceLane lane = lanes.get(i);
            if (lane == null) {
                add(i, out);
            } else if (lane.removed && !lane.retiring) {
                lane.removed = false;
                for (Slot slot : lane.slots) {
                    if (slot.strand == null) {
                        fill(slot, out, now);
                    }
                }
            }
        }
        for (SequenceLane lane : List.copyOf(lanes.tailMap(count).values())) {
            if (!lane.removed) {
                lane.removed = true;
                free.removeIf(slot -> slot.lane == lane);
                settled(lane, out);
            }
        }
    }

    /** Makes a lane without the lock, for a rate limiter may call other models meanwhile. */
    private void add(int instance, Outbox out) {
        if (!opening.add(instance)) {
            return;
        }
        out.add(() -> {
            SequenceLane lane;
            try {
                lane = open(instance);
            } catch (RuntimeException e) {
                sequences.notOpened(instance);
                throw e;
            }
            sequences.opened(lane);
        });
    }

    void opened(SequenceLane lane, Outbox out, long now) {
        opening.remove(lane.instance);
        lanes.put(lane.instance, lane);
        if (lane.instance >= wanted) {
            lane.removed = true;
            settled(lane, out);
            return;
        }
        for (Slot slot : lane.slots) {
            fill(slot, out, now);
        }
    }

    void notOpened(int instance) {
        opening.remove(instance);
        wanted = Math.min(wanted, instance);
    }

    /** Nothing runs in this lane: if it was removed and its last sequence has left, it goes. */
    void settled(SequenceLane lane, Outbox out) {
        if (!lane.removed || lane.retiring || !lane.vacant()) {
            return;
        }
        lane.retiring = true;
        out.add(() -> lane.close().whenComplete((nothing, e) -> {
            runner.retired(lane.instance);
            sequences.retired(lane);
        }));
    }

    void retired(SequenceLane lane, Outbox out, long now) {
        pastBatches += lane.batches();
        lanes.remove(lane.instance);
        if (lane.instance < wanted) {
            add(lane.instance, out);
        }
    }

    void stirAll(Outbox out, long now) {
        for (SequenceLane lane : lanes.values()) {
            lane.stirAll(out, now);
        }
    }

    long due() {
        long due = Sequences.NEVER;
        for (SequenceLane lane : lanes.values()) {
            due = Vigil.earlier(due, lane.due());
        }
        return due;
    }

    /** Every sequence with a place, and the backlog. */
    List<Strand> strands() {
        List<Strand> all = new ArrayList<>();
        for (SequenceLane lane : lanes.values()) {
            for (Slot slot : lane.slots) {
                @Nullable Strand strand = slot.strand;
                if (strand != null) {
                    all.add(strand);
                }
            }
        }
        all.addAll(backlog);
        return all;
    }

    /** Whether nothing goes on in any lane. */
    boolean quiet() {
        return opening.isEmpty() && lanes.values().stream().allMatch(SequenceLane::vacant);
    }

    /** Without the lock, once: closes every lane; completes when nothing runs any more. */
    CompletionStage<Void> close() {
        return CompletableFuture.allOf(lanes.values().stream()
                .map(lane -> lane.close().toCompletableFuture())
                .toArray(CompletableFuture<?>[]::new));
    }

    int wanted() {
        return wanted;
    }

    int queued() {
        return lanes.values().stream().mapToInt(SequenceLane::queued).sum();
    }

    int running() {
        return lanes.values().stream().mapToInt(SequenceLane::running).sum();
    }

    long batches() {
        return pastBatches
                + lanes.values().stream().mapToLong(SequenceLane::batches).sum();
    }
}
