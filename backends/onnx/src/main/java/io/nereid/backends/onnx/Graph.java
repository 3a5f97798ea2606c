// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A session, with the options it was made with where these hold on to libraries of operators: closing the options unloads
 * the libraries, and a run after that would jump into nothing. Immutable.
 *
 * @param session the session
 * @param options to be closed after it, or null
 */
record Graph(OrtSession session, @Nullable SessionOptions options) {
    static Graph open(OrtRuntime engine, Path file, OrtSettings settings, Placement placement) throws OrtException {
        SessionOptions options = settings.open();
        boolean kept = false;
        try {
            placement.applyTo(options);
            OrtSession session = engine.environment().createSession(file.toString(), options);
            kept = !placement.libraries().isEmpty();
            return new Graph(session, kept ? options : null);
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
