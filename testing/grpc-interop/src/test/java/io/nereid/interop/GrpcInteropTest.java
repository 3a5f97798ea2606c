// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.interop;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.testing.integration.AbstractInteropTest;
import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * gRPC's own interoperability client against the transport: with the service in the server, and through the proxy.
 *
 * <p>Left out, and why: {@code customMetadata}, {@code exchangeMetadata…}, {@code censusContextsPropagated} (handlers
 * send no metadata of their own, which no protocol of the server has), the compression probes (handlers get messages
 * decompressed and do not see that), {@code sendsTimeoutHeader}, {@code getServerAddress…} and {@code gracefulShutdown} (of
 * a server within the test class), credentials of Google's cloud and load reports (ORCA).
 */
class GrpcInteropTest {
    private static final EventLoops LOOPS = new EventLoops(1, true);
    private static final TestServiceCodec SERVICE = new TestServiceCodec();
    private static final Server SERVER = server(SERVICE);
    private static final int PORT = SERVER.start().get(0).getPort();
    private static final PooledUpstreamClient PROXY =
            new PooledUpstreamClient(PooledUpstreamClient.Options.DEFAULT.withLoops(LOOPS));
    private static final Server GATEWAY = server(new ProtocolCodec() {
        @Override
        public String name() {
            return "gateway";
        }

        @Override
        public List<GrpcMethod> grpcMethods() {
            ForwardOptions options = new ForwardOptions(Duration.ZERO, 64 << 20, List.of());
            return List.of(new GrpcMethod(
                    "/*",
                    GrpcMethod.Kind.BIDI_STREAMING,
                    Operation.INFERENCE,
                    call -> PROXY.forward(call, new UpstreamClient.Address("127.0.0.1", PORT), options)));
        }
    });
    private static final int GATEWAY_PORT = GATEWAY.start().get(0).getPort();

    private static Server server(ProtocolCodec codec) {
        return new Server(
                ServerOptions.builder()
                        .listen("127.0.0.1", 0)
                        .loops(LOOPS)
                        .compressMessages(true)
                        .clock(Clock.system())
                        .build(),
                List.of(codec));
    }

    @AfterAll
    static void stop() {
        GATEWAY.close();
        PROXY.close();
        SERVER.close();
        SERVICE.close();
        LOOPS.close();
    }

    static Stream<String> cases() {
        return Stream.of(
                "emptyUnary",
                "emptyUnaryWithRetriableStream",
                "largeUnary",
                "clientCompressedUnary",
                "serverCompressedUnary",
                "serverStreaming",
                "clientStreaming",
                "clientCompressedStreaming",
                "serverCompressedStreaming",
                "pingPong",
                "emptyStream",
                "cancelAfterBegin",
                "cancelAfterFirstResponse",
                "fullDuplexCallShouldSucceed",
                "halfDuplexCallShouldSucceed",
                "serverStreamingShouldBeFlowControlled",
                "veryLargeRequest",
                "veryLargeResponse",
                "deadlineNotExceeded",
                "deadlineExceeded",
                "deadlineExceededServerStreaming",
                "deadlineInPast",
                "maxInboundSize_exact",
                "maxInboundSize_tooBig",
                "maxOutboundSize_exact",
                "maxOutboundSize_tooBig",
                "statusCodeAndMessage",
                "specialStatusMessage",
                "unimplementedMethod",
                "unimplementedService",
                "timeoutOnSleepingServer");
    }

    private static void run(String name, int port) throws Exception {
        Method test = Arrays.stream(AbstractInteropTest.class.getMethods())
                .filter(m -> m.getName().equals(name))
                .findFirst()
                .orElseThrow();
        InteropClient client = new InteropClient(port);
        client.setUp();
        try {
            if (test.getParameterCount() == 0) {
                test.invoke(client);
            } else {
                test.invoke(client, false); // without the probe whether the server checks the compression
            }
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception thrown ? thrown : e;
        } finally {
            client.tearDown();
        }
    }

    @ParameterizedTest
    @MethodSource("cases")
    void withTheServer(String name) throws Exception {
        run(name, PORT);
    }

    @ParameterizedTest
    @MethodSource("cases")
    void throughTheProxy(String name) throws Exception {
        run(name, GATEWAY_PORT);
    }

    @Test
    void nothingIsLeftBehind() throws Exception {
        for (String name : List.of("largeUnary", "pingPong", "cancelAfterFirstResponse")) {
            run(name, PORT);
        }
        long due = System.nanoTime() + Duration.ofSeconds(10).toNanos();
        while (SERVER.stats().inFlight() > 0) {
            assertThat(System.nanoTime()).isLessThan(due);
            Thread.onSpinWait();
        }
    }
}
