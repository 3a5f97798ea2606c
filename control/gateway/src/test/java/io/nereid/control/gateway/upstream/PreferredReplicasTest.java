// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.upstream;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.control.gateway.upstream.ReplicaBalancer.Endpoint;
import io.nereid.control.gateway.upstream.RevisionTarget.Replica;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Replicas in the own zone, and the others. */
class PreferredReplicasTest {
    private final Random random = new Random(1);
    private final ReplicaBalancer balancer =
            ReplicaBalancer.NONE.with(List.of(replica("far", false), replica("near", true), replica("next", true)));

    private static Replica replica(String host, boolean preferred) {
        return new Replica(host, 8080, 0, preferred);
    }

    private @Nullable Endpoint take(ReplicaBalancer from, int limit, List<Endpoint> tried) {
        return from.take(limit, tried, random::nextInt);
    }

    private String host(ReplicaBalancer from, int limit) {
        Endpoint taken = take(from, limit, List.of());
        return taken == null ? "" : taken.replica.host();
    }

    @Test
    void withoutALimitOthersGetNothing() {
        for (int i = 0; i < 200; i++) {
            assertThat(host(balancer, 0)).isIn("near", "next");
        }
        assertThat(balancer.size()).isEqualTo(3);
    }

    @Test
    void withALimitOthersGetWhatIsTooMuch() {
        List<String> taken = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            taken.add(host(balancer, 2));
        }
        assertThat(taken.subList(0, 4)).containsOnly("near", "next");
        assertThat(taken.subList(4, 6)).containsOnly("far");
        assertThat(host(balancer, 2)).as("all are at their limit").isNotEmpty();
    }

    @Test
    void othersAreTriedWhenThePreferredOnesDoNotAnswer() {
        List<Endpoint> tried = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            Endpoint endpoint = take(balancer, 0, tried);
            assertThat(endpoint).isNotNull();
            tried.add(endpoint);
        }
        Endpoint last = take(balancer, 0, tried);
        assertThat(last).isNotNull();
        assertThat(last.replica.host()).isEqualTo("far");
        tried.add(last);
        assertThat(take(balancer, 0, tried)).isNull();
    }

    @Test
    void aChangeOfPreferenceKeepsTheCounts() {
        Endpoint near = take(balancer.with(List.of(replica("near", true))), 0, List.of());
        assertThat(near).isNotNull();
        ReplicaBalancer one = ReplicaBalancer.NONE.with(List.of(replica("near", true), replica("far", false)));
        Endpoint before = take(one, 1, List.of());
        assertThat(before).isNotNull();
        ReplicaBalancer next = one.with(List.of(replica("near", false), replica("far", true)));
        assertThat(host(next, 1)).isEqualTo("far");
        before.release();
        assertThat(host(next, 1)).isEqualTo("near");
    }
}
