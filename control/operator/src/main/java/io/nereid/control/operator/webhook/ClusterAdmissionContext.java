// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ObjectCache;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What resources are validated against in a cluster: the ConfigMap, the runtimes and the storage containers, each kept up
 * to date by a watch. Every replica has one, since the API server asks any of them. A ConfigMap that cannot be read
 * counts as the defaults, so that it does not keep services from being written. Thread-safe.
 */
public final class ClusterAdmissionContext implements AdmissionContext, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterAdmissionContext.class);

    private final ObjectCache settings;
    private final ObjectCache runtimes;
    private final ObjectCache clusterRuntimes;
    private final ObjectCache containers;
    private final ClusterClient client;
    private final String namespace;
    private final Consumer<String> conditions;

    /**
     * Creates a context without starting its watches.
     *
     * @param namespace the namespace of the ConfigMap
     * @param conditions throws an exception for a condition of a graph's step that cannot be parsed
     */
    public ClusterAdmissionContext(ClusterClient client, String namespace, Consumer<String> conditions) {
        this.client = client;
        this.namespace = namespace;
        this.conditions = conditions;
        this.settings = new ObjectCache(
                client,
                ResourceKinds.CONFIG_MAP,
                Set.of(namespace),
                "",
                InferenceServiceConfig.CONFIG_MAP,
                ObjectCache.ObjectFilter.ALL);
        this.runtimes = all(client, ResourceKinds.SERVING_RUNTIME);
        this.clusterRuntimes = all(client, ResourceKinds.CLUSTER_SERVING_RUNTIME);
        this.containers = all(client, ResourceKinds.CLUSTER_STORAGE_CONTAINER);
    }

    private static ObjectCache all(ClusterClient client, ResourceKind kind) {
        return new ObjectCache(client, kind, Set.of(), "", ObjectCache.ObjectFilter.ALL);
    }

    /**
     * Starts the watches and waits until they have all objects.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit
     */
    public void start(Duration limit) {
        for (ObjectCache cache : List.of(settings, runtimes, clusterRuntimes, containers)) {
            cache.start(limit);
        }
    }

    @Override
    public InferenceServiceConfig config(String of) {
        return config(settings.get(namespace, InferenceServiceConfig.CONFIG_MAP), of);
    }

    private static InferenceServiceConfig config(@Nullable ObjectNode map, String of) {
        if (map == null) {
            return InferenceServiceConfig.defaults();
        }
        try {
            return InferenceServiceConfig.read(map).forNamespace(of);
        } catch (ServingException e) {
            LOG.warn("the ConfigMap {} cannot be read: {}", InferenceServiceConfig.CONFIG_MAP, e.describe());
            return InferenceServiceConfig.defaults();
        }
    }

    @Override
    public List<ClusterStorageContainer> storageContainers() {
        return read(containers.all(), "", ClusterStorageContainer::read);
    }

    @Override
    public List<ServingRuntime> runtimes(String of) {
        return read((of.isEmpty() ? clusterRuntimes : runtimes).all(), of, ServingRuntime::read);
    }

    /**
     * The same, read from the API server by every call: a watch may lag behind a resource that was written just before,
     * such as a storage container in the same file as the service that uses it.
     */
    public AdmissionContext latest() {
        return new AdmissionContext() {
            @Override
            public InferenceServiceConfig config(String of) {
                return ClusterAdmissionContext.config(
                        client.get(ResourceKinds.CONFIG_MAP, namespace, InferenceServiceConfig.CONFIG_MAP), of);
            }

            @Override
            public List<ClusterStorageContainer> storageContainers() {
                return read(
                        client.list(ResourceKinds.CLUSTER_STORAGE_CONTAINER, null), "", ClusterStorageContainer::read);
            }

            @Override
            public List<ServingRuntime> runtimes(String of) {
                ResourceKind kind =
                        of.isEmpty() ? ResourceKinds.CLUSTER_SERVING_RUNTIME : ResourceKinds.SERVING_RUNTIME;
                return read(client.list(kind, of.isEmpty() ? null : of), of, ServingRuntime::read);
            }

            @Override
            public void condition(String condition) {
                conditions.accept(condition);
            }
        };
    }

    /** The resources of a namespace that can be read; others were stored before there was a webhook. */
    private static <T> List<T> read(Collection<ObjectNode> all, String namespace, Function<ObjectNode, T> reader) {
        List<T> read = new ArrayList<>();
        for (ObjectNode one : all) {
            try {
                if (namespace.isEmpty() || ObjectMeta.read(one).namespace().equals(namespace)) {
                    read.add(reader.apply(one));
                }
            } catch (ServingException e) {
                LOG.debug("not read: {}", e.getMessage());
            }
        }
        return read;
    }

    @Override
    public void condition(String condition) {
        conditions.accept(condition);
    }

    @Override
    public void close() {
        for (ObjectCache cache : List.of(settings, runtimes, clusterRuntimes, containers)) {
            cache.close();
        }
    }
}
