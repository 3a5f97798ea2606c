// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.openai;

import io.nereid.base.ServingException;
import io.nereid.base.access.Permission;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.TextTasks;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Finds the models that requests name, and runs texts through them. Thread-safe: immutable. */
final class TextRunner {
    private final InferenceEngine engine;
    private final Executor codecPool;
    private final long timeoutNanos;

    TextRunner(InferenceEngine engine, Executor codecPool, long timeoutNanos) {
        this.engine = engine;
        this.codecPool = codecPool;
        this.timeoutNanos = timeoutNanos;
    }

    /**
     * The texts of a request.
     *
     * @param first in UTF-8; or tokens, as {@link TextTasks#TOKEN_IDS} describes them
     * @param second the second texts of pairs, as many; null without pairs
     * @param tokens whether they are tokens
     */
    record Texts(List<byte[]> first, @Nullable List<byte[]> second, boolean tokens) {}

    /**
     * What a model made of the texts.
     *
     * @param rows the numbers for each text or pair
     * @param tokens the number of tokens of all of them; -1 for a model that does not count them
     */
    record Result(float[][] rows, long tokens) {}

    /**
     * The model of a request.
     *
     * @param inputs its inputs, one or two
     * @param output the output that is read
     * @param rows the number of texts that it takes at once
     */
    record Target(ModelRef model, List<TensorSpec> inputs, TensorSpec output, int rows) {}

    /**
     * Runs the texts, and replies with what {@code encode} makes of the result; its failures are replies too.
     *
     * @param task {@link TextTasks#EMBED} or {@link TextTasks#RERANK}
     * @throws ServingException NOT_FOUND, UNAVAILABLE, PERMISSION_DENIED, or INVALID_ARGUMENT for a model without the task
     */
    void run(HttpExchange x, String model, String task, Texts texts, Function<Result, HttpReply> encode) {
        x.require(Permission.INFER, model);
        Target target = target(model, task);
        new TextCall(
                        engine,
                        x,
                        target,
                        texts,
                        timeoutNanos == 0 ? Long.MAX_VALUE : x.arrivedNanos() + timeoutNanos,
                        codecPool,
                        encode)
                .start();
    }

    private Target target(String model, String task) {
        ModelRef ref = ModelRef.latest(model);
        ModelMetadata metadata = engine.metadata(ref);
        boolean pairs = task.equals(TextTasks.RERANK);
        String has = metadata.properties().getOrDefault(TextTasks.PROPERTY, "");
        if (!has.equals(task)) {
            throw ServingException.invalidArgument(
                    "model '" + model + "' does not " + (pairs ? "rerank documents" : "embed texts"),
                    has.isEmpty()
                            ? "it has /v2/models/" + model + "/infer and /v1/models/" + model + ":predict"
                            : pairs ? "it embeds texts: POST /v1/embeddings" : "it reranks documents: POST /v1/rerank");
        }
        List<TensorSpec> inputs = metadata.inputs();
        TensorSpec output = output(metadata.outputs(), pairs ? "score" : "embedding");
        boolean fits = inputs.size() == (pairs ? 2 : 1)
                && inputs.stream()
                        .allMatch(
                                i -> i.dataType() == DataType.BYTES && i.shape().rank() <= 2)
                && output != null
                && (output.dataType() == DataType.FP32 || output.dataType() == DataType.FP64);
        if (!fits || output == null) {
            throw ServingException.invalidArgument(
                    "model '" + model + "' has the parameter " + TextTasks.PROPERTY + " '" + task + "', but not "
                            + (pairs ? "two inputs" : "one input") + " of BYTES and an output of FP32 or FP64",
                    "correct its configuration");
        }
        return new Target(ref, inputs, output, metadata.maxBatchSize() > 0 ? metadata.maxBatchSize() : TextCall.ROWS);
    }

    private static @Nullable TensorSpec output(List<TensorSpec> outputs, String usual) {
        for (TensorSpec output : outputs) {
            if (output.name().equals(usual)) {
                return output;
            }
        }
        return outputs.isEmpty() ? null : outputs.get(0);
    }
}
