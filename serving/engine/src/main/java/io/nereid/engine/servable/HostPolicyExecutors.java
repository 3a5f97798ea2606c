// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.HostPolicy;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread pools by host policy: one for each policy that binds threads to processors, and the common one.
 * Immutable.
 */
final class HostPolicyExecutors implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(HostPolicyExecutors.class);

    private final DeviceExecutor common;
    private final Map<String, DeviceExecutor> pools = new LinkedHashMap<>();

    /**
     * Creates the pools.
     *
     * @param common the pool for models without a policy; not closed by this
     * @param policies settings of CPU and memory-node affinity by host policy name
     * @param maxThreads the most threads of one pool; a pool has no more threads than its policy has processors
     * @throws ServingException INVALID_ARGUMENT for an invalid policy, FAILED_PRECONDITION for one that this machine
     *     does not support
     */
    HostPolicyExecutors(DeviceExecutor common, Map<String, Map<String, String>> policies, int maxThreads, Clock clock) {
        this.common = common;
        try {
            policies.forEach((name, settings) -> {
                String text = settings.entrySet().stream()
                        .map(e -> e.getKey() + "=" + e.getValue())
                        .collect(Collectors.joining(","));
                HostPolicy policy = HostPolicy.parse(name + "," + text);
                int threads = Math.min(maxThreads, policy.cores().cardinality());
                pools.put(name, new DeviceExecutor("device-" + name, threads, clock, policy));
            });
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /**
     * Returns the pool for a model's runs.
     *
     * @throws ServingException INVALID_ARGUMENT when its instance groups name different policies
     */
    DeviceExecutor of(ModelConfig config) {
        Set<String> names = new LinkedHashSet<>();
        for (InstanceGroup group : config.instanceGroups()) {
            if (!group.passive()) {
                names.add(policy(config, group));
            }
        }
        if (names.size() > 1) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has instance groups of different host policies: " + names
                            + " (expected: one for all)",
                    "give all groups the same host_policy");
        }
        DeviceExecutor pool =
                names.isEmpty() ? null : pools.get(names.iterator().next());
        return pool == null ? common : pool;
    }

    /** The name of the policy that applies to a group, or empty. */
    private String policy(ModelConfig config, InstanceGroup group) {
        String name = group.hostPolicy();
        if (name.isEmpty()) {
            // Triton's implicit policy names for groups without one
            name = switch (group.kind()) {
                case CPU, AUTO -> "cpu";
                case MODEL -> "model";
                case GPU -> group.gpus().isEmpty() ? "" : "gpu_" + group.gpus().get(0);
            };
        } else if (!pools.containsKey(name)) {
            LOG.warn(
                    "model '{}' names host policy '{}', which the server does not have (--host-policy"
                            + " {},cpu-cores=...)",
                    config.name(),
                    name,
                    name);
        }
        return pools.containsKey(name) ? name : "";
    }

    @Override
    public void close() {
        pools.values().forEach(DeviceExecutor::close);
    }
}
