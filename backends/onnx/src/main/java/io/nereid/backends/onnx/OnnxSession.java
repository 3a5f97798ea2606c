// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * An ONNX Runtime session together with the {@link SessionOptions} that it depends on. Closing the options unloads the
 * libraries of custom operators that are registered with them, and a later run would call unmapped code. So the options
 * of a session with such libraries stay open until the session is closed; otherwise they are closed at once. Immutable;
 * one owner calls {@link #close()} once, after the last run.
 *
 * @param session the session
 * @param options closed after the session, or null if already closed
 */
record OnnxSession(OrtSession session, @Nullable SessionOptions options) {
    static OnnxSession open(OrtRuntime engine, Path file, OrtSettings settings, ExecutionProviders placement)
            throws OrtException {
        SessionOptions options = settings.open();
        boolean kept = false;
        try {
            placement.applyTo(options);
            OrtSession session = engine.environment().createSession(file.toString(), options);
            kept = !placement.libraries().isEmpty();
            return new OnnxSession(session, kept ? options : null);
        } finally {
            if (!kept) {
                options.close();
            }
        }
    }

    void close() throws OrtException {
        try {
            session.close();
        } finally {
            if (options != null) {
                options.close();
            }
        }
    }
}
