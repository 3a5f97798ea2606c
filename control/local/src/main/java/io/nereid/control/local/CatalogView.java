// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.StorageContainer;
import io.nereid.control.core.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runtimes and settings as they were heard of last, and the catalogue of each namespace made of them. A resource that cannot be
 * read is left out, and logged. Thread-safe: one lock.
 */
final class CatalogView {
    private static final Logger LOG = LoggerFactory.getLogger(CatalogView.class);
    /** Where KServe's own ConfigMap lies; those of other namespaces hold for these alone. */
    static final String HOME = "kserve";

    private final ReentrantLock lock = new ReentrantLock();
    private final Map<String, ObjectNode> runtimes = new TreeMap<>();
    private final Map<String, ObjectNode> clusterRuntimes = new TreeMap<>();
    private final Map<String, ObjectNode> containers = new TreeMap<>();
    private final Map<String, ObjectNode> configs = new TreeMap<>();
    private final Map<String, Catalog> catalogs = new ConcurrentHashMap<>();
    private final Supplier<Catalog.Gateway> gateway;
    private final Supplier<ServiceConfig> base;

    /** @param base the settings where none are stored */
    CatalogView(Supplier<Catalog.Gateway> gateway, Supplier<ServiceConfig> base) {
        this.gateway = gateway;
        this.base = base;
    }

    /** What a resource is here. */
    enum Role {
        RUNTIME,
        CLUSTER_RUNTIME,
        STORAGE_CONTAINER,
        CONFIG
    }

    /** Hears of a resource, or of its end. */
    void put(Role role, ObjectNode resource, boolean gone) {
        String namespace = resource.path("metadata").path("namespace").asText("");
        String key = namespace + "/" + resource.path("metadata").path("name").asText();
        lock.lock();
        try {
            Map<String, ObjectNode> of = switch (role) {
                case RUNTIME -> runtimes;
                case CLUSTER_RUNTIME -> clusterRuntimes;
                case STORAGE_CONTAINER -> containers;
                case CONFIG -> configs;
            };
            if (gone) {
                of.remove(role == Role.CONFIG ? namespace : key);
            } else {
                of.put(role == Role.CONFIG ? namespace : key, resource);
            }
            catalogs.clear();
        } finally {
            lock.unlock();
        }
    }

    /** The catalogue for a namespace. */
    Catalog of(String namespace) {
        Catalog known = catalogs.get(namespace);
        if (known != null) {
            return known;
        }
        lock.lock();
        try {
            List<ObjectNode> own = runtimes.values().stream()
                    .filter(r -> r.path("metadata").path("namespace").asText().equals(namespace))
                    .toList();
            ServiceConfig config = base.get();
            for (String of : List.of(HOME, namespace)) {
                ObjectNode tree = configs.get(of);
                if (tree != null) {
                    try {
                        config = config.with(tree);
                    } catch (ServingException e) {
                        LOG.error("ConfigMap {}/{} is passed over: {}", of, ServiceConfig.CONFIG_MAP, e.describe());
                    }
                }
            }
            Catalog made = Catalog.of(
                    read(own, ServingRuntime::read),
                    read(clusterRuntimes.values(), ServingRuntime::read),
                    read(containers.values(), StorageContainer::read),
                    config,
                    gateway.get());
            catalogs.put(namespace, made);
            return made;
        } finally {
            lock.unlock();
        }
    }

    private static <T> List<T> read(Iterable<ObjectNode> trees, Function<ObjectNode, T> reader) {
        List<T> all = new ArrayList<>();
        for (ObjectNode tree : trees) {
            try {
                all.add(reader.apply(tree));
            } catch (ServingException e) {
                LOG.error(
                        "{} {} is passed over: {}",
                        tree.path("kind").asText(),
                        tree.path("metadata").path("name").asText(),
                        e.describe());
            }
        }
        return all;
    }
}
