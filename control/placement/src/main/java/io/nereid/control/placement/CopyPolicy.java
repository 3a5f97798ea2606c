// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

/**
 * How many copies a model has, with hysteresis: the fast load adds copies, and both loads must be clearly lower before one
 * goes, one at a time. A pure function; immutable.
 */
final class CopyPolicy {
    private final PlacementSettings settings;

    CopyPolicy(PlacementSettings settings) {
        this.settings = settings;
    }

    /**
     * Returns the number of copies.
     *
     * @param copies the present number, at least 1
     * @param demand rates and loads
     * @param spare whether memory is plentiful enough for copies that no load asks for
     * @param pods the number of pods that can have a copy
     */
    int copies(int copies, ModelDemand demand, boolean spare, int pods) {
        int byLoad = (int) Math.ceil(demand.fastLoad() / settings.copyLoad());
        double threshold = settings.redundantRate() * (copies > 1 ? 0.5 : 1);
        int least = spare && demand.slowRate() >= threshold ? 2 : 1;
        int wanted = copies;
        if (byLoad > copies) {
            wanted = byLoad;
        } else if (copies > least) {
            double afterwards = settings.copyShrink() * settings.copyLoad() * (copies - 1);
            if (Math.max(demand.fastLoad(), demand.slowLoad()) < afterwards) {
                wanted = copies - 1;
            }
        }
        return Math.max(1, Math.min(Math.max(wanted, least), pods));
    }
}
