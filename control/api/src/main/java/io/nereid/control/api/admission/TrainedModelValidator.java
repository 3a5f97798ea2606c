// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ValidationErrors;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Validates models of services that serve many. Confined to one admission. */
final class TrainedModelValidator {
    /** The name is part of the path of requests. */
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-]+");

    private static final Pattern URI = Pattern.compile("[A-Za-z][-A-Za-z0-9+.]*://.+");

    /** Schemes of files that are where the server is: in a cluster, the pod has no volume for one model of many. */
    private static final Set<String> VOLUMES = Set.of("pvc", "file");

    private final Site site;
    private final ValidationErrors problems;

    TrainedModelValidator(Site site, ValidationErrors problems) {
        this.site = site;
        this.problems = problems;
    }

    /** @param old the stored resource; null on creation */
    void check(ObjectNode resource, @Nullable ObjectNode old) {
        String name = resource.path("metadata").path("name").asText("");
        if (!NAME.matcher(name).matches()) {
            problems.add(
                    "metadata.name",
                    "\"" + ValidationErrors.clip(name) + "\" must consist of letters, digits, '-' or '_': it is part of"
                            + " the path of requests");
        }
        JsonNode spec = resource.path("spec");
        ObjectMetaValidator.serviceName(
                "spec.inferenceService", spec.path("inferenceService").asText(""), problems);
        JsonNode model = spec.path("model");
        if (model.path("framework").asText("").isBlank()) {
            problems.add("spec.model.framework", "empty; expected a model format such as sklearn");
        }
        uri(model.path("storageUri").asText(""));
        JsonNode memory = model.path("memory");
        if (Quantity.parse(memory.asText()).value().signum() <= 0) {
            problems.add(
                    "spec.model.memory", memory.asText() + " is not more than 0; expected a quantity such as 256Mi");
        }
        if (old != null) {
            JsonNode before = old.path("spec").path("model");
            if (before.has("memory")
                    && Quantity.parse(before.path("memory").asText())
                                    .value()
                                    .compareTo(Quantity.parse(memory.asText()).value())
                            != 0) {
                fixed("memory", before);
            }
            if (before.has("framework") && !before.path("framework").equals(model.path("framework"))) {
                fixed("framework", before);
            }
        }
    }

    private void uri(String uri) {
        String path = "spec.model.storageUri";
        if (!URI.matcher(uri).matches()) {
            problems.add(path, "\"" + ValidationErrors.clip(uri) + "\"; expected a URI such as gs://models/iris");
            return;
        }
        String scheme = uri.substring(0, uri.indexOf(':')).toLowerCase(Locale.ROOT);
        if (site != Site.ONE_MACHINE && VOLUMES.contains(scheme)) {
            problems.add(
                    path,
                    "\"" + ValidationErrors.clip(uri) + "\" needs a volume in the pods of the service; expected a store"
                            + " that they can reach, such as gs://models/iris");
        }
    }

    private void fixed(String field, JsonNode before) {
        problems.add(
                "spec.model." + field,
                "cannot be changed from \""
                        + ValidationErrors.clip(before.path(field).asText(""))
                        + "\"; delete the resource and create another one");
    }
}
