// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ValidationErrors;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Validates the kinds for models that are downloaded in advance. Confined to one admission. */
final class LocalModelValidator {
    private final Site site;
    private final ValidationErrors problems;
    private final List<String> warnings;

    LocalModelValidator(Site site, ValidationErrors problems, List<String> warnings) {
        this.site = site;
        this.problems = problems;
        this.warnings = warnings;
    }

    /** @param old the stored resource; null on creation */
    void check(ResourceKind kind, ObjectNode resource, @Nullable ObjectNode old) {
        JsonNode spec = resource.path("spec");
        if (kind.equals(ResourceKinds.LOCAL_MODEL_NODE_GROUP)) {
            positive("spec.storageLimit", spec.path("storageLimit"));
            if (site == Site.ONE_MACHINE) {
                warnings.add(
                        "spec.persistentVolumeSpec and spec.persistentVolumeClaimSpec have no effect on one machine:"
                                + " models are in the cache of the server");
            } else {
                volume(spec.path("persistentVolumeSpec"));
            }
        } else if (kind.equals(ResourceKinds.LOCAL_MODEL_NODE)) {
            // In a cluster the operator writes it, and would read the warning alone.
            if (site == Site.ONE_MACHINE) {
                warnings.add("a LocalModelNode is written by the server: one that is applied has no effect");
            }
        } else {
            cache(spec, old);
        }
    }

    /** Every node must have a folder of its own: agents that share one would remove the files of each other. */
    private void volume(JsonNode spec) {
        String path = spec.path("hostPath").path("path").asText("")
                + spec.path("local").path("path").asText("");
        if (!path.startsWith("/") || path.equals("/")) {
            problems.add(
                    "spec.persistentVolumeSpec",
                    "expected hostPath.path or local.path, an absolute path on the nodes other than /, found "
                            + ValidationErrors.clip(spec.toString()));
        }
    }

    private void cache(JsonNode spec, @Nullable ObjectNode old) {
        positive("spec.modelSize", spec.path("modelSize"));
        String uri = spec.path("sourceModelUri").asText("");
        if (uri.isBlank()) {
            problems.add("spec.sourceModelUri", "empty; expected the URI of a model such as s3://models/iris");
        } else if (old != null
                && !old.path("spec").path("sourceModelUri").asText("").equals(uri)) {
            problems.add(
                    "spec.sourceModelUri",
                    "cannot be changed from \""
                            + ValidationErrors.clip(
                                    old.path("spec").path("sourceModelUri").asText(""))
                            + "\"; delete the resource and create another one");
        }
        if (spec.path("nodeGroups").isEmpty()) {
            problems.add("spec.nodeGroups", "empty; expected one LocalModelNodeGroup at least");
        }
    }

    private void positive(String path, JsonNode quantity) {
        if (Quantity.parse(quantity.asText()).value().signum() <= 0) {
            problems.add(path, quantity.asText() + " is not more than 0; expected a size such as 2Gi");
        }
    }
}
