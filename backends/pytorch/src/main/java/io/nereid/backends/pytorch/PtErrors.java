// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Converts libtorch's exceptions to {@link ServingException}s with a code and a remedy. libtorch's messages are long
 * traces; one line of them has the reason: the first when loading, the last when running. Immutable.
 */
final class PtErrors {
    private static final String RUNTIME_ERROR = "RuntimeError: ";

    private PtErrors() {}

    /** libtorch could not load a model. The remedy is chosen by libtorch's message. */
    static ServingException loading(String model, Path file, RuntimeException e) {
        String text = first(e);
        String remedy;
        if (text.contains("Unknown builtin op") || text.contains("Unknown custom class")) {
            remedy = "the model uses an operator of a library that libtorch does not have, such as torchvision's:"
                    + " save the model without it, or export it to ONNX";
        } else if (text.contains("version") && text.contains("supported")) {
            remedy = "save the model with PyTorch 2.7 or older";
        } else {
            remedy = "load the file with torch.jit.load in Python, and save it again";
        }
        return ServingException.wrap(
                memory(text) ? ErrorCode.RESOURCE_EXHAUSTED : ErrorCode.INVALID_ARGUMENT,
                "unable to load model '" + model + "' from '" + file + "': " + text,
                remedy,
                e);
    }

    /** A run failed. libtorch reports no codes, so every failure but one of memory is attributed to the input. */
    static ServingException running(String model, RuntimeException e) {
        String text = last(e);
        return memory(text)
                ? ServingException.of(
                        ErrorCode.RESOURCE_EXHAUSTED, "not enough memory to run model '" + model + "': " + text)
                : ServingException.invalidArgument("model '" + model + "' rejected the input: " + text);
    }

    private static boolean memory(String text) {
        String lower = text.toLowerCase(Locale.ROOT);
        return lower.contains("can't allocate memory") || lower.contains("not enough memory");
    }

    private static String first(RuntimeException e) {
        String found = "";
        for (String line : text(e).split("\n")) {
            String stripped = line.strip();
            if (stripped.startsWith("Unknown ")) {
                return stripped;
            }
            found = found.isEmpty() ? stripped : found;
        }
        return found;
    }

    private static String last(RuntimeException e) {
        String found = "";
        for (String line : text(e).split("\n")) {
            String stripped = line.strip();
            if (stripped.startsWith("Exception raised from") || stripped.startsWith("frame #")) {
                break;
            }
            found = stripped.isEmpty() ? found : stripped;
        }
        return found.startsWith(RUNTIME_ERROR) ? found.substring(RUNTIME_ERROR.length()) : found;
    }

    private static String text(RuntimeException e) {
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }
}
