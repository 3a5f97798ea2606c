// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

/**
 * A load that waits for its pod. Immutable.
 *
 * @param model the model
 * @param pod the pod
 * @param reason why it is loaded
 * @param bytes the memory that it needs
 * @param rate the model's rate when the task was made: of two tasks with one reason the one with more requests is first
 * @param number the order of creation
 */
record LoadTask(String model, String pod, Reason reason, long bytes, double rate, long number)
        implements Comparable<LoadTask> {
    /** Reasons, the most urgent first. */
    enum Reason {
        /** Requests wait for it. */
        DEMAND,
        /** Its pod was lost or drains, and it is in use. */
        RECOVERY,
        /** Its load asks for another copy. */
        COPY,
        /** A new pod takes its share. */
        MOVE
    }

    @Override
    public int compareTo(LoadTask other) {
        int order = reason.compareTo(other.reason);
        if (order == 0 && reason != Reason.DEMAND) {
            order = Double.compare(other.rate, rate);
        }
        return order != 0 ? order : Long.compare(number, other.number);
    }
}
