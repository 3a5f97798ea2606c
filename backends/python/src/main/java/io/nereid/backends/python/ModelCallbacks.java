// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.backends.python.SharedMemoryArena.Chunk;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The calls that a Python model makes to the server: inference on other models (Triton's business logic scripting),
 * model control, and custom metrics. Calls arrive on the worker's reader thread and never block it; replies are sent
 * when they are available, on the thread that has them. Thread-safe.
 */
final class ModelCallbacks {
    /** The error codes by the numbers of {@code pb_utils.TritonError}. */
    private static final List<ErrorCode> CODES = List.of(
            ErrorCode.UNKNOWN,
            ErrorCode.INTERNAL,
            ErrorCode.NOT_FOUND,
            ErrorCode.INVALID_ARGUMENT,
            ErrorCode.UNAVAILABLE,
            ErrorCode.UNIMPLEMENTED,
            ErrorCode.ALREADY_EXISTS,
            ErrorCode.CANCELLED);

    private final Worker worker;
    private final @Nullable InferenceEngine engine;
    private final @Nullable ModelControl control;
    private final CustomMetrics metrics;
    private final WorkerSegments peers;
    private final Map<Long, ModelCall> open = new ConcurrentHashMap<>();

    ModelCallbacks(
            Worker worker,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control,
            CustomMetrics metrics,
            WorkerSegments peers) {
        this.worker = worker;
        this.engine = engine;
        this.control = control;
        this.metrics = metrics;
        this.peers = peers;
    }

    /** Converts a model's error {@code [code, message]}. */
    static ServingException failure(List<?> error) {
        int code = error.get(0) instanceof Long l && l >= 0 && l < CODES.size() ? l.intValue() : 1;
        return ServingException.ofModel(CODES.get(code), String.valueOf(error.get(1)));
    }

    /** The TritonError number of a code, or that of the most similar code. */
    private static int number(ErrorCode code) {
        int i = CODES.indexOf(code);
        return switch (code) {
            case FAILED_PRECONDITION, OUT_OF_RANGE -> CODES.indexOf(ErrorCode.INVALID_ARGUMENT);
            case RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED -> CODES.indexOf(ErrorCode.UNAVAILABLE);
            default -> i < 0 ? CODES.indexOf(ErrorCode.INTERNAL) : i;
        };
    }

    /** Sends a request to another model. */
    void ask(Map<String, Object> frame) {
        long key = FrameCodec.number(frame, "k", 0);
        ModelCall modelCall = new ModelCall(key);
        open.put(key, modelCall);
        List<Tensor> inputs;
        try {
            inputs = peers.tensors(FrameCodec.list(frame, "i"));
        } catch (ServingException e) {
            modelCall.fail(e);
            return;
        }
        if (engine == null) {
            Tensor.closeAll(inputs);
            modelCall.fail(ServingException.of(
                    ErrorCode.FAILED_PRECONDITION, "this model runs without a server, so it cannot call other models"));
            return;
        }
        long now = Clock.system().nanos();
        long nanos = FrameCodec.number(frame, "s", 0) * 1000;
        long version = FrameCodec.number(frame, "v", -1);
        List<RequestedOutput> outputs = new ArrayList<>();
        for (Object name : FrameCodec.list(frame, "o")) {
            outputs.add(new RequestedOutput(name.toString(), 0));
        }
        Object correlation = frame.get("c");
        boolean alone = correlation == null || correlation.equals(0L) || correlation.equals("");
        long flags = FrameCodec.number(frame, "g", 0);
        SequenceFlags sequence = alone || correlation == null
                ? null
                : new SequenceFlags(correlation, (flags & 1) != 0, (flags & 2) != 0);
        InferenceRequest request = new InferenceRequest(
                new ModelRef(FrameCodec.string(frame, "m"), version < 0 ? ModelRef.ANY : version, null),
                FrameCodec.string(frame, "id"),
                inputs,
                outputs,
                FrameCodec.map(frame.get("p")),
                nanos > 0 ? now + nanos : Long.MAX_VALUE,
                now,
                new Options(0, nanos, sequence, null));
        modelCall.begun(engine.infer(request, modelCall));
    }

    /** Cancels a request to another model. */
    void drop(long key) {
        ModelCall modelCall = open.get(key);
        if (modelCall != null) {
            modelCall.cancel();
        }
    }

    void close() {
        open.values().forEach(ModelCall::cancel);
        open.clear();
    }

    /** Replies to a call with a boolean. */
    void value(Map<String, Object> frame, boolean value) {
        JsonWriter json = begun(frame);
        worker.send(FrameCodec.framed(json.name("v").value(value).endObject()), true);
    }

    private static JsonWriter begun(Map<String, Object> frame) {
        return new JsonWriter(64)
                .beginObject()
                .name("t")
                .value("value")
                .name("n")
                .value(FrameCodec.number(frame, "n", 0));
    }

    /** Handles a call about custom metrics. */
    void metric(Map<String, Object> frame) {
        try {
            double answer = metrics.handle(frame);
            worker.send(FrameCodec.framed(begun(frame).name("v").value(answer).endObject()), true);
        } catch (ServingException e) {
            failed(frame, e);
        }
    }

    /** Handles a model-control call: load, unload, or whether a model is ready. */
    void control(Map<String, Object> frame) {
        try {
            if (control == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION, "this model runs without a server, so it cannot control models");
            }
            String model = FrameCodec.string(frame, "m");
            switch (FrameCodec.string(frame, "op")) {
                case "ready":
                    value(frame, ready(control, model, FrameCodec.string(frame, "version")));
                    break;
                case "load":
                    Map<String, byte[]> files = new HashMap<>();
                    FrameCodec.map(frame.get("files"))
                            .forEach((path, text) -> files.put(
                                    path.startsWith("file:") ? path.substring(5) : path,
                                    Base64.getDecoder().decode(text.toString())));
                    String config = FrameCodec.string(frame, "config");
                    then(frame, control.load(model, new LoadOptions(config.isEmpty() ? null : config, files)));
                    break;
                default:
                    then(frame, control.unload(model, FrameCodec.yes(frame, "dependents")));
            }
        } catch (RuntimeException e) {
            failed(frame, ServingException.from(e));
        }
    }

    private static boolean ready(ModelControl control, String model, String version) {
        try {
            return control.ready(
                    version.isEmpty() ? ModelRef.latest(model) : ModelRef.exact(model, Long.parseLong(version)));
        } catch (ServingException e) {
            return false;
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument("version '" + version + "' is not a number");
        }
    }

    private void then(Map<String, Object> frame, CompletionStage<Void> stage) {
        stage.whenComplete((done, e) -> {
            if (e == null) {
                value(frame, true);
            } else {
                failed(
                        frame,
                        ServingException.from(
                                e instanceof CompletionException c && c.getCause() != null ? c.getCause() : e));
            }
        });
    }

    private void failed(Map<String, Object> frame, ServingException e) {
        JsonWriter json = begun(frame);
        json.name("e")
                .beginArray()
                .value(number(e.code()))
                .value(e.describe())
                .endArray()
                .endObject();
        worker.send(FrameCodec.framed(json), true);
    }

    /**
     * A request to another model in progress; its responses are sent to the worker. Its lock guards call and cancelled.
     */
    private final class ModelCall implements ResponseSink {
        private final long key;
        private int answers;

        @GuardedBy("this") private @Nullable InferenceCall call;

        @GuardedBy("this") private boolean cancelled;

        ModelCall(long key) {
            this.key = key;
        }

        void begun(InferenceCall started) {
            boolean stop;
            synchronized (this) {
                call = started;
                stop = cancelled;
            }
            if (stop) {
                started.cancel();
            }
        }

        void cancel() {
            InferenceCall started;
            synchronized (this) {
                cancelled = true;
                started = call;
            }
            if (started != null) {
                started.cancel();
            }
        }

        @Override
        public void next(InferenceResponse response, boolean last) {
            JsonWriter json = new JsonWriter(256);
            List<Chunk> chunks = new ArrayList<>();
            json.beginObject()
                    .name("t")
                    .value("answer")
                    .name("k")
                    .value(key)
                    .name("z")
                    .value(last);
            try (response) {
                json.name("o").beginArray();
                for (Tensor t : response.outputs()) {
                    worker.writeTensor(json, t, chunks);
                }
                json.endArray();
                if (!response.parameters().isEmpty()) {
                    json.name("p");
                    FrameCodec.write(json, response.parameters());
                }
                send(json, last);
            } catch (ServingException e) {
                chunks.forEach(Chunk::release);
                cancel();
                fail(e);
            }
        }

        @Override
        public void fail(ServingException e) {
            JsonWriter json = new JsonWriter(256);
            json.beginObject()
                    .name("t")
                    .value("answer")
                    .name("k")
                    .value(key)
                    .name("z")
                    .value(true);
            json.name("e")
                    .beginArray()
                    .value(number(e.code()))
                    .value(e.describe())
                    .endArray();
            send(json, true);
        }

        private void send(JsonWriter json, boolean last) {
            if (last) {
                open.remove(key);
            }
            ByteBuffer frame = FrameCodec.framed(json.endObject());
            // A model that waits for a single response reads its socket while it waits, so this thread may write it. It
            // may read the responses of a decoupled call slowly, so those go through the writer thread.
            worker.send(frame, answers++ == 0 && last);
        }
    }
}
