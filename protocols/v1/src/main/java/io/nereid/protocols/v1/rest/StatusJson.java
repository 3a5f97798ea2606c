// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import io.nereid.spi.management.ModelStatus;
import io.nereid.spi.management.VersionLabel;
import io.nereid.transport.api.HttpReply;
import java.util.List;

/**
 * The status of a model as JSON: for all versions, with the keys of KServe ({@code name}, {@code ready}) and of TensorFlow
 * Serving, or with the latter alone for those that a version number or a label selects. Immutable.
 */
final class StatusJson {
    private final String model;
    private final List<ServableState> versions;

    /**
     * Selects the versions that {@code ref} refers to.
     *
     * @throws ServingException NOT_FOUND for an unknown version, INVALID_ARGUMENT for an unknown label
     */
    StatusJson(ModelStatus status, ModelRef ref) {
        this.model = status.model();
        String name = ref.label();
        if (name != null) {
            VersionLabel label = status.labels().get(name);
            if (label == null) {
                throw ServingException.invalidArgument(
                        "Unrecognized servable version label: " + name,
                        status.labels().isEmpty()
                                ? "model '" + model + "' has no labels"
                                : "model '" + model + "' has the labels "
                                        + String.join(", ", status.labels().keySet()));
            }
            this.versions = status.versions().stream()
                    .filter(v -> label.targets().stream().anyMatch(t -> t.version() == v.id().version()))
                    .toList();
        } else if (ref.version() != ModelRef.ANY) {
            this.versions = status.versions().stream()
                    .filter(v -> v.id().version() == ref.version())
                    .toList();
            if (versions.isEmpty()) {
                throw ServingException.of(
                        ErrorCode.NOT_FOUND, "Could not find version " + ref.version() + " of model " + model);
            }
        } else {
            this.versions = status.versions();
        }
    }

    /** The selected versions. */
    List<ServableState> versions() {
        return versions;
    }

    /** The body of the model's own path, which KServe's clients read as well. */
    String write(boolean ready) {
        StringBuilder b = new StringBuilder("{\"name\":").append(HttpReply.quote(model));
        b.append(",\"ready\":").append(ready);
        if (!ready) {
            b.append(",\"error\":").append(HttpReply.quote("Model with name " + model + " is not ready."));
        }
        return states(b.append(",")).toString();
    }

    /** The body of the paths of versions and labels, which only TensorFlow Serving has. */
    String write() {
        return states(new StringBuilder("{")).toString();
    }

    private StringBuilder states(StringBuilder b) {
        b.append("\"model_version_status\":[");
        for (int i = 0; i < versions.size(); i++) {
            ServableState v = versions.get(i);
            String reason = v.reason();
            b.append(i == 0 ? "" : ",")
                    .append("{\"version\":\"")
                    .append(v.id().version())
                    .append("\",\"state\":\"")
                    .append(state(v.phase()))
                    .append("\",\"status\":{\"error_code\":\"")
                    .append(v.phase() == ServableState.Phase.FAILED ? "UNKNOWN" : "OK")
                    .append("\",\"error_message\":")
                    .append(HttpReply.quote(reason == null ? "" : reason))
                    .append("}}");
        }
        return b.append("]}");
    }

    private static String state(ServableState.Phase phase) {
        return switch (phase) {
            case TRACKED -> "START";
            case LOADING, WARMING -> "LOADING";
            case AVAILABLE -> "AVAILABLE";
            case DRAINING, UNLOADING -> "UNLOADING";
            case GONE, FAILED -> "END";
        };
    }
}
