// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.ModelControl.Label;
import io.nereid.spi.ModelControl.Share;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/** Where the requests for one label go, as the versions of its model stand now. Immutable. */
final class Route {
    final Label label;

    /** Targets that serve, and where the part of each ends on a line that ends at 1. */
    private final Live[] targets;

    private final double[] targetEnds;

    /** Shadows that serve; what lies beyond the end of the last part is copied to none. */
    private final @Nullable Live[] shadows;

    private final double[] shadowEnds;

    /** The route of a label over the versions that serve in {@code entry}. */
    Route(Label label, ServingMap.Entry entry) {
        this.label = label;
        List<Live> lives = new ArrayList<>();
        List<Double> weights = new ArrayList<>();
        for (Share share : label.targets()) {
            Live live = entry.live(share.version());
            if (live != null) {
                lives.add(live);
                weights.add(share.weight());
            }
        }
        this.targets = lives.toArray(Live[]::new);
        this.targetEnds = ends(weights, 0);
        this.shadows =
                label.shadows().stream().map(s -> entry.live(s.version())).toArray(Live[]::new);
        this.shadowEnds = ends(label.shadows().stream().map(Share::weight).toList(), 1);
    }

    /** Where each part ends, after dividing by the sum of the weights, or by {@code least} if that is more. */
    private static double[] ends(List<Double> weights, double least) {
        double sum = least;
        double total = 0;
        for (double w : weights) {
            total += w;
        }
        sum = Math.max(sum, total);
        double[] ends = new double[weights.size()];
        double end = 0;
        for (int i = 0; i < ends.length; i++) {
            end += weights.get(i);
            ends[i] = end / sum;
        }
        return ends;
    }

    /** A target that serves, by turns according to the weights; null when none does. */
    @Nullable Live target() {
        if (targets.length <= 1) {
            return targets.length == 0 ? null : targets[0];
        }
        int i = draw(targetEnds);
        // Rounding may leave a crack behind the last part.
        return targets[Math.min(i, targets.length - 1)];
    }

    /** The shadow that gets a copy of this request; null for none, also when it does not serve. */
    @Nullable Live shadow() {
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
