// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.Clock;
import io.nereid.base.Code;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph.Step;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.graph.StepCaller;
import io.nereid.endpoint.HttpReply;
import io.nereid.endpoint.Upstream;
import io.nereid.endpoint.Upstream.Answer;
import io.nereid.endpoint.Upstream.Header;
import io.nereid.protocols.v2.V2Transcoder;
import io.nereid.tensor.MemoryRegion;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Calls the services of a graph's steps: those of this server without a socket, over REST or, where a process speaks nothing
 * else, over gRPC; whatever else over the network. Thread-safe.
 */
final class GraphCalls implements StepCaller {
    private static final long MOST_BYTES = 1L << 30;
    private static final int OFFLOAD_BYTES = 64 << 10;
    private static final Pattern INFER = Pattern.compile("/v2/models/([^/]+)/infer");
    private static final Header SPEAKS_GRPC = new Header("nereid-speaks", "grpc");

    private final String namespace;
    private final Gateway gateway;
    private final Upstream upstream;
    private final Clock clock;
    private final Executor pool;

    /** Services that were found to speak gRPC alone. */
    private final Set<String> onlyGrpc = ConcurrentHashMap.newKeySet();

    /**
     * @param namespace the graph's, where the services are that its steps name
     * @param pool turns large JSON into messages, and back
     */
    GraphCalls(String namespace, Gateway gateway, Upstream upstream, Clock clock, Executor pool) {
        this.namespace = namespace;
        this.gateway = gateway;
        this.upstream = upstream;
        this.clock = clock;
        this.pool = pool;
    }

    @Override
    public CompletionStage<Answer> call(Step step, List<Header> headers, byte[] body, Duration timeout) {
        String url = step.serviceUrl();
        if (url == null) {
            return CompletableFuture.failedStage(ServingException.of(
                    Code.UNAVAILABLE, "the service '" + step.serviceName() + "' has no address yet"));
        }
        if (step.serviceName() == null || step.serviceName().isEmpty()) {
            return upstream.send("POST", url, headers, body, new Upstream.Terms(timeout, MOST_BYTES, List.of()));
        }
        URI address = URI.create(url);
        String target = address.getRawQuery() == null
                ? address.getRawPath()
                : address.getRawPath() + "?" + address.getRawQuery();
        Local call = new Local(step.serviceName(), target, headers, body, timeout);
        call.start();
        return call.result;
    }

    /** A call of a service of this server. Thread-safe: its parts follow one another, and its result ends them. */
    private final class Local {
        final CompletableFuture<Answer> result = new CompletableFuture<>();
        private final String service;
        private final String target;
        private final List<Header> headers;
        private final byte[] body;
        private final long deadline;
        private volatile @Nullable CompletableFuture<?> underWay;

        Local(String service, String target, List<Header> headers, byte[] body, Duration timeout) {
            this.service = service;
            this.target = target;
            this.headers = headers;
            this.body = body;
            this.deadline = timeout.isZero() ? Long.MAX_VALUE : clock.nanos() + timeout.toNanos();
            if (!timeout.isZero()) {
                limit(timeout);
            }
            Object unusedEnd = result.whenComplete((got, failure) -> {
                CompletableFuture<?> now = underWay;
                if (failure != null && now != null) {
                    now.cancel(true);
                }
            });
        }

        private void limit(Duration timeout) {
            CompletableFuture<Void> timer =
                    new CompletableFuture<Void>().orTimeout(timeout.toNanos(), TimeUnit.NANOSECONDS);
            Object unusedLimit = timer.whenComplete((never, late) -> {
                if (late instanceof TimeoutException) {
                    result.completeExceptionally(ServingException.of(
                            Code.DEADLINE_EXCEEDED,
                            "the service '" + service + "' did not answer within " + Math.max(1, timeout.toMillis())
                                    + " ms"));
                }
            });
            Object unusedStop = result.whenComplete((got, failure) -> timer.cancel(false));
        }

        void start() {
            if (onlyGrpc.contains(service)) {
                grpc();
            } else {
                rest();
            }
        }

        /** Lets the end of the result end a stage. */
        private <T> CompletionStage<T> watched(CompletionStage<T> stage) {
            CompletableFuture<T> future = stage.toCompletableFuture();
            underWay = future;
            if (result.isDone()) {
                future.cancel(true);
            }
            return stage;
        }

        private void rest() {
            watched(gateway.call(namespace, service, null, target, headers, MemoryRegion.copyOf(body, 0, body.length)))
                    .whenComplete((answer, failure) -> {
                        if (answer == null) {
                            fail(failure);
                        } else if (answer.status() == 501 && answer.headers().contains(SPEAKS_GRPC)) {
                            answer.body().release();
                            onlyGrpc.add(service);
                            grpc();
                        } else {
                            complete(answer);
                        }
                    });
        }

        private void grpc() {
            Matcher infer = INFER.matcher(target);
            if (!infer.matches()) {
                result.completeExceptionally(ServingException.of(
                        Code.UNIMPLEMENTED,
                        "the service '" + service + "' speaks gRPC alone, and " + target + " is not of V2",
                        "let its protocol be v2: protocolVersion, or the variable PROTOCOL of its container"));
                return;
            }
            List<Header> metadata = headers.stream()
                    .filter(header -> !header.name().equalsIgnoreCase("content-type"))
                    .toList();
            somewhere(body.length, () -> {
                byte[] message = V2Transcoder.request(infer.group(1), body);
                watched(gateway.call(
                                namespace,
                                service,
                                null,
                                V2Transcoder.MODEL_INFER,
                                metadata,
                                deadline,
                                MemoryRegion.copyOf(message, 0, message.length)))
                        .whenComplete(this::answered);
            });
        }

        private void answered(@Nullable MemoryRegion message, @Nullable Throwable failure) {
            if (message == null) {
                if (failure instanceof ServingException e && e.code() == Code.UNIMPLEMENTED) {
                    // a newer revision may speak HTTP
                    onlyGrpc.remove(service);
                }
                fail(failure);
                return;
            }
            byte[] bytes = new byte[message.size()];
            message.getBytes(0, bytes, 0, bytes.length);
            message.release();
            somewhere(bytes.length, () -> {
                byte[] json = V2Transcoder.answer(bytes);
                complete(new Answer(
                        200,
                        List.of(new Header("content-type", HttpReply.JSON)),
                        MemoryRegion.copyOf(json, 0, json.length)));
            });
        }

        /** Runs what may be long on the pool; what it throws is the call's failure. */
        private void somewhere(int bytes, Runnable task) {
            try {
                if (bytes > OFFLOAD_BYTES) {
                    pool.execute(() -> guarded(task));
                } else {
                    guarded(task);
                }
            } catch (RuntimeException e) {
                fail(e);
            }
        }

        private void guarded(Runnable task) {
            try {
                task.run();
            } catch (RuntimeException e) {
                fail(ServingException.from(e));
            }
        }

        private void complete(Answer answer) {
            if (!result.complete(answer)) {
                answer.body().release();
            }
        }

        private void fail(@Nullable Throwable failure) {
            Throwable cause =
                    failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
            result.completeExceptionally(
                    cause != null ? cause : ServingException.of(Code.INTERNAL, "a call ended without an answer"));
        }
    }
}
