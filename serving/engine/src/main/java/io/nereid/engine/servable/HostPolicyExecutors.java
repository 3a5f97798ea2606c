// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.execution.InstancePlacements;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.HostPolicy;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread pools of runs: the common one; one for each host policy, which binds its threads to processors; and one for
 * each GPU, or set of GPUs, that models run on. The threads of a GPU wait for it most of the time: there are as many as
 * runs, so that the copies of one run go on beside the computation of another, and no thread of a processor waits for a
 * GPU. Thread-safe.
 */
final class HostPolicyExecutors implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(HostPolicyExecutors.class);

    private final DeviceExecutor common;
    private final Map<String, DeviceExecutor> pools = new LinkedHashMap<>();
    private final Map<String, HostPolicy> policies = new LinkedHashMap<>();
    private final Map<String, DeviceExecutor> gpus = new ConcurrentHashMap<>();
    private final Clock clock;

    /**
     * Creates the pools.
     *
     * @param common the pool for models without a policy; not closed by this
     * @param settings settings of CPU and memory-node affinity by host policy name
     * @param maxThreads the most threads of one pool; a pool has no more threads than its policy has processors
     * @throws ServingException INVALID_ARGUMENT for an invalid policy, FAILED_PRECONDITION for one that this machine
     *     does not support
     */
    HostPolicyExecutors(DeviceExecutor common, Map<String, Map<String, String>> settings, int maxThreads, Clock clock) {
        this.common = common;
        this.clock = clock;
        try {
            settings.forEach((name, own) -> {
                String text = own.entrySet().stream()
                        .map(e -> e.getKey() + "=" + e.getValue())
                        .collect(Collectors.joining(","));
                HostPolicy policy = HostPolicy.parse(name + "," + text);
                int threads = Math.min(maxThreads, policy.cores().cardinality());
                policies.put(name, policy);
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
                names.addAll(policies(config, group));
            }
        }
        if (names.size() > 1) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "' has instance groups of different host policies: " + names
                            + " (expected: one for all)",
                    "give all groups the same host_policy");
        }
        String name = names.isEmpty() ? "" : names.iterator().next();
        Set<Integer> ordinals = InstancePlacements.gpus(config);
        if (!ordinals.isEmpty()) {
            return ofGpus(ordinals, policies.get(name));
        }
        DeviceExecutor pool = pools.get(name);
        return pool == null ? common : pool;
    }

    private DeviceExecutor ofGpus(Set<Integer> ordinals, @Nullable HostPolicy policy) {
        String name = ordinals.stream().map(String::valueOf).collect(Collectors.joining("-", "gpu-", ""));
        return policy == null
                ? gpus.computeIfAbsent(name, n -> DeviceExecutor.forWaitingRuns(n, clock))
                : gpus.computeIfAbsent(
                        name + "-" + policy.name(), n -> DeviceExecutor.forWaitingRuns(n, clock, policy));
    }

    /** The names of the policies that apply to the instances of a group; an empty one for instances without a policy. */
    private Set<String> policies(ModelConfig config, InstanceGroup group) {
        String name = group.hostPolicy();
        if (!name.isEmpty()) {
            if (!pools.containsKey(name)) {
                LOG.warn(
                        "model '{}' names host policy '{}', which the server does not have (--host-policy"
                                + " {},cpu-cores=...)",
                        config.name(),
                        name,
                        name);
            }
            return Set.of(known(name));
        }
        // Triton's implicit policy names for groups without one
        return switch (group.kind()) {
            case CPU, AUTO -> Set.of(known("cpu"));
            case MODEL -> Set.of(known("model"));
            case GPU -> group.gpus().stream().map(g -> known("gpu_" + g)).collect(Collectors.toSet());
        };
    }

    private String known(String policy) {
        return pools.containsKey(policy) ? policy : "";
    }

    @Override
    public void close() {
        pools.values().forEach(DeviceExecutor::close);
        gpus.values().forEach(DeviceExecutor::close);
    }
}
