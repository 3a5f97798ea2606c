// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.jmh;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.observe.Observability;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.samples.IdentityBackend;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcCall;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.ResponseStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** A request of 16 floats to the identity model through codec and engine, without the transport. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@SuppressWarnings("NullAway.Init") // set by prepare
public class CodecBenchmark {
    private static final Clock CLOCK = Clock.system();

    private Path directory;
    private Engine engine;
    private HttpRoute.HttpHandler rest;
    private GrpcMethod.GrpcHandler grpc;
    private MemoryRegion json;
    private MemoryRegion message;

    /** Loads the model. */
    @Setup
    public void prepare() throws IOException {
        directory = Files.createTempDirectory("nereid-jmh");
        engine = new Engine(EngineOptions.of(RequestBodies.identity(directory)), List.of(new IdentityBackend()), CLOCK);
        engine.start().toCompletableFuture().join();
        V2Codec codec = new V2Codec(
                engine, engine, Observability.NONE, CLOCK, Runnable::run, V2Options.defaults("bench", 64 << 20));
        rest = codec.httpRoutes().stream()
                .filter(r -> r.template().equals("/v2/models/{model}/infer"))
                .findFirst()
                .orElseThrow()
                .handler();
        grpc = codec.grpcMethods().stream()
                .filter(m -> m.path().endsWith("/ModelInfer"))
                .findFirst()
                .orElseThrow()
                .handler();
        RequestBodies bodies = new RequestBodies(directory);
        byte[] text = Files.readAllBytes(bodies.restSmall().body());
        json = MemoryRegion.copyOf(text, 0, text.length);
        byte[] framed = Files.readAllBytes(bodies.grpcSmall(1, 1).body());
        message = MemoryRegion.copyOf(framed, 5, framed.length - 5);
    }

    /** Closes the engine. */
    @TearDown
    public void end() {
        engine.close();
        json.release();
        message.release();
        BenchmarkSettings.delete(directory);
    }

    /** REST with JSON. */
    @Benchmark
    public int rest() {
        Exchange exchange = new Exchange(json);
        rest.handle(exchange);
        return exchange.bytes;
    }

    /** gRPC with raw contents. */
    @Benchmark
    public int grpc() {
        Call call = new Call();
        GrpcMethod.GrpcListener listener = grpc.start(call);
        listener.onMessage(message);
        listener.onHalfClose();
        return call.bytes;
    }

    /** Discards the reply. Confined to one thread. */
    private static final class Exchange implements HttpExchange {
        private final MemoryRegion body;
        private final long arrived = CLOCK.nanos();
        private int bytes;

        Exchange(MemoryRegion body) {
            this.body = body;
        }

        @Override
        public String method() {
            return "POST";
        }

        @Override
        public String path() {
            return "/v2/models/m/infer";
        }

        @Override
        public String pathParameter(int index) {
            return "m";
        }

        @Override
        public @Nullable String queryParameter(String name) {
            return null;
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return null;
        }

        @Override
        public MemoryRegion body() {
            return body;
        }

        @Override
        public long arrivedNanos() {
            return arrived;
        }

        @Override
        public ResponseStream stream(HttpReply head) {
            throw new IllegalStateException("an inference response is not streamed");
        }

        @Override
        public void headers(BiConsumer<String, String> each) {}

        @Override
        public void onCancel(Runnable action) {}

        @Override
        public boolean inEventLoop() {
            return true;
        }

        @Override
        public void reply(HttpReply reply) {
            if (reply.status() != 200) {
                throw new IllegalStateException("status " + reply.status());
            }
            bytes = (int) reply.content().length();
            reply.content().discard();
        }
    }

    /** Discards the response. Confined to one thread. */
    private static final class Call implements GrpcCall {
        private final long arrived = CLOCK.nanos();
        private int bytes;

        @Override
        public String path() {
            return "/inference.GRPCInferenceService/ModelInfer";
        }

        @Override
        public void metadata(java.util.function.BiConsumer<String, String> each) {
            // Not used by the benchmark.
        }

        @Override
        public @Nullable String metadata(String lowerCaseName) {
            return null;
        }

        @Override
        public long deadlineNanos() {
            return Long.MAX_VALUE;
        }

        @Override
        public long arrivedNanos() {
            return arrived;
        }

        @Override
        public boolean inEventLoop() {
            return true;
        }

        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setReading(boolean reading) {}

        @Override
        public void send(ResponseBody content) {
            bytes = (int) content.length();
            content.discard();
        }

        @Override
        public void sendAndClose(ResponseBody content) {
            send(content);
        }

        @Override
        public void close(ErrorCode code, @Nullable String text) {
            if (code != ErrorCode.OK) {
                throw new IllegalStateException(code + ": " + text);
            }
        }
    }
}
