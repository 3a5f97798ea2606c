// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.state;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE_INTERESTING;

import io.nereid.lifecycle.serving.LiveServable;
import io.nereid.lifecycle.serving.ServingMap;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.List;
import java.util.Map;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/**
 * {@link ServingMap} as {@link ServableRegistry} publishes it: a reader sees all changes of an event or none, and after
 * it was refused a handle to a drained version it finds another version in the map.
 */
public final class ServingMapStress {
    private static final ModelRef A = ModelRef.latest("a");
    private static final ModelRef B = ModelRef.latest("b");
    private static final Map<String, VersionLabel> STABLE =
            Map.of("stable", new VersionLabel(List.of(new WeightedVersion(1, 1)), List.of()));

    private ServingMapStress() {}

    /** A registry whose models each have one available version. One actor acts as the manager thread. */
    public static class Registry {
        final ServableRegistry registry = new ServableRegistry();

        /** Makes a version available. */
        ManagedVersion available(String model, long version) {
            ModelVersions versions = registry.model(model);
            ManagedVersion v = new ManagedVersion(new ServableId(model, version), null);
            v.phase = Phase.AVAILABLE;
            v.live = new LiveServable(null, () -> v.phase = Phase.GONE);
            versions.versions.add(v);
            registry.changed(versions, v);
            return v;
        }

        /** Replaces a version by version 2. */
        void replace(String model, ManagedVersion old) {
            available(model, 2);
            ModelVersions versions = registry.model(model);
            old.phase = Phase.DRAINING;
            registry.changed(versions, old);
            registry.drain(old.live);
        }
    }

    /** One event changes two models. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both as before the event.")
    @Outcome(id = "2, 2", expect = ACCEPTABLE, desc = "Both as after the event.")
    @State
    public static class OneEvent extends Registry {
        private final ManagedVersion a = available("a", 1);
        private final ManagedVersion b = available("b", 1);

        public OneEvent() {
            registry.publish();
        }

        @Actor
        public void manager() {
            replace("a", a);
            replace("b", b);
            registry.publish();
        }

        @Actor
        public void reader(II_Result r) {
            ServingMap map = registry.map();
            r.r1 = version(map, A);
            r.r2 = version(map, B);
        }

        private static int version(ServingMap map, ModelRef ref) {
            ServingMap.Entry entry = map.entry(ref.model());
            LiveServable found = map.find(ref);
            if (entry == null || found == null || found != entry.lives().get(0)) {
                return -1;
            }
            return (int) (long) entry.versions().get(0);
        }
    }

    /** A request acquires the latest version, as {@code ServableManager.acquire} does, while it is replaced. */
    @JCStressTest
    @Outcome(id = "1, 0, 1", expect = ACCEPTABLE, desc = "Got the old version in time.")
    @Outcome(id = "2, 0, 1", expect = ACCEPTABLE, desc = "Found the new version.")
    @Outcome(
            id = "2, 1, 1",
            expect = ACCEPTABLE_INTERESTING,
            desc = "Read the old map, was refused, and found the new version.")
    @State
    public static class Transition extends Registry {
        private final ManagedVersion old = available("a", 1);
        private final LiveServable first = old.live;

        public Transition() {
            registry.publish();
        }

        @Actor
        public void manager() {
            replace("a", old);
            registry.publish();
        }

        @Actor
        public void request(III_Result r) {
            for (int refused = 0; refused < 3; refused++) {
                LiveServable live = registry.map().find(A);
                if (live == null) {
                    break;
                }
                int stripe = live.retain();
                if (stripe >= 0) {
                    r.r1 = live == first ? 1 : 2;
                    live.release(stripe);
                    r.r2 = refused;
                    return;
                }
            }
            r.r1 = -1;
        }

        @Arbiter
        public void end(III_Result r) {
            r.r3 = old.phase == Phase.GONE ? 1 : 0;
        }
    }

    /** Labels are set by one thread while the manager publishes an event. */
    @JCStressTest
    @Outcome(id = "true, true", expect = ACCEPTABLE, desc = "Both changes are in the map.")
    @State
    public static class LabelsAndEvent extends Registry {
        public LabelsAndEvent() {
            available("a", 1);
            registry.publish();
        }

        @Actor
        public void labels() {
            registry.labels("a", STABLE);
        }

        @Actor
        public void manager() {
            available("b", 1);
            registry.publish();
        }

        @Arbiter
        public void end(ZZ_Result r) {
            r.r1 = registry.map().find(new ModelRef("a", ModelRef.ANY, "stable")) != null;
            r.r2 = registry.map().find(B) != null;
        }
    }
}
