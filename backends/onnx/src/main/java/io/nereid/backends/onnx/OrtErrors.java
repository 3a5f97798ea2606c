// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtException.OrtErrorCode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Converts ONNX Runtime's exceptions to {@link ServingException}s with a code and a remedy. Immutable. */
final class OrtErrors {
    /** The prefix in {@code Error code - ORT_FAIL - message: file.cc:12 Name text}, which does not help a user. */
    private static final Pattern PREFIX =
            Pattern.compile("^(Error code - \\w+ - message:\\s*)?(\\S+\\.(cc|h):\\d+ [^\\n]*?(\\) |: )(?=\\S))?");

    private OrtErrors() {}

    /** ONNX Runtime could not load a model. The remedy is chosen by ONNX Runtime's message. */
    static ServingException loading(String model, Path file, OrtException e) {
        String text = text(e);
        String lower = text.toLowerCase(Locale.ROOT);
        String remedy;
        if (lower.contains("not a registered function/op") || lower.contains("is not a registered")) {
            remedy = "the model uses an operator this server does not have; export it with standard operators, or put"
                    + " the library that has it beside the model and name it in model_operations {"
                    + " op_library_filename }";
        } else if (lower.contains("ir version") || lower.contains("opset")) {
            remedy = "export the model for an older opset or IR version";
        } else if (lower.contains("external")
                || lower.contains("no such file")
                || lower.contains("cannot get file size")) {
            remedy = "copy the files with the model's weights beside it, under their names";
        } else if (e.getCode() == OrtErrorCode.ORT_INVALID_PROTOBUF || lower.contains("protobuf")) {
            remedy = "the file is damaged, truncated, or not an ONNX model; copy it again";
        } else {
            remedy = "check the model with onnx.checker and export it again";
        }
        if (outOfMemory(lower)) {
            return ServingException.wrap(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "not enough memory to load model '" + model + "' from '" + file + "': " + text,
                    "free memory or serve fewer models",
                    e);
        }
        return ServingException.wrap(
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model '" + model + "' from '" + file + "': " + text,
                remedy,
                e);
    }

    /** A run failed. */
    static ServingException running(String model, OrtException e) {
        String text = text(e);
        String lower = text.toLowerCase(Locale.ROOT);
        if (outOfMemory(lower)) {
            return ServingException.wrap(
                    ErrorCode.RESOURCE_EXHAUSTED, "not enough memory to run model '" + model + "': " + text, e);
        }
        // Nodes fail on their inputs (shapes that do not match, indices out of range), so the request is at fault.
        boolean rejected = e.getCode() == OrtErrorCode.ORT_INVALID_ARGUMENT
                || (lower.contains("while running ")
                        && !lower.contains("cuda failure")
                        && !lower.contains("cudnn failure")
                        && !lower.contains("enqueue failed"));
        return ServingException.wrap(
                rejected ? ErrorCode.INVALID_ARGUMENT : ErrorCode.INTERNAL,
                rejected
                        ? "model '" + model + "' rejected the input: " + text
                        : "onnx runtime error in model '" + model + "': " + text,
                e);
    }

    /** Whether a run failed because a pinned output has another shape than the computed result. */
    static boolean isShapeMismatch(OrtException e) {
        String text = e.getMessage();
        return text != null && text.contains("computed output shape");
    }

    private static boolean outOfMemory(String lower) {
        return lower.contains("failed to allocate memory")
                || lower.contains("cuda failure 2:")
                || lower.contains("cuda error cudaerrormemoryallocation")
                || lower.contains("cuda_error_out_of_memory")
                || lower.contains("bad_alloc")
                || lower.contains("bad alloc");
    }

    static String text(@Nullable Throwable e) {
        String message = e == null ? null : e.getMessage();
        if (message == null) {
            return "no reason given";
        }
        String text = PREFIX.matcher(message.strip()).replaceFirst("").strip();
        int end = text.indexOf("\nStacktrace");
        text = (end > 0 ? text.substring(0, end) : text)
                .replaceAll("\\s*\\R\\s*", " ")
                .strip();
        return text.length() > 600 ? text.substring(0, 600) + "…" : text;
    }
}
