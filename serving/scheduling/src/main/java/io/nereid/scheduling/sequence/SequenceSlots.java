// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.QueueTimer;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceBatching.Direct;
import io.nereid.spi.config.SequenceBatching.Oldest;
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
 * The slots of all instances: the free ones, and the backlog of sequences that wait for one in arrival order.
 * Invariant: while a slot is free, the backlog is empty. Also creates and removes instances. Guarded by the batcher's
 * lock, except for {@link #close}.
 */
final class SequenceSlots {
    private final SequenceBatcher batcher;
    private final ModelConfig config;
    private final SequenceBatching settings;
    private final BatchRunner runner;
    private final DeviceExecutor pool;
    private final SchedulerOptions options;
    private final TreeMap<Integer, SequenceBatch> byInstance = new TreeMap<>();
    private final PriorityQueue<SequenceSlot> free = new PriorityQueue<>();
    private final Set<Integer> opening = new HashSet<>();
    private final LinkedHashSet<ActiveSequence> backlog = new LinkedHashSet<>();
    private int desired;
    private long pastBatches;

    SequenceSlots(
            SequenceBatcher batcher,
            ModelConfig config,
            SequenceBatching settings,
            BatchRunner runner,
            DeviceExecutor pool,
            SchedulerOptions options) {
        this.batcher = batcher;
        this.config = config;
        this.settings = settings;
        this.runner = runner;
        this.pool = pool;
        this.options = options;
    }

    /** Creates the slots of an instance: as many as rows in a batch, or the candidates of the oldest strategy. */
    private SequenceBatch open(int instance) {
        int rows = Math.max(1, config.maxBatchSize());
        ModelConfig own =
                config.toBuilder().instanceGroups(List.of(group(instance))).build();
        if (settings.strategy() instanceof Oldest oldest) {
            int places = oldest.maxCandidates() > 0 ? oldest.maxCandidates() : rows;
            return new OldestSequenceBatch(batcher, instance, places, own, oldest, runner, pool, options);
        }
        return new DirectSequenceBatch(batcher, instance, rows, own, (Direct) settings.strategy(), runner, options);
    }

    /**
     * Returns the instance group of an instance, with a count of 1; instances beyond the configured ones use the last
     * group.
     */
    private InstanceGroup group(int instance) {
        InstanceGroup one = InstanceGroup.cpu(config.name(), 1);
        int end = 0;
        for (InstanceGroup g : config.instanceGroups()) {
            if (!g.passive()) {
                int within = Math.max(0, instance - end);
                one = g.placed(g.kind(), 1, g.gpus().isEmpty() ? List.of() : List.of(g.device(within)));
                end += g.instances();
                if (instance < end) {
                    break;
                }
            }
        }
        return one;
    }

    /** Assigns a new sequence to the free slot with the lowest number, or adds it to the backlog. */
    void place(ActiveSequence sequence) {
        SequenceSlot slot = free.poll();
        if (slot == null) {
            sequence.backlogged = true;
            backlog.add(sequence);
        } else {
            assign(sequence, slot);
        }
    }

    private static void assign(ActiveSequence sequence, SequenceSlot slot) {
        slot.sequence = sequence;
        sequence.slot = slot;
    }

    /** Frees the slot of a sequence, and assigns it to the first sequence of the backlog. */
    void release(ActiveSequence sequence, DeferredActions out, long now) {
        SequenceSlot slot = sequence.slot;
        if (slot == null) {
            return;
        }
        sequence.slot = null;
        slot.sequence = null;
        if (slot.batch.removed) {
            settled(slot.batch, out);
        } else {
            fill(slot, out, now);
        }
    }

    private void fill(SequenceSlot slot, DeferredActions out, long now) {
        if (backlog.isEmpty()) {
            free.add(slot);
            return;
        }
        ActiveSequence next = backlog.iterator().next();
        backlog.remove(next);
        next.backlogged = false;
        assign(next, slot);
        batcher.registry.assigned(next, out, now);
    }

    /** Removes a finished sequence from its slot or from the backlog. */
    void leave(ActiveSequence sequence, DeferredActions out, long now) {
        if (sequence.backlogged) {
            sequence.backlogged = false;
            backlog.remove(sequence);
        }
        release(sequence, out, now);
    }

    /** Returns the number of requests in the backlog. */
    int backlogged() {
        return backlog.stream().mapToInt(sequence -> sequence.queue.size()).sum();
    }

    /** Changes the number of instances; a removed one that is not retired yet is used again. */
    void resize(int count, DeferredActions out, long now) {
        desired = count;
        for (int i = 0; i < count; i++) {
            SequenceBatch batch = byInstance.get(i);
            if (batch == null) {
                add(i, out);
            } else if (batch.removed && !batch.retiring) {
                // Removed, but its sequences have not ended yet: use it again. Its free slots are not in `free`.
                batch.removed = false;
                for (SequenceSlot slot : batch.slots) {
                    if (slot.sequence == null) {
                        fill(slot, out, now);
                    }
                }
            }
        }
        for (SequenceBatch batch : List.copyOf(byInstance.tailMap(count).values())) {
            if (!batch.removed) {
                // Its sequences keep their slots until they end; freed slots are not assigned any more.
                batch.removed = true;
                free.removeIf(slot -> slot.batch == batch);
                settled(batch, out);
            }
        }
    }

    /** Creates an instance without holding the lock, because the rate limiter may call other models in the meantime. */
    private void add(int instance, DeferredActions out) {
        if (!opening.add(instance)) {
            return;
        }
        out.add(() -> {
            SequenceBatch batch;
            try {
                batch = open(instance);
            } catch (RuntimeException e) {
                batcher.notOpened(instance);
                throw e;
            }
            batcher.opened(batch);
        });
    }

    void opened(SequenceBatch batch, DeferredActions out, long now) {
        opening.remove(batch.instance);
        byInstance.put(batch.instance, batch);
        if (batch.instance >= desired) {
            batch.removed = true;
            settled(batch, out);
            return;
        }
        for (SequenceSlot slot : batch.slots) {
            fill(slot, out, now);
        }
    }

    void notOpened(int instance) {
        opening.remove(instance);
        desired = Math.min(desired, instance);
    }

    /** Called when nothing runs on an instance: retires it if it was removed and its last sequence has ended. */
    void settled(SequenceBatch batch, DeferredActions out) {
        if (!batch.removed || batch.retiring || !batch.vacant()) {
            return;
        }
        batch.retiring = true;
        out.add(() -> batch.close().whenComplete((nothing, e) -> {
            runner.retired(batch.instance);
            batcher.retired(batch);
        }));
    }

    void retired(SequenceBatch batch, DeferredActions out, long now) {
        pastBatches += batch.batches();
        byInstance.remove(batch.instance);
        if (batch.instance < desired) {
            add(batch.instance, out);
        }
    }

    /** Lets all instances check whether they can run requests now. */
    void tryScheduleAll(DeferredActions out, long now) {
        for (SequenceBatch batch : byInstance.values()) {
            batch.tryScheduleAll(out, now);
        }
    }

    /** Returns when the timer must call {@link #tryScheduleAll}; {@link SequenceBatcher#NEVER} for not at all. */
    long due() {
        long due = SequenceBatcher.NEVER;
        for (SequenceBatch batch : byInstance.values()) {
            due = QueueTimer.earlier(due, batch.due());
        }
        return due;
    }

    /** Returns all sequences: those with a slot, then the backlog. */
    List<ActiveSequence> sequences() {
        List<ActiveSequence> all = new ArrayList<>();
        for (SequenceBatch batch : byInstance.values()) {
            for (SequenceSlot slot : batch.slots) {
                @Nullable ActiveSequence sequence = slot.sequence;
                if (sequence != null) {
                    all.add(sequence);
                }
            }
        }
        all.addAll(backlog);
        return all;
    }

    /** Returns whether no instance has a sequence or a run. */
    boolean quiet() {
        return opening.isEmpty() && byInstance.values().stream().allMatch(SequenceBatch::vacant);
    }

    /** Closes every instance; the result completes when nothing runs any more. Called once, without the lock. */
    CompletionStage<Void> close() {
        return CompletableFuture.allOf(byInstance.values().stream()
                .map(batch -> batch.close().toCompletableFuture())
                .toArray(CompletableFuture<?>[]::new));
    }

    int desired() {
        return desired;
    }

    int queued() {
        return byInstance.values().stream().mapToInt(SequenceBatch::queued).sum();
    }

    int running() {
        return byInstance.values().stream().mapToInt(SequenceBatch::running).sum();
    }

    long batches() {
        return pastBatches
                + byInstance.values().stream().mapToLong(SequenceBatch::batches).sum();
    }
}
