// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.runtime;

import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The runtimes, storage containers and settings that services are planned with. Immutable.
 *
 * <pre>{@code
 * RuntimeSelection selection = RuntimeSelection.of(service, RuntimeCatalog.builtIn());
 * }</pre>
 *
 * @param namespaceRuntimes the ServingRuntimes of the service's namespace, in any order
 * @param clusterRuntimes the ClusterServingRuntimes, in any order. {@link #of} adds {@link BuiltInRuntimes#all()},
 *     except those with the name of a stored one
 * @param storageContainers the ClusterStorageContainers
 * @param config the settings of all namespaces; the planner uses those of the service's namespace
 * @param gateway the addresses under which clients on this machine reach the gateway
 * @param namespaceEngine the engine that the service's namespace chooses by its annotation; null for none
 */
public record RuntimeCatalog(
        List<ServingRuntime> namespaceRuntimes,
        List<ServingRuntime> clusterRuntimes,
        List<ClusterStorageContainer> storageContainers,
        InferenceServiceConfig config,
        Gateway gateway,
        @Nullable ServingEngine namespaceEngine) {
    /** A catalog of a namespace that chooses no engine. */
    public RuntimeCatalog(
            List<ServingRuntime> namespaceRuntimes,
            List<ServingRuntime> clusterRuntimes,
            List<ClusterStorageContainer> storageContainers,
            InferenceServiceConfig config,
            Gateway gateway) {
        this(namespaceRuntimes, clusterRuntimes, storageContainers, config, gateway, null);
    }

    /** Copies the lists. */
    public RuntimeCatalog {
        namespaceRuntimes = List.copyOf(namespaceRuntimes);
        clusterRuntimes = List.copyOf(clusterRuntimes);
        storageContainers = List.copyOf(storageContainers);
    }

    /** A catalog of stored resources, and of the built-in runtimes whose names no stored ClusterServingRuntime has. */
    public static RuntimeCatalog of(
            List<ServingRuntime> namespaceRuntimes,
            List<ServingRuntime> clusterRuntimes,
            List<ClusterStorageContainer> storageContainers,
            InferenceServiceConfig config,
            Gateway gateway) {
        return new RuntimeCatalog(
                namespaceRuntimes, BuiltInRuntimes.with(clusterRuntimes), storageContainers, config, gateway);
    }

    /** This catalog, of a namespace that chooses this engine; null for none. */
    public RuntimeCatalog withNamespaceEngine(@Nullable ServingEngine engine) {
        return new RuntimeCatalog(namespaceRuntimes, clusterRuntimes, storageContainers, config, gateway, engine);
    }

    /**
     * The engine that a service, or else its namespace, chooses by the annotation {@value ServingEngine#ANNOTATION}; null
     * when neither does.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for an unknown value of the service's annotation
     */
    public @Nullable ServingEngine chosenEngine(ObjectMeta service) {
        ServingEngine own = ServingEngine.chosenBy(service);
        return own == null ? namespaceEngine : own;
    }

    /**
     * The engine for the models of a service: the chosen one, else that of the settings; null for any.
     *
     * @throws io.nereid.base.ServingException as {@link #chosenEngine}
     */
    public @Nullable ServingEngine engine(ObjectMeta service) {
        ServingEngine chosen = chosenEngine(service);
        return chosen == null ? config.forNamespace(service.namespace()).servingEngine() : chosen;
    }

    /** A catalog of the built-in runtimes with the default settings. */
    public static RuntimeCatalog builtIn() {
        return of(List.of(), List.of(), List.of(), InferenceServiceConfig.defaults(), Gateway.UNKNOWN);
    }

    /**
     * The addresses of the gateway, such as {@code localhost:8080}.
     *
     * @param http null when unknown: statusWriter then have no {@code restUrl}
     * @param grpc null when unknown: statusWriter then have no {@code grpcUrl}
     */
    public record Gateway(@Nullable String http, @Nullable String grpc) {
        /** Both addresses are unknown. */
        public static final Gateway UNKNOWN = new Gateway(null, null);
    }
}
