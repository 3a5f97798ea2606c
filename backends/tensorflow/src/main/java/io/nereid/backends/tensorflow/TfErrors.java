// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.Locale;

/** Turns the engine's failures into ours. Immutable. */
final class TfErrors {
    private TfErrors() {}

    /** The engine could not load a model. */
    static ServingException loading(String model, Path file, Status status) {
        String text = status.text();
        if (status.code() == ErrorCode.RESOURCE_EXHAUSTED) {
            return ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "not enough memory to load model '" + model + "' from '" + file + "': " + text,
                    "free memory or serve fewer models");
        }
        String lower = text.toLowerCase(Locale.ROOT);
        String remedy;
        if (lower.contains("op type not registered")) {
            remedy = "the model uses an operator that this engine does not have; give its library in"
                    + " model_operations, or export the model with standard operators";
        } else if (lower.contains("variables") || lower.contains("no such file") || lower.contains("not found")) {
            remedy = "copy the whole SavedModel: saved_model.pb, and the directories variables and assets beside it";
        } else if (lower.contains("graphdef version") || lower.contains("producer")) {
            remedy = "export the model with an older TensorFlow";
        } else {
            remedy = "check the model with saved_model_cli and export it again";
        }
        return ServingException.invalidArgument(
                "unable to load model '" + model + "' from '" + file + "': " + text, remedy);
    }

    /** A run failed. */
    static ServingException running(String model, Status status) {
        ErrorCode code = status.code();
        String text = status.text();
        return switch (code) {
            // Operators say so of what they are given: shapes that do not fit together, indices out of range.
            case INVALID_ARGUMENT, OUT_OF_RANGE, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, UNIMPLEMENTED ->
                ServingException.of(code, "model '" + model + "' refused the input: " + text);
            case RESOURCE_EXHAUSTED ->
                ServingException.of(code, "not enough memory to run model '" + model + "': " + text);
            case CANCELLED, DEADLINE_EXCEEDED, ABORTED, UNAVAILABLE ->
                ServingException.of(code, "the run of model '" + model + "' was ended: " + text);
            default -> ServingException.of(ErrorCode.INTERNAL, "tensorflow error in model '" + model + "': " + text);
        };
    }
}
