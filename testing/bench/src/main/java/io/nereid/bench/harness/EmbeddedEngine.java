// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The engine embedded in this process, with all backends on the class path: one request at a time, and the caller waits
 * for the response. Confined to one thread.
 */
public final class EmbeddedEngine implements AutoCloseable {
    private static final Clock CLOCK = Clock.system();

    private final Engine engine;

    private EmbeddedEngine(Engine engine) {
        this.engine = engine;
    }

    /** Creates an engine and loads every model of a repository. */
    public static EmbeddedEngine of(Path repository) throws IOException {
        List<Backend> backends = new ArrayList<>();
        ServiceLoader.load(Backend.class).forEach(backends::add);
        Engine engine = new Engine(EngineOptions.of(repository), backends, CLOCK);
        ConcurrentLinkedQueue<ServableState> failed = new ConcurrentLinkedQueue<>();
        engine.onState(state -> {
            if (state.phase() == ServableState.Phase.FAILED) {
                failed.add(state);
            }
        });
        engine.start().toCompletableFuture().join();
        ServableState first = failed.peek();
        if (first != null) {
            engine.close();
            throw new IOException(first.id() + " did not load: " + first.reason());
        }
        return new EmbeddedEngine(engine);
    }

    /** Writes a model's configuration. */
    public static void write(Path repository, String name, String config) throws IOException {
        Files.createDirectories(repository.resolve(name).resolve("1"));
        Files.writeString(repository.resolve(name).resolve("config.pbtxt"), "name: \"" + name + "\"\n" + config);
    }

    /** Calls a model. The caller owns the returned outputs; the inputs pass to the engine. */
    public List<Tensor> ask(ModelRef model, List<Tensor> inputs) {
        Answer answer = new Answer(Thread.currentThread());
        engine.infer(
                new InferenceRequest(model, "", inputs, List.of(), Map.of(), Long.MAX_VALUE, CLOCK.nanos()), answer);
        while (!answer.ended) {
            LockSupport.park(answer);
        }
        InferenceResponse response = answer.response;
        if (response == null) {
            throw new IllegalStateException(model + " failed", answer.failure);
        }
        return response.outputs();
    }

    @Override
    public void close() {
        engine.close();
    }

    /** Receives the response and wakes the caller. Written once, before {@link #ended}. */
    private static final class Answer implements ResponseSink {
        private final Thread waits;

        @Nullable InferenceResponse response;

        @Nullable ServingException failure;

        volatile boolean ended;

        Answer(Thread waits) {
            this.waits = waits;
        }

        @Override
        public void next(InferenceResponse answer, boolean last) {
            response = answer;
            end();
        }

        @Override
        public void fail(ServingException e) {
            failure = e;
            end();
        }

        private void end() {
            ended = true;
            if (Thread.currentThread() != waits) {
                LockSupport.unpark(waits);
            }
        }
    }
}
