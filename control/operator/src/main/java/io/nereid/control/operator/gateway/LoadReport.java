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

/**
 * What a gateway tells about its load: a line of JSON. The format is Nereid's own:
 *
 * <pre>{@code
 * {"wake": false, "revisions": [{"namespace": "default", "revision": "iris-predictor-00001", "replicas": 2,
 *   "concurrency": 3.4, "requestsPerSecond": 120, "waiting": 0, "active": 3}]}
 * }</pre>
 *
 * <p>Immutable.
 *
 * @param wake false: the load of the last second of all revisions; true: requests began to wait at the revisions named,
 *     which have no pods, and their means are zero
 * @param revisions in no order
 */
record LoadReport(boolean wake, List<RevisionLoad> revisions) {
    private static final ObjectMapper JSON = new ObjectMapper();

    LoadReport {
        revisions = List.copyOf(revisions);
    }

    /** The report in one line, without an end of line. */
    String toJson() {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("wake", wake);
        ArrayNode list = tree.putArray("revisions");
        revisions.forEach(revision -> revision.write(list.addObject()));
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
        return new LoadReport(tree.path("wake").asBoolean(), revisions);
    }
}
