// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.testing.kubernetes.TestCluster;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** An operator of a test, with connections of its own, that leads from the start on. Closing it ends all of it. */
final class RunningOperator implements AutoCloseable {
    private final KubernetesClient own;
    private final KubernetesClient leases;
    private final Operator operator;

    /** Starts an operator; blocks until it leads. */
    RunningOperator(TestCluster cluster, OperatorOptions options) {
        own = cluster.connect();
        leases = cluster.connect();
        operator = new Operator(options, own, leases, () -> {});
        operator.start();
        long end = System.nanoTime() + Duration.ofMinutes(5).toNanos();
        while (!operator.isLeader()) {
            assertThat(System.nanoTime()).as("the operator leads").isLessThan(end);
            LockSupport.parkNanos(50_000_000);
        }
    }

    boolean isLeader() {
        return operator.isLeader();
    }

    @Override
    public void close() {
        operator.close();
        own.close();
        leases.close();
    }
}
