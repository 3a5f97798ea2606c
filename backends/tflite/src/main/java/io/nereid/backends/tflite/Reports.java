// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import java.util.regex.Pattern;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorflowlite.Reporter_Pointer_BytePointer_Pointer;
import org.jspecify.annotations.Nullable;

/** Hears what the engine says of its failures, on the thread that it fails on. Thread-safe. */
final class Reports extends Reporter_Pointer_BytePointer_Pointer {
    private static final int MOST = 2000;
    private static final Pattern GAP = Pattern.compile("%[-+ #0-9.]*[hlzjt]*[a-zA-Z]");

    private static final ThreadLocal<@Nullable StringBuilder> HEARD = new ThreadLocal<>();

    Reports() {}

    /** Begins to listen on this thread. */
    void listen() {
        HEARD.set(new StringBuilder());
    }

    /** What was said since then, in one line; ends listening. */
    String heard() {
        StringBuilder said = HEARD.get();
        HEARD.remove();
        return said == null ? "" : said.toString().strip();
    }

    /** Called by the engine. Must not throw. */
    @Override
    public void call(Pointer unused, BytePointer format, Pointer arguments) {
        StringBuilder said = HEARD.get();
        if (said == null || said.length() > MOST) {
            return;
        }
        try {
            said.append(said.length() == 0 ? "" : "; ");
            // What belongs in the gaps comes as C's list of arguments, which the binding has no way to read.
            said.append(GAP.matcher(format.getString()).replaceAll("…").strip().replaceAll("\\s+", " "));
        } catch (RuntimeException e) {
            said.append("the engine's message cannot be read");
        }
    }
}
