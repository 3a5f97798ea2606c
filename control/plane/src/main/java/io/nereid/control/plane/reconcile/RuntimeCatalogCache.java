// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.reconcile;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.runtime.RuntimeCatalog;
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
 * Caches the serving runtimes, storage containers and settings from the resource store, and the runtime catalog that
 * each namespace gets from them. Invalid resources are skipped and logged. Thread-safe: guarded by one lock.
 */
public final class RuntimeCatalogCache {
    private static final Logger LOG = LoggerFactory.getLogger(RuntimeCatalogCache.class);
    /**
     * Namespace of the ConfigMap with the defaults for all namespaces; one in another namespace applies to that one
     * only.
     */
    public static final String HOME = "kserve";

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock") private final Map<String, ObjectNode> runtimes = new TreeMap<>();

    @GuardedBy("lock") private final Map<String, ObjectNode> clusterRuntimes = new TreeMap<>();

    @GuardedBy("lock") private final Map<String, ObjectNode> containers = new TreeMap<>();

    @GuardedBy("lock") private final Map<String, ObjectNode> configs = new TreeMap<>();

    /** The engines that namespaces choose by their annotation, by the namespace's name. */
    @GuardedBy("lock") private final Map<String, ServingEngine> engines = new TreeMap<>();

    private final Map<String, RuntimeCatalog> catalogs = new ConcurrentHashMap<>();
    private final Supplier<RuntimeCatalog.Gateway> gateway;
    private final Supplier<InferenceServiceConfig> base;
    private final String home;
    private final boolean builtIn;

    /**
     * Creates an empty cache for the settings in the namespace {@value #HOME}.
     *
     * @param base the defaults, for settings that are not stored
     */
    public RuntimeCatalogCache(Supplier<RuntimeCatalog.Gateway> gateway, Supplier<InferenceServiceConfig> base) {
        this(gateway, base, HOME, true);
    }

    private RuntimeCatalogCache(
            Supplier<RuntimeCatalog.Gateway> gateway,
            Supplier<InferenceServiceConfig> base,
            String home,
            boolean builtIn) {
        this.gateway = gateway;
        this.base = base;
        this.home = home;
        this.builtIn = builtIn;
    }

    /**
     * Creates an empty cache for a cluster: all runtimes are stored ones, and models run in KServe's servers unless the
     * settings, the namespace or the service choose otherwise.
     *
     * @param home the namespace of the ConfigMap with the defaults for all namespaces
     */
    public static RuntimeCatalogCache ofCluster(String home) {
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("servingEngine", ServingEngine.KSERVE.text());
        InferenceServiceConfig base = InferenceServiceConfig.defaults().with(settings);
        return new RuntimeCatalogCache(() -> RuntimeCatalog.Gateway.UNKNOWN, () -> base, home, false);
    }

    /** The namespace of the ConfigMap with the defaults for all namespaces. */
    public String home() {
        return home;
    }

    /** How the catalog uses a resource. */
    public enum Role {
        RUNTIME,
        CLUSTER_RUNTIME,
        STORAGE_CONTAINER,
        CONFIG,
        NAMESPACE
    }

    /**
     * Stores or removes a resource, and drops the cached catalogs.
     *
     * @return whether the catalogs may have changed
     */
    public boolean put(Role role, ObjectNode resource, boolean gone) {
        if (role == Role.NAMESPACE) {
            return namespace(resource, gone);
        }
        String namespace = resource.path("metadata").path("namespace").asText("");
        String key = namespace + "/" + resource.path("metadata").path("name").asText();
        lock.lock();
        try {
            Map<String, ObjectNode> of = switch (role) {
                case RUNTIME -> runtimes;
                case CLUSTER_RUNTIME -> clusterRuntimes;
                case STORAGE_CONTAINER -> containers;
                case CONFIG, NAMESPACE -> configs;
            };
            if (gone) {
                of.remove(role == Role.CONFIG ? namespace : key);
            } else {
                of.put(role == Role.CONFIG ? namespace : key, resource);
            }
            catalogs.clear();
            return true;
        } finally {
            lock.unlock();
        }
    }

    private boolean namespace(ObjectNode resource, boolean gone) {
        String name = resource.path("metadata").path("name").asText();
        ServingEngine engine = null;
        try {
            engine = gone ? null : ServingEngine.chosenBy(ObjectMeta.read(resource));
        } catch (ServingException e) {
            LOG.error("Namespace {} chooses no engine: {}", name, e.describe());
        }
        lock.lock();
        try {
            ServingEngine before = engine == null ? engines.remove(name) : engines.put(name, engine);
            if (before == engine) {
                return false;
            }
            catalogs.clear();
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the catalog of a namespace. */
    public RuntimeCatalog of(String namespace) {
        RuntimeCatalog known = catalogs.get(namespace);
        if (known != null) {
            return known;
        }
        lock.lock();
        try {
            List<ObjectNode> own = runtimes.values().stream()
                    .filter(r -> r.path("metadata").path("namespace").asText().equals(namespace))
                    .toList();
            InferenceServiceConfig config = base.get();
            for (String of : List.of(home, namespace)) {
                ObjectNode tree = configs.get(of);
                if (tree != null) {
                    try {
                        config = config.with(tree);
                    } catch (ServingException e) {
                        LOG.error(
                                "ConfigMap {}/{} is skipped: {}", of, InferenceServiceConfig.CONFIG_MAP, e.describe());
                    }
                }
            }
            List<ServingRuntime> ofNamespace = read(own, ServingRuntime::read);
            List<ServingRuntime> ofCluster = read(clusterRuntimes.values(), ServingRuntime::read);
            List<ClusterStorageContainer> storage = read(containers.values(), ClusterStorageContainer::read);
            RuntimeCatalog catalog = (builtIn
                            ? RuntimeCatalog.of(ofNamespace, ofCluster, storage, config, gateway.get())
                            : new RuntimeCatalog(ofNamespace, ofCluster, storage, config, gateway.get()))
                    .withNamespaceEngine(engines.get(namespace));
            catalogs.put(namespace, catalog);
            return catalog;
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
                        "{} {} is skipped: {}",
                        tree.path("kind").asText(),
                        tree.path("metadata").path("name").asText(),
                        e.describe());
            }
        }
        return all;
    }
}
