// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What a gateway tells about its load: a line of JSON. The format is Nereid's own:
 *
 * <pre>{@code
 * {"wake": false, "revisions": [{"namespace": "default", "revision": "iris-predictor-00001", "replicas": 2,
 *   "concurrency": 3.4, "requestsPerSecond": 120, "waiting": 0, "active": 3,
 *   "lastMinute": {"requests": 7000, "errors": 2, "p99Millis": 31.5}}],
 *   "routes": [{"namespace": "default", "name": "iris", "digest": "5b0c2a1f"}]}
 * }</pre>
 *
 * <p>Immutable.
 *
 * @param wake false: the load of the last second of all revisions; true: requests began to wait at the revisions named,
 *     which have no pods, and their means are zero
 * @param revisions in no order
 * @param routes the routes that the gateway follows since the last report, and all of them in a watcher's first one; in
 *     no order. Null for a report that says nothing of routes
 */
record LoadReport(
        boolean wake,
        List<RevisionLoad> revisions,
        @Nullable List<FollowedRoute> routes) {
    private static final ObjectMapper JSON = new ObjectMapper();

    LoadReport {
        revisions = List.copyOf(revisions);
        routes = routes == null ? null : List.copyOf(routes);
    }

    LoadReport(boolean wake, List<RevisionLoad> revisions) {
        this(wake, revisions, null);
    }

    /** The report in one line, without an end of line. */
    String toJson() {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("wake", wake);
        ArrayNode list = tree.putArray("revisions");
        revisions.forEach(revision -> revision.write(list.addObject()));
        if (routes != null) {
            ArrayNode followed = tree.putArray("routes");
            routes.forEach(route -> route.write(followed.addObject()));
        }
        return tree.toString();
    }

    /** Reads a line; fails with INVALID_ARGUMENT for one that is not a report. */
    static LoadReport read(String line) {
        JsonNode tree;
        try {
            tree = JSON.readTree(line);
        } catch (JsonProcessingException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT, "a gateway's report is not JSON: " + e.getOriginalMessage(), e);
        }
        if (!tree.path("revisions").isArray()) {
            throw ServingException.invalidArgument("a gateway's report has no list of revisions");
        }
        List<RevisionLoad> revisions = new ArrayList<>();
        tree.path("revisions").forEach(revision -> revisions.add(RevisionLoad.read(revision)));
        List<FollowedRoute> routes = null;
        if (tree.path("routes").isArray()) {
            routes = new ArrayList<>();
            for (JsonNode route : tree.path("routes")) {
                routes.add(FollowedRoute.read(route));
            }
        }
        return new LoadReport(tree.path("wake").asBoolean(), revisions, routes);
    }
}
