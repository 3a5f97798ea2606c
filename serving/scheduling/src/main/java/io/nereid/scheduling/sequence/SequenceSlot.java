// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import org.jspecify.annotations.Nullable;

/** A slot of a model instance, which holds at most one sequence at a time. Guarded by the batcher's lock. */
final class SequenceSlot implements Comparable<SequenceSlot> {
    final SequenceBatch batch;
    final int number;

    @Nullable ActiveSequence sequence;

    SequenceSlot(SequenceBatch batch, int number) {
        this.batch = batch;
        this.number = number;
    }

    /** Orders by number before instance: sequences are spread over the instances, and batches stay short. */
    @Override
    public int compareTo(SequenceSlot other) {
        int byNumber = Integer.compare(number, other.number);
        return byNumber != 0 ? byNumber : Integer.compare(batch.instance, other.batch.instance);
    }

    @Override
    public boolean equals(@Nullable Object o) {
        return this == o;
    }

    @Override
    public int hashCode() {
        return System.identityHashCode(this);
    }
}
