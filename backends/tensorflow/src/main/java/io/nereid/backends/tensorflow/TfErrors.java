// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.Locale;

/** Converts TensorFlow's failures to {@link ServingException}s with a code and a remedy. Immutable. */
final class TfErrors {
    private TfErrors() {}

    /** TensorFlow could not load a model. The remedy is chosen by TensorFlow's message. */
    static ServingException loading(String model, Path file, TfStatus status) {
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
            remedy = "the model uses an operator that this build of TensorFlow does not have; name its library in"
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
    static ServingException running(String model, TfStatus status) {
        ErrorCode code = status.code();
        String text = status.text();
        return switch (code) {
            // Operators report these codes for their inputs: shapes that do not match, indices out of range.
            case INVALID_ARGUMENT, OUT_OF_RANGE, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, UNIMPLEMENTED ->
                ServingException.of(code, "model '" + model + "' rejected the input: " + text);
            case RESOURCE_EXHAUSTED ->
                ServingException.of(code, "not enough memory to run model '" + model + "': " + text);
            case CANCELLED, DEADLINE_EXCEEDED, ABORTED, UNAVAILABLE ->
                ServingException.of(code, "the run of model '" + model + "' was ended: " + text);
            default -> ServingException.of(ErrorCode.INTERNAL, "tensorflow error in model '" + model + "': " + text);
        };
    }
}
