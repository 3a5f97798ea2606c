// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backends.python.Arena.Chunk;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceRequest.Sequence;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelControl;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
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

/** What a model asks the server: other models' answers, and to load and unload them. Thread-safe. */
final class Questions {
    /** Codes of a TritonError by number. */
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
    private final PeerSlabs peers;
    private final Map<Long, Question> open = new ConcurrentHashMap<>();

    Questions(
            Worker worker,
            @Nullable InferenceEngine engine,
            @Nullable ModelControl control,
            CustomMetrics metrics,
            PeerSlabs peers) {
        this.worker = worker;
        this.engine = engine;
        this.control = control;
        this.metrics = metrics;
        this.peers = peers;
    }

    /** What {@code [code, message]} of a model says. */
    static ServingException failure(List<?> error) {
        int code = error.get(0) instanceof Long l && l >= 0 && l < CODES.size() ? l.intValue() : 1;
        return ServingException.of(CODES.get(code), String.valueOf(error.get(1)));
    }

    /** The number of a code, or that of the nearest. */
    private static int number(ErrorCode code) {
        int i = CODES.indexOf(code);
        return switch (code) {
            case FAILED_PRECONDITION, OUT_OF_RANGE -> CODES.indexOf(ErrorCode.INVALID_ARGUMENT);
            case RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED -> CODES.indexOf(ErrorCode.UNAVAILABLE);
            default -> i < 0 ? CODES.indexOf(ErrorCode.INTERNAL) : i;
        };
    }

    /** A request to another model. */
    void ask(Map<String, Object> frame) {
        long key = Frames.number(frame, "k", 0);
        Question question = new Question(key);
        open.put(key, question);
        List<Tensor> inputs;
        try {
            inputs = peers.tensors(Frames.list(frame, "i"));
        } catch (ServingException e) {
            question.fail(e);
            return;
        }
        if (engine == null) {
            Tensor.closeAll(inputs);
            question.fail(ServingException.of(ErrorCode.FAILED_PRECONDITION, "there is no server around this model"));
            return;
        }
        long now = Clock.system().nanos();
        long nanos = Frames.number(frame, "s", 0) * 1000;
        long version = Frames.number(frame, "v", -1);
        List<RequestedOutput> outputs = new ArrayList<>();
        for (Object name : Frames.list(frame, "o")) {
            outputs.add(new RequestedOutput(name.toString(), 0));
        }
        Object correlation = frame.get("c");
        boolean alone = correlation == null || correlation.equals(0L) || correlation.equals("");
        long flags = Frames.number(frame, "g", 0);
        Sequence sequence =
                alone || correlation == null ? null : new Sequence(correlation, (flags & 1) != 0, (flags & 2) != 0);
        InferenceRequest request = new InferenceRequest(
                new ModelRef(Frames.string(frame, "m"), version < 0 ? ModelRef.ANY : version, null),
                Frames.string(frame, "id"),
                inputs,
                outputs,
                Frames.map(frame.get("p")),
                nanos > 0 ? now + nanos : Long.MAX_VALUE,
                now,
                new Options(0, nanos, sequence, null));
        question.begun(engine.infer(request, question));
    }

    /** The model does not want an answer any more. */
    void drop(long key) {
        Question question = open.get(key);
        if (question != null) {
            question.cancel();
        }
    }

    void close() {
        open.values().forEach(Question::cancel);
        open.clear();
    }

    /** The value that was asked for. */
    void value(Map<String, Object> frame, boolean value) {
        JsonWriter json = begun(frame);
        worker.send(Frames.framed(json.name("v").value(value).endObject()), true);
    }

    private static JsonWriter begun(Map<String, Object> frame) {
        return new JsonWriter(64)
                .beginObject()
                .name("t")
                .value("value")
                .name("n")
                .value(Frames.number(frame, "n", 0));
    }

    /** A question about what the model counts. */
    void metric(Map<String, Object> frame) {
        try {
            double answer = metrics.tell(frame);
            worker.send(Frames.framed(begun(frame).name("v").value(answer).endObject()), true);
        } catch (ServingException e) {
            failed(frame, e);
        }
    }

    /** Loading, unloading, and whether a model is ready. */
    void control(Map<String, Object> frame) {
        try {
            if (control == null) {
                throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "there is no server around this model");
            }
            String model = Frames.string(frame, "m");
            switch (Frames.string(frame, "op")) {
                case "ready":
                    value(frame, ready(control, model, Frames.string(frame, "version")));
                    break;
                case "load":
                    Map<String, byte[]> files = new HashMap<>();
                    Frames.map(frame.get("files"))
                            .forEach((path, text) -> files.put(
                                    path.startsWith("file:") ? path.substring(5) : path,
                                    Base64.getDecoder().decode(text.toString())));
                    String config = Frames.string(frame, "config");
                    then(
                            frame,
                            control.load(model, new ModelControl.LoadOptions(config.isEmpty() ? null : config, files)));
                    break;
                default:
                    then(frame, control.unload(model, Frames.yes(frame, "dependents")));
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
            throw ServingException.invalidArgument("version '" + version + "' is no number");
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
        worker.send(Frames.framed(json), true);
    }

    /** A request under way to another model, whose answers go to the worker. */
    private final class Question implements ResponseSink {
        private final long key;
        private int answers;
        private InferenceEngine.@Nullable Call call;
        private boolean cancelled;

        Question(long key) {
            this.key = key;
        }

        void begun(InferenceEngine.Call started) {
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
            InferenceEngine.Call started;
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
                if (!response.outputs().isEmpty() || !last) {
                    json.name("o").beginArray();
                    for (Tensor t : response.outputs()) {
                        worker.place(json, t, chunks);
                    }
                    json.endArray();
                    if (!response.parameters().isEmpty()) {
                        json.name("p");
                        Frames.write(json, response.parameters());
                    }
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
            ByteBuffer frame = Frames.framed(json.endObject());
            // The model waits for the first one, and reads while it does; it may be slow to take the others.
            worker.send(frame, answers++ == 0 && last);
        }
    }
}
