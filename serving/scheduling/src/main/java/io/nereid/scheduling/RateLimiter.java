// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import java.util.List;

/**
 * Lets runs begin only when the resources that their instances ask for are free, across models. Of those that wait, the
 * one whose instance has run least, weighted by its priority, is next. Thread-safe by a short lock.
 */
public final class RateLimiter {
    private final List<Total> totals;

    /** With explicit totals; of any other resource there is as much as the most demanding instance asks for. */
    public RateLimiter(List<Total> totals) {
        this.totals = List.copyOf(totals);
    }

    /** How much there is in all of the resources named explicitly. */
    public List<Total> totals() {
        return totals;
    }

    /**
     * How much of a resource there is.
     *
     * @param name the resource
     * @param count how much
     * @param device on which device; {@link #EVERY_DEVICE} for each; without meaning for a global resource
     */
    public record Total(String name, int count, int device) {
        /** The total holds for each device by itself. */
        public static final int EVERY_DEVICE = -1;
    }
}
