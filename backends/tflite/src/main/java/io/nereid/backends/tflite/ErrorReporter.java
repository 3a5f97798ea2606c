// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import java.util.regex.Pattern;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.Reporter_Pointer_BytePointer_Pointer;
import org.jspecify.annotations.Nullable;

/**
 * TensorFlow Lite's error reporter: collects the messages of failed calls. TensorFlow Lite reports on the thread that
 * calls it, so the messages are collected per thread, between {@link #startCollecting} and {@link #takeMessages}.
 * Thread-safe; one for the process, because each callback object needs a native function pointer of its own.
 */
final class ErrorReporter extends Reporter_Pointer_BytePointer_Pointer {
    private static final int MAX_LENGTH = 2000;
    /** A conversion of a C format string, such as {@code %d}. */
    private static final Pattern CONVERSION = Pattern.compile("%[-+ #0-9.]*[hlzjt]*[a-zA-Z]");

    private static final ThreadLocal<@Nullable StringBuilder> MESSAGES = new ThreadLocal<>();

    ErrorReporter() {}

    /** Starts to collect this thread's messages; drops those collected before. */
    void startCollecting() {
        MESSAGES.set(new StringBuilder());
    }

    /** Stops collecting and returns this thread's messages in one line, empty if there are none. */
    String takeMessages() {
        StringBuilder messages = MESSAGES.get();
        MESSAGES.remove();
        return messages == null ? "" : messages.toString().strip();
    }

    /** Called by TensorFlow Lite. Must not throw, because the exception would pass through native code. */
    @Override
    public void call(Pointer unused, BytePointer format, Pointer arguments) {
        StringBuilder messages = MESSAGES.get();
        if (messages == null || messages.length() > MAX_LENGTH) {
            return;
        }
        try {
            messages.append(messages.length() == 0 ? "" : "; ");
            // The arguments come as a C va_list, which JavaCPP cannot read.
            messages.append(CONVERSION
                    .matcher(format.getString())
                    .replaceAll("…")
                    .strip()
                    .replaceAll("\\s+", " "));
        } catch (RuntimeException e) {
            messages.append("TensorFlow Lite's message cannot be read");
        }
    }
}
