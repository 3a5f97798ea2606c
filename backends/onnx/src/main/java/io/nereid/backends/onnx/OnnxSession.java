// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import io.nereid.backend.WideRuns;
import io.nereid.backends.onnx.engine.EngineCache;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * An ONNX Runtime session together with the {@link SessionOptions} that it depends on. Closing the options unloads the
 * libraries of custom operators that are registered with them, and a later run would call unmapped code. So the options
 * of a session with such libraries stay open until the session is closed; otherwise they are closed at once.
 *
 * <p>A result may be a view of the session's memory (a constant output even of its weights), so each viewed result holds a
 * reference on the session, which is closed when the last one is given back. The count starts at 1 for the one that opened
 * it. Thread-safe.
 */
final class OnnxSession implements WideRuns.RunVariant {
    private static final Logger LOG = System.getLogger(OnnxSession.class.getName());

    private final String model;
    private final OrtSession session;
    /** Closed after the session; null if already closed. */
    private final @Nullable SessionOptions options;

    /** The engines of TensorRT, closed after the session; null without them. */
    private final @Nullable EngineCache engines;

    private final ExecutionProviders providers;

    private final AtomicInteger holds = new AtomicInteger(1);

    private OnnxSession(
            String model,
            OrtSession session,
            ExecutionProviders providers,
            @Nullable SessionOptions options,
            @Nullable EngineCache engines) {
        this.model = model;
        this.session = session;
        this.providers = providers;
        this.options = options;
        this.engines = engines;
    }

    /** Opens a session of a model file. */
    static OnnxSession open(
            String model, OrtRuntime engine, Path file, OrtSettings settings, ExecutionProviders placement)
            throws OrtException {
        SessionOptions options = settings.open();
        boolean kept = false;
        try {
            placement.applyTo(options);
            OrtSession session = engine.environment().createSession(file.toString(), options);
            kept = !placement.libraries().isEmpty();
            return new OnnxSession(model, session, placement, kept ? options : null, null);
        } finally {
            if (!kept) {
                options.close();
            }
        }
    }

    /** This session with its engines, which it owns from here on. */
    OnnxSession with(EngineCache cache) {
        return new OnnxSession(model, session, providers, options, cache);
    }

    OrtSession session() {
        return session;
    }

    /** What the session runs on. */
    ExecutionProviders providers() {
        return providers;
    }

    /** Keeps the session open until {@link #drop()}; the caller must know that it is open. */
    @Override
    public boolean hold() {
        holds.incrementAndGet();
        return true;
    }

    @Override
    public void drop() {
        if (holds.decrementAndGet() > 0) {
            return;
        }
        try {
            session.close();
        } catch (OrtException e) {
            LOG.log(Level.WARNING, "closing model '" + model + "' failed", e);
        } finally {
            if (options != null) {
                options.close();
            }
            if (engines != null) {
                engines.close();
            }
        }
    }
}
