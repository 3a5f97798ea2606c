// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.revision;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.core.Revision;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.operator.objects.ObjectTrimmer;
import io.nereid.control.plane.reconcile.RevisionArchive;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the revisions of each service in a ConfigMap {@code SERVICE-revisions}, which the service owns, so that it goes
 * with the service. It has the label {@value #LABEL}, and the revisions as a JSON array in {@value #KEY}; the format is
 * Nereid's own, that of {@link Revision#toTree}. Reads come from a cache. Thread-safe for different services.
 */
public final class ClusterRevisions implements RevisionArchive, AutoCloseable {
    private static final String LABEL = "nereid.io/revisions";
    private static final String KEY = "revisions.json";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final ClusterClient client;
    private final ObjectCache maps;

    /** @param namespaces the namespaces to watch; empty for all */
    public ClusterRevisions(ClusterClient client, Set<String> namespaces) {
        this.client = client;
        this.maps = new ObjectCache(client, ResourceKinds.CONFIG_MAP, namespaces, LABEL, ObjectTrimmer::resource);
    }

    /**
     * Starts the watch and waits until all revisions are known.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        maps.start(limit);
    }

    private static String name(String service) {
        return service + "-revisions";
    }

    private @Nullable String stored(String namespace, String service, String uid) {
        ObjectNode map = maps.get(namespace, name(service));
        if (map == null
                || !map.path("metadata")
                        .path("ownerReferences")
                        .path(0)
                        .path("uid")
                        .asText()
                        .equals(uid)) {
            return null;
        }
        return map.path("data").path(KEY).asText("[]");
    }

    @Override
    public List<Revision> read(String namespace, String service, String uid) {
        String stored = stored(namespace, service, uid);
        if (stored == null) {
            return List.of();
        }
        List<Revision> revisions = new ArrayList<>();
        try {
            for (JsonNode tree : JSON.readTree(stored)) {
                revisions.add(Revision.read(tree));
            }
        } catch (JsonProcessingException e) {
            throw ServingException.internal(
                    "the ConfigMap " + namespace + "/" + name(service)
                            + " with the revisions of the service is not JSON; delete it, and the service starts with"
                            + " revision 00001",
                    e);
        }
        return List.copyOf(revisions);
    }

    @Override
    public void write(String namespace, String service, String uid, List<Revision> revisions) {
        ArrayNode all = JSON.createArrayNode();
        revisions.forEach(revision -> all.add(revision.toTree()));
        String text = all.toString();
        // Numbers that were read differ in type from those that were planned, and so does a revision that is the same.
        if (text.equals(stored(namespace, service, uid))) {
            return;
        }
        ObjectNode map = new Owner("serving.kserve.io/v1beta1", "InferenceService", service, namespace, uid)
                .object(
                        "v1",
                        "ConfigMap",
                        name(service),
                        Map.of(LABEL, "true", "serving.kserve.io/inferenceservice", service),
                        Map.of());
        map.putObject("data").put(KEY, text);
        maps.written(client.apply(ResourceKinds.CONFIG_MAP, map));
    }

    @Override
    public void delete(String namespace, String service) {
        if (maps.get(namespace, name(service)) != null) {
            client.delete(ResourceKinds.CONFIG_MAP, namespace, name(service), null);
        }
    }

    @Override
    public void close() {
        maps.close();
    }
}
