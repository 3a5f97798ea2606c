// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import io.nereid.base.ServingException;
import java.time.Duration;

/**
 * Settings of a pool's placement. Immutable.
 *
 * @param seed of all hashes: pools with the same seed, pods and calls decide alike
 * @param excess how much more than the average load a pod may have: epsilon of consistent hashing with bounded loads
 * @param copyLoad the load of one copy, in busy workers, above which a model gets another copy
 * @param copyShrink the share of {@code copyLoad} that one copy fewer must stay below before a copy goes
 * @param redundantRate requests a second from which a model has two copies, so that a lost pod does not interrupt it
 * @param redundantAge the age of what is evicted, below which memory is too scarce for copies that no load asks for
 * @param inUse how long after its last request a model counts as in use: such models are recovered and moved
 * @param drain how long a draining pod keeps models that are in use while other pods load them; shorter than the pod goes on
 *     serving after it was asked to end
 * @param retryFailed how long after a failed load a pod is not chosen for that model again
 * @param fast the time constant of the rate that adds copies
 * @param slow the time constant of the rate that removes copies
 */
public record PlacementSettings(
        long seed,
        double excess,
        double copyLoad,
        double copyShrink,
        double redundantRate,
        Duration redundantAge,
        Duration inUse,
        Duration drain,
        Duration retryFailed,
        Duration fast,
        Duration slow) {
    /** The default settings. */
    public static final PlacementSettings DEFAULT = new PlacementSettings(
            0x9e3779b97f4a7c15L,
            0.25,
            0.5,
            0.7,
            0.2,
            Duration.ofMinutes(10),
            Duration.ofMinutes(10),
            Duration.ofSeconds(20),
            Duration.ofMinutes(1),
            Duration.ofSeconds(10),
            Duration.ofMinutes(5));

    /**
     * Creates settings.
     *
     * @throws ServingException INVALID_ARGUMENT when a value is out of its range
     */
    public PlacementSettings {
        positive("excess", excess);
        positive("copyLoad", copyLoad);
        positive("redundantRate", redundantRate);
        positive("fast", fast.toNanos());
        positive("slow", slow.toNanos());
        if (!(copyShrink > 0 && copyShrink < 1)) {
            throw ServingException.invalidArgument(
                    "copyShrink is " + copyShrink + " (expected more than 0 and less than 1)",
                    "use a share such as 0.7; at 1 a copy would come and go with every change of the load");
        }
    }

    private static void positive(String name, double value) {
        if (!(value > 0)) {
            throw ServingException.invalidArgument(
                    name + " is " + value + " (expected a positive value)", "leave it at its default");
        }
    }
}
