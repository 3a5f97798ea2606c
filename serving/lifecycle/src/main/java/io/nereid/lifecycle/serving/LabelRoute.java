// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/** The routing of requests with one label to the available versions of a model. Immutable. */
public final class LabelRoute {
    final VersionLabel label;

    /** Available targets; {@link #targetEnds} has the cumulative weights, normalized to 1. */
    private final LiveServable[] targets;

    private final double[] targetEnds;

    /**
     * Shadows, null if not available; requests beyond the last cumulative share in {@link #shadowEnds} are not copied.
     */
    private final @Nullable LiveServable[] shadows;

    private final double[] shadowEnds;

    /** Creates the route of a label for the available versions in {@code entry}. */
    LabelRoute(VersionLabel label, ServingMap.Entry entry) {
        this.label = label;
        List<LiveServable> lives = new ArrayList<>();
        List<Double> weights = new ArrayList<>();
        for (WeightedVersion share : label.targets()) {
            LiveServable live = entry.live(share.version());
            if (live != null) {
                lives.add(live);
                weights.add(share.weight());
            }
        }
        this.targets = lives.toArray(LiveServable[]::new);
        this.targetEnds = ends(weights, 0);
        this.shadows =
                label.shadows().stream().map(s -> entry.live(s.version())).toArray(LiveServable[]::new);
        this.shadowEnds =
                ends(label.shadows().stream().map(WeightedVersion::weight).toList(), 1);
    }

    /** Returns the cumulative weights, divided by their sum or by {@code least}, whichever is larger. */
    private static double[] ends(List<Double> weights, double least) {
        double total = 0;
        for (double w : weights) {
            total += w;
        }
        double sum = Math.max(least, total);
        double[] ends = new double[weights.size()];
        double end = 0;
        for (int i = 0; i < ends.length; i++) {
            end += weights.get(i);
            ends[i] = end / sum;
        }
        return ends;
    }

    /** Returns an available target, chosen at random by weight; null if none is available. */
    @Nullable LiveServable target() {
        if (targets.length <= 1) {
            return targets.length == 0 ? null : targets[0];
        }
        int i = draw(targetEnds);
        // Rounding may leave the last cumulative weight slightly below 1.
        return targets[Math.min(i, targets.length - 1)];
    }

    /** Returns the shadow that receives a copy of this request; null for none, or if it is not available. */
    @Nullable LiveServable shadow() {
        if (shadows.length == 0) {
            return null;
        }
        int i = draw(shadowEnds);
        return i < shadows.length ? shadows[i] : null;
    }

    private static int draw(double[] ends) {
        double at = ThreadLocalRandom.current().nextDouble();
        int i = 0;
        while (i < ends.length && at >= ends[i]) {
            i++;
        }
        return i;
    }
}
