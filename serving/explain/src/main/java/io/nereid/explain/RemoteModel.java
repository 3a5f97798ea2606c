// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transport.api.UpstreamResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The client of a model that another server or process serves, for explanations: sends rows as V1 JSON, {@code
 * {"instances":[[…]]}}, to {@code /v1/models/NAME:predict}, and expects {@code {"predictions":[…]}} with a number or a
 * list of numbers for each row. The model's metadata are not known. Thread-safe: immutable.
 *
 * <pre>{@code
 * InferenceEngine model = new RemoteModel("iris", (target, body) -> client.post(target, body));
 * ExplainCodec codec = new ExplainCodec(model, pool, clock, ExplainSettings.none());
 * }</pre>
 */
public final class RemoteModel implements InferenceEngine {
    private static final String INSTANCES = "instances";
    private static final String PREDICTIONS = "predictions";
    private static final int SHOWN = 300;

    /** Sends requests to the model. */
    @FunctionalInterface
    public interface Caller {
        /**
         * Posts JSON.
         *
         * @param target the path
         * @param body its ownership passes to this method
         * @return the whole response, whatever its status
         */
        CompletionStage<UpstreamResponse> call(String target, MemoryRegion body);
    }

    private final String model;
    private final Caller caller;

    /**
     * Creates a client.
     *
     * @param model the name that clients use
     * @param caller sends the requests
     */
    public RemoteModel(String model, Caller caller) {
        this.model = model;
        this.caller = caller;
    }

    @Override
    public ModelMetadata metadata(ModelRef ref) {
        if (!ref.model().equals(model)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Model with name " + ref.model() + " does not exist.",
                    "this service has the model '" + model + "'");
        }
        if (ref.version() != ModelRef.ANY) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "model '" + model + "' cannot be requested by version",
                    "request it without a version");
        }
        Shape any = Shape.of(-1, -1);
        return new ModelMetadata(
                new ServableId(model, 0),
                "",
                List.of(new TensorSpec(INSTANCES, DataType.FP64, any)),
                List.of(new TensorSpec(PREDICTIONS, DataType.FP64, any)),
                0,
                Map.of());
    }

    @Override
    public ModelConfig config(ModelRef ref) {
        throw ServingException.of(ErrorCode.UNIMPLEMENTED, "model '" + model + "' has no configuration that is known");
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        AtomicBoolean over = new AtomicBoolean();
        try {
            Tensor rows = request.inputs().get(0);
            int count = (int) rows.shape().dim(0);
            MemoryRegion body = body(rows, count);
            long left = Math.max(1, request.deadlineNanos() - request.arrivedNanos());
            var unused = within(caller.call("/v1/models/" + model + ":predict", body), left)
                    .whenComplete((answer, failure) -> ended(answer, failure, count, sink, over));
        } catch (RuntimeException e) {
            fail(sink, over, ServingException.from(e));
        } finally {
            request.release();
        }
        return () -> fail(sink, over, ServingException.of(ErrorCode.CANCELLED, "the prediction was cancelled"));
    }

    private static void fail(ResponseSink sink, AtomicBoolean over, ServingException e) {
        if (over.compareAndSet(false, true)) {
            sink.fail(e);
        }
    }

    private static MemoryRegion body(Tensor rows, int count) {
        int width = (int) rows.shape().dim(1);
        ByteBuffer from = rows.buffer();
        JsonWriter json = new JsonWriter(64 + count * width * 8);
        json.beginObject().name(INSTANCES).beginArray();
        for (int r = 0; r < count; r++) {
            json.beginArray();
            for (int c = 0; c < width; c++) {
                double value = from.getDouble();
                if (Double.isFinite(value)) {
                    json.value(value);
                } else {
                    json.nullValue();
                }
            }
            json.endArray();
        }
        json.endArray().endObject();
        return MemoryRegion.copyOf(json.array(), 0, json.length());
    }

    private void ended(
            @Nullable UpstreamResponse answer,
            @Nullable Throwable failure,
            int rows,
            ResponseSink sink,
            AtomicBoolean over) {
        InferenceResponse response;
        try {
            if (answer == null) {
                throw fault(failure);
            }
            byte[] bytes = new byte[answer.body().size()];
            answer.body().getBytes(0, bytes, 0, bytes.length);
            answer.body().release();
            if (answer.status() != 200) {
                throw error(answer.status(), bytes);
            }
            response = new InferenceResponse(new ServableId(model, 0), "", List.of(predictions(bytes, rows)), Map.of());
        } catch (RuntimeException e) {
            fail(sink, over, ServingException.from(e));
            return;
        }
        if (over.compareAndSet(false, true)) {
            sink.next(response, true);
        } else {
            response.close();
        }
    }

    private static ServingException fault(@Nullable Throwable failure) {
        Throwable cause = failure == null ? new IllegalStateException("no answer") : failure;
        while (cause instanceof CompletionException && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause instanceof TimeoutException
                ? ServingException.of(ErrorCode.DEADLINE_EXCEEDED, "a prediction was not ready in time")
                : ServingException.from(cause);
    }

    private ServingException error(int status, byte[] body) {
        ErrorCode code = switch (status) {
            case 429 -> ErrorCode.RESOURCE_EXHAUSTED;
            case 503 -> ErrorCode.UNAVAILABLE;
            case 504 -> ErrorCode.DEADLINE_EXCEEDED;
            default -> status < 500 ? ErrorCode.FAILED_PRECONDITION : ErrorCode.INTERNAL;
        };
        String text = new String(body, StandardCharsets.UTF_8).strip();
        text = text.length() > SHOWN ? text.substring(0, SHOWN) + "…" : text;
        return ServingException.of(
                code,
                "model '" + model + "' answered a prediction for the explanation with status " + status
                        + (text.isEmpty() ? "" : ": " + text),
                status == 404 || status == 405
                        ? "the explainer calls a model in a process with /v1/models/" + model
                                + ":predict, which must be served"
                        : null);
    }

    private Tensor predictions(byte[] body, int rows) {
        Object tree;
        try {
            tree = JsonValues.readDoubles(body);
        } catch (ServingException e) {
            throw odd("is not JSON: " + e.getMessage());
        }
        if (!(tree instanceof Map<?, ?> map) || !map.containsKey(PREDICTIONS)) {
            throw odd("has no 'predictions'");
        }
        Object all = map.get(PREDICTIONS);
        double[] values;
        if (all instanceof double[] numbers) {
            values = numbers;
            if (values.length != rows) {
                throw odd("has " + values.length + " predictions for " + rows + " rows");
            }
        } else if (all instanceof List<?> list) {
            if (list.size() != rows) {
                throw odd("has " + list.size() + " predictions for " + rows + " rows");
            }
            int width = list.get(0) instanceof double[] first ? first.length : 0;
            values = new double[rows * width];
            int at = 0;
            for (Object each : list) {
                if (!(each instanceof double[] row) || row.length != width || width == 0) {
                    throw odd("has predictions that are not numbers, or lists of different lengths");
                }
                System.arraycopy(row, 0, values, at, width);
                at += width;
            }
        } else {
            throw odd("has 'predictions' that are not a list");
        }
        for (double value : values) {
            if (Double.isNaN(value)) {
                throw odd("has null in its predictions");
            }
        }
        Tensor tensor = Tensor.allocate(PREDICTIONS, DataType.FP64, Shape.of(rows, values.length / rows));
        tensor.buffer().asDoubleBuffer().put(values);
        return tensor;
    }

    private ServingException odd(String what) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "model '" + model + "' cannot be explained: its answer " + what,
                "explanations need {\"predictions\": […]} with a number, or a list of numbers, for each row");
    }

    /** Fails after a time without a response; releases a response that arrives later. */
    private static CompletionStage<UpstreamResponse> within(CompletionStage<UpstreamResponse> answer, long nanos) {
        CompletableFuture<UpstreamResponse> limited = new CompletableFuture<>();
        answer.whenComplete((value, failure) -> {
            if (failure != null) {
                limited.completeExceptionally(failure);
            } else if (!limited.complete(value)) {
                value.body().release();
            }
        });
        return limited.orTimeout(nanos, TimeUnit.NANOSECONDS);
    }
}
