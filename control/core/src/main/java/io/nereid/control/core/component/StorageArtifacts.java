// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.InferenceService.StorageSpec;
import io.nereid.control.api.InferenceService.StorageUri;
import io.nereid.control.api.PodSpec;
import io.nereid.control.core.Workload.Artifact;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Plans the artifacts of a component: the files to download and their mount paths. Stateless. */
final class StorageArtifacts {
    /** Placeholder for the scheme when only the entry of the storage secret determines it. */
    static final String PLACEHOLDER = "<scheme-placeholder>://";

    private static final List<String> PREFIXES = List.of(
            "gs://",
            "s3://",
            "pvc://",
            "file://",
            "https://",
            "http://",
            "hdfs://",
            "webhdfs://",
            "oci://",
            "oci+native://",
            "oci+fetch://",
            "oci+modelcar://",
            "hf://");

    private static final Pattern SCHEME = Pattern.compile("[A-Za-z0-9+.-]+://.+");

    private StorageArtifacts() {}

    /** The artifacts of a component without a model. */
    static List<Artifact> artifacts(
            PlanningContext context,
            List<StorageUri> uris,
            @Nullable Container container,
            PodSpec pod,
            @Nullable String storageContainer) {
        return artifacts(context, null, null, uris, container, pod, storageContainer);
    }

    /**
     * The artifacts of a component.
     *
     * @param uri its {@code storageUri}
     * @param storage its {@code storage}
     * @param uris its {@code storageUris}
     * @param container the container whose environment may contain {@code STORAGE_URI}
     * @throws ServingException INVALID_ARGUMENT for an unsupported URI
     */
    static List<Artifact> artifacts(
            PlanningContext context,
            @Nullable String uri,
            @Nullable StorageSpec storage,
            List<StorageUri> uris,
            @Nullable Container container,
            PodSpec pod,
            @Nullable String storageContainer) {
        String account = pod.serviceAccountName();
        List<Artifact> all = new ArrayList<>();
        if (storageContainer != null
                && context.catalog.storageContainers().stream()
                        .noneMatch(one -> one.metadata().name().equals(storageContainer))) {
            throw ServingException.invalidArgument("storageContainerName: there is no ClusterStorageContainer \""
                    + storageContainer + "\"; apply it, or leave the name out");
        }
        String env = container == null ? null : container.env("STORAGE_URI");
        String own = uri == null || uri.isEmpty() ? env : uri;
        if (storage != null && uri != null && !uri.isEmpty() && storage.path() != null) {
            throw ServingException.invalidArgument("storageUri and storage.path are both set; leave one of them out");
        }
        if (storage != null) {
            String path = storage.path() == null ? "" : storage.path();
            all.add(new Artifact(
                    own == null ? PLACEHOLDER + path : checked(context, own),
                    StorageUri.MODELS,
                    storage.key(),
                    storage.parameters(),
                    account,
                    storageContainer));
            if (storage.schemaPath() != null) {
                context.advice.add("storage.schemaPath has no effect: the schema is read from the model");
            }
        } else if (own != null && !own.isEmpty()) {
            all.add(new Artifact(checked(context, own), StorageUri.MODELS, null, Map.of(), account, storageContainer));
        }
        for (StorageUri one : uris) {
            all.add(new Artifact(
                    checked(context, one.uri()), one.mountPath(), null, Map.of(), account, storageContainer));
        }
        return List.copyOf(all);
    }

    private static String checked(PlanningContext context, String uri) {
        if (!SCHEME.matcher(uri).matches()
                || PREFIXES.stream().anyMatch(uri::startsWith)
                || context.catalog.storageContainers().stream().anyMatch(one -> one.supports(uri))) {
            return uri;
        }
        throw ServingException.invalidArgument("StorageURI not supported: " + uri + "; expected a path or one of "
                + String.join(", ", PREFIXES) + ", or apply a ClusterStorageContainer that supports it");
    }
}
