// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.client.infer.InferRequest;
import io.nereid.client.infer.InferResult;
import io.nereid.client.infer.InferenceException;
import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.ServerMetadata;
import io.nereid.client.options.Attempt;
import io.nereid.client.options.Protocol;
import io.nereid.client.protocol.CallContext;
import io.nereid.client.protocol.ProtocolConnection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Flow;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A client of one server of Open Inference V2 over REST or gRPC, or of V1: Nereid, Triton, KServe's and MLServer's servers in
 * Python, TensorFlow Serving. The calls are the same for all protocols; what a protocol does not have is refused with
 * {@link ErrorCode#UNIMPLEMENTED}.
 *
 * <p>Methods here wait; {@link #async()} has the same calls as futures; {@link #inferStream} and {@link #inferAll} receive
 * several responses to a request. Waiting methods end when the thread is interrupted, and cancel the call. Thread-safe: an
 * application has one client for each server, and closes it at its end.
 *
 * <pre>{@code
 * try (NereidClient client = NereidClient.builder("http://localhost:8080").build()) {
 *     InferResult result = client.infer(InferRequest.builder("iris")
 *             .input("input", new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}})
 *             .build());
 *     float[] probabilities = result.output("probabilities").asFloats();
 * }
 * }</pre>
 */
public final class NereidClient implements AutoCloseable {
    private final Protocol protocol;
    private final ProtocolConnection connection;
    private final CallRuntime runtime;
    private final Map<String, String> headers;
    private final Clock clock;
    private final AsyncNereidClient async;
    private final Runnable afterClose;

    NereidClient(ClientBuilder builder, ProtocolConnection connection, CallRuntime runtime, Runnable afterClose) {
        this.protocol = builder.protocol();
        this.connection = connection;
        this.runtime = runtime;
        this.headers = Map.copyOf(builder.headers);
        this.clock = runtime.clock();
        this.afterClose = afterClose;
        this.async = new AsyncNereidClient(connection, runtime, builder.timeout, headers);
    }

    /**
     * Begins a client of a server.
     *
     * @param url {@code http://HOST:PORT}, {@code https://…}, possibly with a path before that of the protocol, or
     *     {@code grpc://HOST:PORT}, {@code grpcs://…}
     * @throws IllegalArgumentException for another URL
     */
    public static ClientBuilder builder(String url) {
        return new ClientBuilder(url);
    }

    /** The same calls as futures. */
    public AsyncNereidClient async() {
        return async;
    }

    /**
     * Runs a model.
     *
     * @throws InferenceException when the call fails
     */
    public InferResult infer(InferRequest request) {
        return await(async.infer(request));
    }

    /** Runs a model; a shortcut for {@code async().infer(request)}. */
    public CompletableFuture<InferResult> inferAsync(InferRequest request) {
        return async.infer(request);
    }

    /**
     * All responses of a model to a request, of a decoupled model any number, with V2 over gRPC. Each subscription sends the
     * request once, when it asks for a first result. It is not repeated. Only a timeout of the request limits its time.
     *
     * @throws InferenceException UNIMPLEMENTED with other protocols
     */
    public Flow.Publisher<InferResult> inferStream(InferRequest request) {
        if (protocol != Protocol.V2_GRPC) {
            throw connection.refused(
                    "streams of responses", "grpc:// or grpcs://, or generateStream with V2 over REST");
        }
        Map<String, String> all = merged(headers, request);
        return publisher("stream", request.model(), all, (context, subscriber) -> {
            long deadline = request.timeout() == null
                    ? CallContext.NONE
                    : clock.nanos() + request.timeout().toNanos();
            connection.stream(request, new CallContext(context.headers(), deadline), subscriber);
        });
    }

    /** As {@link #inferStream}, for a thread that waits for the responses. The caller closes the result. */
    public ResultIterator<InferResult> inferAll(InferRequest request) {
        return new ResultIterator<>(inferStream(request));
    }

    /**
     * Sends a JSON object to the route {@code :predict} of V1, for models whose bodies are not tensors, and returns the body of
     * the response.
     *
     * @param version may be empty
     */
    public String predictJson(String model, String version, String json) {
        return await(async.predictJson(model, version, json));
    }

    /**
     * Sends a JSON object to the route {@code generate} of V2 over REST, Triton's extension for language models, and returns the
     * body of the response.
     *
     * @param version may be empty
     */
    public String generate(String model, String version, String json) {
        return await(async.generate(model, version, json));
    }

    /**
     * The responses of the route {@code generate_stream} of V2 over REST, each a JSON object. Each subscription sends the request
     * once, when it asks for a first result.
     *
     * @throws InferenceException UNIMPLEMENTED with other protocols
     */
    public Flow.Publisher<String> generateStream(String model, String version, String json) {
        if (protocol != Protocol.V2_REST) {
            throw connection.refused("'generate_stream'", "V2 over REST, or inferStream with V2 over gRPC");
        }
        return publisher(
                "generateStream",
                model,
                headers,
                (context, subscriber) -> connection.generateStream(model, version, json, context, subscriber));
    }

    /** As {@link #generateStream}, for a thread that waits for the responses. The caller closes the result. */
    public ResultIterator<String> generateAll(String model, String version, String json) {
        return new ResultIterator<>(generateStream(model, version, json));
    }

    private <T> Flow.Publisher<T> publisher(
            String operation,
            String model,
            Map<String, String> all,
            BiConsumer<CallContext, Flow.Subscriber<? super T>> begin) {
        return subscriber -> {
            Attempt attempt = new Attempt(operation, model, 1, all, null);
            ObservedStream<T> stream = new ObservedStream<>(subscriber, runtime, attempt);
            if (runtime.isClosed()) {
                stream.refuse(CallRuntime.closed());
                return;
            }
            try {
                runtime.before(attempt);
                begin.accept(new CallContext(attempt.headers(), CallContext.NONE), stream);
            } catch (RuntimeException e) {
                stream.refuse(e);
            }
        };
    }

    /** Whether the server is live. A server that answers with an error is not; without a connection the call fails. */
    public boolean isLive() {
        return await(async.isLive());
    }

    /** Whether the server is ready for requests. */
    public boolean isReady() {
        return await(async.isReady());
    }

    /**
     * Whether a model is ready; false for one that does not exist.
     *
     * @param version may be empty
     */
    public boolean isModelReady(String model, String version) {
        return await(async.isModelReady(model, version));
    }

    /** What the server says of itself. */
    public ServerMetadata serverMetadata() {
        return await(async.serverMetadata());
    }

    /**
     * What the server says of a model.
     *
     * @param version may be empty
     */
    public ModelMetadataResponse modelMetadata(String model, String version) {
        return await(async.modelMetadata(model, version));
    }

    /**
     * The configuration of a model as JSON, with Triton's extension. Over gRPC, fields with their default are not in it.
     *
     * @param version may be empty
     */
    public String modelConfig(String model, String version) {
        return await(async.modelConfig(model, version));
    }

    /**
     * The statistics of models, with Triton's extension.
     *
     * @param model may be empty, for all models
     * @param version may be empty, for all versions
     */
    public List<ModelStatisticsResponse> statistics(String model, String version) {
        return await(async.statistics(model, version));
    }

    /** The models of the repository, with Triton's extension. */
    public List<RepositoryModel> repositoryIndex(boolean readyOnly) {
        return await(async.repositoryIndex(readyOnly));
    }

    /**
     * Loads a model, with Triton's extension.
     *
     * @param parameters {@code config}, a configuration as JSON, and files {@code file:PATH} in base64; may be empty
     */
    public void load(String model, Map<String, String> parameters) {
        waitFor(async.load(model, parameters));
    }

    /** Loads a model. */
    public void load(String model) {
        load(model, Map.of());
    }

    /**
     * Unloads a model, with Triton's extension.
     *
     * @param dependents whether to unload the composing models of an ensemble too
     */
    public void unload(String model, boolean dependents) {
        waitFor(async.unload(model, dependents));
    }

    /** Unloads a model. */
    public void unload(String model) {
        unload(model, false);
    }

    static Map<String, String> merged(Map<String, String> headers, InferRequest request) {
        if (request.headers().isEmpty()) {
            return headers;
        }
        Map<String, String> all = new HashMap<>();
        headers.forEach((name, value) -> all.put(lower(name), value));
        request.headers().forEach((name, value) -> all.put(lower(name), value));
        return all;
    }

    private static String lower(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    private static <T> T await(CompletableFuture<T> future) {
        waitFor(future);
        return future.join();
    }

    private static void waitFor(CompletableFuture<?> future) {
        try {
            future.get();
        } catch (InterruptedException e) {
            future.cancel(true);
            Thread.currentThread().interrupt();
            throw InferenceException.of(ErrorCode.CANCELLED, "the thread was interrupted", e);
        } catch (ExecutionException e) {
            throw thrown(e);
        }
    }

    /** The exception to throw here, with the stack of this thread, for one of another thread. */
    static RuntimeException thrown(Throwable failure) {
        @Nullable Throwable e = failure;
        while ((e instanceof ExecutionException || e instanceof CompletionException) && e.getCause() != null) {
            e = e.getCause();
        }
        if (e instanceof InferenceException known) {
            return known.thrownHere();
        }
        if (e instanceof IllegalArgumentException) {
            return new IllegalArgumentException(e.getMessage(), e);
        }
        return new IllegalStateException(String.valueOf(e), e);
    }

    /** Ends all calls in progress with {@link ErrorCode#CANCELLED}, and closes the connections. */
    @Override
    public void close() {
        runtime.close();
        connection.close();
        afterClose.run();
    }
}
