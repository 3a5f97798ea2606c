// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.graph.GjsonPath;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the current settings and runtimes from the store, for admission. Thread-safe. */
final class ControlPlaneSettings implements AdmissionContext {
    /**
     * Namespace of the ConfigMap with the defaults for all namespaces; one in another namespace applies to that one
     * only.
     */
    private static final String HOME = "kserve";

    private static final Logger LOG = LoggerFactory.getLogger(ControlPlaneSettings.class);

    private final ResourceStore store;
    private final Supplier<InferenceServiceConfig> base;

    /** @param base the defaults, for settings that are not stored */
    ControlPlaneSettings(ResourceStore store, Supplier<InferenceServiceConfig> base) {
        this.store = store;
        this.base = base;
    }

    @Override
    public InferenceServiceConfig config(String namespace) {
        InferenceServiceConfig config = base.get();
        for (String of : List.of(HOME, namespace)) {
            ObjectNode tree = store.get(
                    new ResourceStore.Key(type(ResourceKinds.CONFIG_MAP), of, InferenceServiceConfig.CONFIG_MAP));
            if (tree != null) {
                try {
                    config = config.with(tree);
                } catch (ServingException e) {
                    LOG.error("ConfigMap {}/{} is skipped: {}", of, InferenceServiceConfig.CONFIG_MAP, e.describe());
                }
            }
        }
        return config;
    }

    @Override
    public List<ClusterStorageContainer> storageContainers() {
        return all(ResourceKinds.CLUSTER_STORAGE_CONTAINER, null, ClusterStorageContainer::read);
    }

    @Override
    public List<ServingRuntime> runtimes(String namespace) {
        return namespace.isEmpty()
                ? all(ResourceKinds.CLUSTER_SERVING_RUNTIME, null, ServingRuntime::read)
                : all(ResourceKinds.SERVING_RUNTIME, namespace, ServingRuntime::read);
    }

    @Override
    public void condition(String condition) {
        GjsonPath unused = GjsonPath.parse(condition);
    }

    /** Returns the runtime catalog of a namespace. */
    RuntimeCatalog catalog(String namespace) {
        ObjectNode stored = store.get(new ResourceStore.Key(type(ResourceKinds.NAMESPACE), "", namespace));
        ServingEngine engine = stored == null ? null : ServingEngine.chosenBy(ObjectMeta.read(stored));
        return RuntimeCatalog.of(
                        runtimes(namespace),
                        runtimes(""),
                        storageContainers(),
                        config(namespace),
                        RuntimeCatalog.Gateway.UNKNOWN)
                .withNamespaceEngine(engine);
    }

    private <T> List<T> all(ResourceKind kind, @Nullable String namespace, Function<ObjectNode, T> read) {
        List<T> all = new ArrayList<>();
        for (ObjectNode tree : store.list(type(kind), namespace).items()) {
            try {
                all.add(read.apply(tree));
            } catch (ServingException e) {
                LOG.error(
                        "{} {} is skipped: {}",
                        kind.kind(),
                        tree.path("metadata").path("name"),
                        e.describe());
            }
        }
        return all;
    }

    private static ResourceStore.Type type(ResourceKind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }
}
