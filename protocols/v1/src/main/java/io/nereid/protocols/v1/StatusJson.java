// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.endpoint.HttpReply;
import io.nereid.spi.ModelControl.ModelStatus;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ServableState;
import java.util.List;

/** A model's status with the keys of KServe ({@code name}, {@code ready}) and of TensorFlow Serving. */
final class StatusJson {
    private final String model;
    private final List<ServableState> versions;

    StatusJson(ModelStatus status, long version) {
        this.model = status.model();
        this.versions = version == ModelRef.ANY
                ? status.versions()
                : status.versions().stream()
                        .filter(v -> v.id().version() == version)
                        .toList();
        if (version != ModelRef.ANY && versions.isEmpty()) {
            throw ServingException.of(
                    Code.NOT_FOUND, "Could not find version " + version + " of model " + status.model());
        }
    }

    String write(boolean ready) {
        StringBuilder b = new StringBuilder("{\"name\":").append(HttpReply.quote(model));
        b.append(",\"ready\":").append(ready);
        if (!ready) {
            b.append(",\"error\":").append(HttpReply.quote("Model with name " + model + " is not ready."));
        }
        b.append(",\"model_version_status\":[");
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
        return b.append("]}").toString();
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
