// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

import io.nereid.control.api.ServiceConfig;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.StorageContainer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What services are planned with, beside what they say themselves. Immutable.
 *
 * @param namespaceRuntimes the ServingRuntimes of the service's namespace, in any order
 * @param clusterRuntimes the ClusterServingRuntimes, in any order; with {@link BuiltInRuntimes#all()}, unless a stored one has
 *     the same name: {@link #of} sees to that
 * @param storageContainers the ClusterStorageContainers
 * @param config the settings of all namespaces; the planner takes those of the service's
 * @param gateway where clients on this machine reach the gateway by HTTP and by gRPC
 */
public record Catalog(
        List<ServingRuntime> namespaceRuntimes,
        List<ServingRuntime> clusterRuntimes,
        List<StorageContainer> storageContainers,
        ServiceConfig config,
        Gateway gateway) {
    /** Copies the lists. */
    public Catalog {
        namespaceRuntimes = List.copyOf(namespaceRuntimes);
        clusterRuntimes = List.copyOf(clusterRuntimes);
        storageContainers = List.copyOf(storageContainers);
    }

    /** A catalogue of what is stored, and of the built-in runtimes that no stored ClusterServingRuntime takes the name of. */
    public static Catalog of(
            List<ServingRuntime> namespaceRuntimes,
            List<ServingRuntime> clusterRuntimes,
            List<StorageContainer> storageContainers,
            ServiceConfig config,
            Gateway gateway) {
        return new Catalog(
                namespaceRuntimes, BuiltInRuntimes.with(clusterRuntimes), storageContainers, config, gateway);
    }

    /** The built-in runtimes and everything as by default. */
    public static Catalog builtIn() {
        return of(List.of(), List.of(), List.of(), ServiceConfig.defaults(), Gateway.UNKNOWN);
    }

    /**
     * Addresses such as {@code localhost:8080}.
     *
     * @param http null when unknown: statuses then have no {@code restUrl}
     * @param grpc null when unknown: statuses then have no {@code grpcUrl}
     */
    public record Gateway(@Nullable String http, @Nullable String grpc) {
        /** Nothing is known. */
        public static final Gateway UNKNOWN = new Gateway(null, null);
    }
}
