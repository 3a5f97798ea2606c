// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import org.jspecify.annotations.Nullable;

/** A place for one sequence on one instance. Guarded by the batcher's lock. */
final class Slot implements Comparable<Slot> {
    final SequenceLane lane;
    final int number;

    @Nullable Strand strand;

    Slot(SequenceLane lane, int number) {
        this.lane = lane;
        this.number = number;
    }

    /** The lowest number of any instance is given out first. */
    @Override
    public int compareTo(Slot other) {
        int byNumber = Integer.compare(number, other.number);
        return byNumber != 0 ? byNumber : Integer.compare(lane.instance, other.lane.instance);
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
