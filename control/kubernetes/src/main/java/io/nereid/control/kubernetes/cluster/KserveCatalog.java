// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ClusterStorageContainer;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.yaml.ManifestReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * KServe's own runtimes, storage container and settings, of version 0.20.0, as data files of this module: what an
 * installation of KServe has when nothing of it is changed. Stateless.
 */
public final class KserveCatalog {
    private KserveCatalog() {}

    /** The manifests of the ClusterServingRuntimes with KServe's images, and of its ClusterStorageContainer. */
    public static List<ObjectNode> manifests() {
        return read("kserve-runtimes.yaml");
    }

    /** KServe's ClusterServingRuntimes. */
    public static List<ServingRuntime> runtimes() {
        return manifests().stream()
                .filter(one -> one.path("kind").asText().equals("ClusterServingRuntime"))
                .map(ServingRuntime::read)
                .toList();
    }

    /** KServe's ClusterStorageContainers. */
    public static List<ClusterStorageContainer> storageContainers() {
        return manifests().stream()
                .filter(one -> one.path("kind").asText().equals("ClusterStorageContainer"))
                .map(ClusterStorageContainer::read)
                .toList();
    }

    /** The values of KServe's ConfigMap {@code inferenceservice-config}, a tree for each key. */
    public static ObjectNode settings() {
        return read("kserve-config.yaml").get(0);
    }

    private static List<ObjectNode> read(String file) {
        try (InputStream stream = KserveCatalog.class.getResourceAsStream(file)) {
            if (stream == null) {
                throw new IllegalStateException("the data file " + file + " is missing from the module's jar");
            }
            return ManifestReader.parse(new String(stream.readAllBytes(), StandardCharsets.UTF_8), file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
