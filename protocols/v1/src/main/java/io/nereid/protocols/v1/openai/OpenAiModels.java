// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Permission;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.spi.TextTasks;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.transport.api.HttpReply;

/** OpenAI's list of models: those that are available and have a task for texts. Thread-safe: immutable. */
public final class OpenAiModels {
    private final InferenceEngine engine;
    private final ModelControl control;
    private final long created;

    /** @param created the time at which the server started, in milliseconds since the epoch */
    public OpenAiModels(InferenceEngine engine, ModelControl control, long created) {
        this.engine = engine;
        this.control = control;
        this.created = created / 1000;
    }

    /** Appends the fields {@code object} and {@code data}, with the models that a caller may see. */
    public void list(Caller caller, StringBuilder to) {
        to.append("\"object\":\"list\",\"data\":[");
        String between = "";
        for (ModelStatus status : control.index()) {
            if (caller.may(Permission.METADATA, status.model()) && hasTask(status.model())) {
                to.append(between).append(describe(status.model()));
                between = ",";
            }
        }
        to.append(']');
    }

    private boolean hasTask(String model) {
        try {
            return engine.metadata(ModelRef.latest(model)).properties().containsKey(TextTasks.PROPERTY);
        } catch (ServingException e) {
            return false; // not available
        }
    }

    /** @throws ServingException NOT_FOUND for an unknown model, UNAVAILABLE for one that is not ready */
    String one(String model) {
        if (!control.ready(ModelRef.latest(model))) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "model '" + model + "' is not ready", "see /v1/models/" + model);
        }
        return describe(model);
    }

    private String describe(String model) {
        return "{\"id\":" + HttpReply.quote(model) + ",\"object\":\"model\",\"created\":" + created
                + ",\"owned_by\":\"\"}";
    }
}
