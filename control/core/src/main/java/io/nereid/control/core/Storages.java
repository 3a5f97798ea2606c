// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core;

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

/** Where the files of a component come from. Stateless. */
final class Storages {
    /** What stands for a scheme that only the storage's secret knows. */
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

    private Storages() {}

    /** The artifacts of a component without a model. */
    static List<Artifact> artifacts(
            Scene scene,
            List<StorageUri> uris,
            @Nullable Container container,
            PodSpec pod,
            @Nullable String storageContainer) {
        return artifacts(scene, null, null, uris, container, pod, storageContainer);
    }

    /**
     * The artifacts of a component.
     *
     * @param uri its {@code storageUri}
     * @param storage its {@code storage}
     * @param uris its {@code storageUris}
     * @param container where {@code STORAGE_URI} may be set
     * @throws ServingException INVALID_ARGUMENT for what cannot be fetched
     */
    static List<Artifact> artifacts(
            Scene scene,
            @Nullable String uri,
            @Nullable StorageSpec storage,
            List<StorageUri> uris,
            @Nullable Container container,
            PodSpec pod,
            @Nullable String storageContainer) {
        String account = pod.serviceAccountName();
        List<Artifact> all = new ArrayList<>();
        if (storageContainer != null
                && scene.catalog.storageContainers().stream()
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
                    own == null ? PLACEHOLDER + path : checked(scene, own),
                    StorageUri.MODELS,
                    storage.key(),
                    storage.parameters(),
                    account,
                    storageContainer));
            if (storage.schemaPath() != null) {
                scene.advice.add("storage.schemaPath has no effect: models say their schema by themselves");
            }
        } else if (own != null && !own.isEmpty()) {
            all.add(new Artifact(checked(scene, own), StorageUri.MODELS, null, Map.of(), account, storageContainer));
        }
        for (StorageUri one : uris) {
            all.add(new Artifact(
                    checked(scene, one.uri()), one.mountPath(), null, Map.of(), account, storageContainer));
        }
        return List.copyOf(all);
    }

    private static String checked(Scene scene, String uri) {
        if (!SCHEME.matcher(uri).matches()
                || PREFIXES.stream().anyMatch(uri::startsWith)
                || scene.catalog.storageContainers().stream().anyMatch(one -> one.supports(uri))) {
            return uri;
        }
        throw ServingException.invalidArgument("StorageURI not supported: " + uri + "; expected a path or one of "
                + String.join(", ", PREFIXES) + ", or apply a ClusterStorageContainer that supports it");
    }
}
