// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.install;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.yaml.ManifestReader;
import io.nereid.control.kubernetes.apply.ApplyDifference;
import io.nereid.control.operator.cluster.ClusterClient;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the runtimes and the storage container of an installation, which are files of a mounted ConfigMap, and brings
 * them up to date. kubectl cannot create them together with their definitions. Fields that others have changed stay as
 * they are; a resource that is not wanted is disabled, since a deleted one is created again. Thread-safe; {@link #apply}
 * blocks for one or two requests for each resource.
 *
 * <pre>{@code
 * new BuiltInResources(client, Path.of("/etc/nereid/built-in"), options.watchNamespaces()).apply();
 * }</pre>
 */
public final class BuiltInResources {
    /** The field manager of what this class writes. */
    public static final String FIELD_MANAGER = "nereid-built-in";

    private static final Logger LOG = LoggerFactory.getLogger(BuiltInResources.class);

    private final ClusterClient client;
    private final List<ObjectNode> resources;
    private final Set<String> namespaces;

    /**
     * Reads the resources.
     *
     * @param directory has a file of YAML for each resource
     * @param namespaces where resources with a namespace are created; empty if there are none of them
     * @throws ServingException FAILED_PRECONDITION when the directory cannot be read; INVALID_ARGUMENT for a file that
     *     is not a resource
     */
    public BuiltInResources(ClusterClient client, Path directory, Set<String> namespaces) {
        this.client = client;
        this.resources = read(directory);
        this.namespaces = Set.copyOf(namespaces);
    }

    /** Creates and updates all resources. One that cannot be written does not keep the others from it; the log says why. */
    public void apply() {
        for (ObjectNode resource : resources) {
            ResourceKind kind = ResourceKinds.of(resource);
            if (!kind.namespaced()) {
                apply(kind, resource);
                continue;
            }
            for (String namespace : namespaces) {
                ObjectNode own = resource.deepCopy();
                own.withObjectProperty("metadata").put("namespace", namespace);
                apply(kind, own);
            }
        }
    }

    private void apply(ResourceKind kind, ObjectNode resource) {
        String name = kind.kind() + " " + resource.path("metadata").path("name").asText();
        try {
            JsonNode metadata = resource.path("metadata");
            ObjectNode stored = client.get(
                    kind,
                    metadata.path("namespace").asText(null),
                    metadata.path("name").asText());
            if (stored != null && ApplyDifference.find(resource, stored, FIELD_MANAGER) == null) {
                return;
            }
            client.applyAs(FIELD_MANAGER, kind, resource);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ABORTED || e.code() == ErrorCode.ALREADY_EXISTS) {
                LOG.info("{} has been changed by others and stays as it is: {}", name, e.getMessage());
            } else {
                LOG.warn("{} cannot be written: {}", name, e.describe());
            }
        }
    }

    /** All resources as one text, which differs when one of them does. */
    public String text() {
        StringBuilder text = new StringBuilder();
        resources.forEach(resource -> text.append(resource).append('\n'));
        return text.toString();
    }

    private static List<ObjectNode> read(Path directory) {
        List<ObjectNode> all = new ArrayList<>();
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : files.filter(one -> one.toString().endsWith(".yaml"))
                    .sorted()
                    .toList()) {
                all.addAll(ManifestReader.parse(Files.readString(file), file.toString()));
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "the built-in resources in '" + directory + "' cannot be read: " + e.getMessage(),
                    "mount the ConfigMap nereid-built-in-resources there, or leave out --built-in-resources",
                    e);
        }
        return all;
    }
}
