// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One sequence under way: its waiting requests and what it carries between them. A START in the middle of the queue
 * begins it anew in the same place. Guarded by the batcher's lock, but for the states and the id's tensor, which belong to
 * the request in flight while there is one.
 */
final class Strand {
    final Object id;
    final ArrayDeque<SequenceJob> queue = new ArrayDeque<>();
    /** The request that has been handed on and has not ended. */
    @Nullable SequenceJob inFlight;
    /** Its place; null in the backlog and once its END has been handed on. */
    @Nullable Slot slot;

    boolean backlogged;
    /** No request will come any more: the last is queued, or it has been silent, or was cancelled. */
    boolean over;

    boolean finished;
    /** When it was last heard of. */
    long heard;

    @Nullable Strand quieter;

    @Nullable Strand livelier;

    boolean listed;

    private @Nullable Tensor idTensor;
    private @Nullable Tensor @Nullable [] states;

    Strand(Object id) {
        this.id = id;
    }

    /** Whether its next request could go. */
    boolean ready() {
        return inFlight == null && !queue.isEmpty();
    }

    @Nullable Tensor idTensor(ControlTensors controls) {
        if (idTensor == null) {
            idTensor = controls.ofId(id);
        }
        return idTensor;
    }

    @Nullable Tensor state(int i) {
        @Nullable Tensor[] kept = states;
        return kept == null ? null : kept[i];
    }

    /** Replaces a state, taking over a count. */
    void state(int count, int i, Tensor value) {
        @Nullable Tensor[] kept = states;
        if (kept == null) {
            kept = new Tensor[count];
            states = kept;
        }
        Tensor before = kept[i];
        kept[i] = value;
        if (before != null) {
            before.close();
        }
    }

    /** The sequence begins anew. */
    void dropStates() {
        @Nullable Tensor[] kept = states;
        states = null;
        if (kept != null) {
            for (Tensor t : kept) {
                if (t != null) {
                    t.close();
                }
            }
        }
    }

    /** Gives up what it holds. */
    void release() {
        dropStates();
        Tensor t = idTensor;
        idTensor = null;
        if (t != null) {
            t.close();
        }
    }

    /**
     * Takes out of the queue what falls with {@code item}, or with the request in flight when that is null: all of its
     * sequence that comes after it, and with {@code whole} what comes before it too; but nothing from another START on. When no other START follows, the sequence is over.
     */
    List<SequenceJob> fall(@Nullable SequenceJob item, boolean whole) {
        List<SequenceJob> all = new ArrayList<>(queue);
        int from = item == null ? 0 : all.indexOf(item);
        int to = item == null ? 0 : from + 1;
        while (whole && from > 0 && !all.get(from).start) {
            from--;
        }
        while (to < all.size() && !all.get(to).start) {
            to++;
        }
        over |= to == all.size();
        List<SequenceJob> range = all.subList(from, to);
        List<SequenceJob> fallen = List.copyOf(range);
        range.clear();
        queue.clear();
        queue.addAll(all);
        return fallen;
    }
}
