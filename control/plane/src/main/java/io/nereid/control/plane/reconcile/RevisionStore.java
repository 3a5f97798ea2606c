// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane.reconcile;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Workload.Component;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** Stores the revisions of each service as an internal resource, so that they survive a restart. Thread-safe. */
public final class RevisionStore implements RevisionArchive {
    /** The type of the internal resource. */
    public static final ResourceStore.Type REVISIONS = new ResourceStore.Type("internal.nereid.io", "revisions");

    private final ResourceStore store;

    public RevisionStore(ResourceStore store) {
        this.store = store;
    }

    @Override
    public List<Revision> read(String namespace, String service, String uid) {
        ObjectNode tree = store.get(new ResourceStore.Key(REVISIONS, namespace, service));
        if (tree == null || !tree.path("owner").asText().equals(uid)) {
            return List.of();
        }
        List<Revision> revisions = new ArrayList<>();
        for (JsonNode r : tree.path("revisions")) {
            revisions.add(new Revision(
                    Component.valueOf(r.path("component").asText()),
                    r.path("number").asInt(),
                    r.path("name").asText(),
                    r.path("fingerprint").asText(),
                    r.path("workload"),
                    Instant.parse(r.path("created").asText())));
        }
        return List.copyOf(revisions);
    }

    @Override
    public void write(String namespace, String service, String uid, List<Revision> revisions) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("apiVersion", "internal.nereid.io/v1");
        tree.put("kind", "Revisions");
        tree.putObject("metadata").put("name", service).put("namespace", namespace);
        tree.put("owner", uid);
        ArrayNode all = tree.putArray("revisions");
        for (Revision r : revisions) {
            ObjectNode one = all.addObject();
            one.put("component", r.component().name());
            one.put("number", r.number());
            one.put("name", r.name());
            one.put("fingerprint", r.fingerprint());
            one.set("workload", r.workload());
            one.put("created", r.created().toString());
        }
        if (store.get(new ResourceStore.Key(REVISIONS, namespace, service)) == null) {
            store.create(REVISIONS, tree);
        } else {
            store.update(REVISIONS, tree, null);
        }
    }

    @Override
    public void delete(String namespace, String service) {
        try {
            store.delete(new ResourceStore.Key(REVISIONS, namespace, service), null);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
        }
    }
}
