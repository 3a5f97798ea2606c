// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;

/** A server's readiness probe as the JSON that KServe's agent reads, with the API server's defaults. Stateless. */
final class ProbeText {
    private ProbeText() {}

    static String of(JsonNode probe) {
        ObjectNode text = Trees.object();
        if (probe.path("httpGet") instanceof ObjectNode get) {
            ObjectNode copy = get.deepCopy();
            copy.put("path", get.path("path").asText("/"));
            copy.put("scheme", get.path("scheme").asText("HTTP"));
            text.set("httpGet", copy);
        } else {
            text.set("tcpSocket", probe.path("tcpSocket").deepCopy());
        }
        if (probe.path("initialDelaySeconds").asInt() > 0) {
            text.put("initialDelaySeconds", probe.path("initialDelaySeconds").asInt());
        }
        text.put("timeoutSeconds", probe.path("timeoutSeconds").asInt(1));
        text.put("periodSeconds", probe.path("periodSeconds").asInt(10));
        text.put("successThreshold", probe.path("successThreshold").asInt(1));
        text.put("failureThreshold", probe.path("failureThreshold").asInt(3));
        return text.toString();
    }
}
