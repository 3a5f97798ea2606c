// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.sun.tools.attach.VirtualMachine;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferRequest;
import io.nereid.protocols.v2.proto.OpenInference.ModelInferResponse;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * The bytes that a request allocates on the server's heap, by kind of request. The server runs with the first compiler alone,
 * which removes no allocation, so that the figure is what the code asks for: it depends neither on the machine nor on what
 * else runs there. What a second compiler leaves of it is measured by {@code testing/bench/run.sh --compare=BASE}.
 */
class AllocatedBytesTest {
    /** More than this share above a row's bytes fails; a lower number is to be written down in its test. */
    private static final double TOLERANCE = 0.05;

    private static final int WARMUP = 3_000;
    private static final int REQUESTS = 500;
    private static final int WINDOWS = 12;
    private static final String ROW = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]";
    private static final MethodDescriptor<ModelInferRequest, ModelInferResponse> INFER =
            MethodDescriptor.<ModelInferRequest, ModelInferResponse>newBuilder()
                    .setType(MethodDescriptor.MethodType.UNARY)
                    .setFullMethodName("inference.GRPCInferenceService/ModelInfer")
                    .setRequestMarshaller(ProtoUtils.marshaller(ModelInferRequest.getDefaultInstance()))
                    .setResponseMarshaller(ProtoUtils.marshaller(ModelInferResponse.getDefaultInstance()))
                    .build();

    private static final Pattern SERVING = Pattern.compile("(nereid-io|device)-\\d+");

    private static ServerProcess server;
    private static JMXConnector connector;

    /** Sends one request and reads its answer. */
    private interface Request {
        void send() throws IOException;
    }

    @BeforeAll
    static void start() throws Exception {
        Path distribution = BuiltDistribution.directory("the bytes that a request allocates");
        server = ServerProcess.serve(
                List.of(distribution.resolve("bin/nereid").toString()),
                Map.of(
                        "NEREID_CDS",
                        "off",
                        "NEREID_JAVA_OPTS",
                        "-XX:TieredStopAtLevel=1",
                        "JAVA_HOME",
                        System.getProperty("java.home")),
                distribution.resolve("examples/models"),
                "--model-control-mode",
                "explicit",
                "--load-model",
                "simple",
                "--load-model",
                "iris",
                // With a rate limiter every run is on a thread of the device: a measured time decides nothing.
                "--rate-limit",
                "execution_count");
        VirtualMachine machine = VirtualMachine.attach(Long.toString(server.pid()));
        String address = machine.startLocalManagementAgent();
        machine.detach();
        connector = JMXConnectorFactory.connect(new JMXServiceURL(address));
    }

    @AfterAll
    static void stop() throws IOException {
        if (connector != null) {
            connector.close();
        }
        if (server != null) {
            server.close();
        }
    }

    @Test
    void restWithJson() throws Exception {
        String body = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + ROW
                + "},{\"name\":\"INPUT1\",\"shape\":[1,16],\"datatype\":\"INT32\",\"data\":" + ROW + "}]}";
        overHttp("/v2/models/simple/infer", "", body.getBytes(StandardCharsets.US_ASCII), 6_660);
    }

    @Test
    void restWithBinaryTensors() throws Exception {
        String head = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,16],\"datatype\":\"INT32\","
                + "\"parameters\":{\"binary_data_size\":64}},{\"name\":\"INPUT1\",\"shape\":[1,16],\"datatype\":\"INT32\","
                + "\"parameters\":{\"binary_data_size\":64}}],\"parameters\":{\"binary_data_output\":true}}";
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(head.getBytes(StandardCharsets.US_ASCII));
        body.writeBytes(integers());
        body.writeBytes(integers());
        overHttp(
                "/v2/models/simple/infer",
                "Inference-Header-Content-Length: " + head.length() + "\r\n",
                body.toByteArray(),
                6_620);
    }

    @Test
    void predictOfTensorFlowServingAndV1() throws Exception {
        overHttp(
                "/v1/models/iris:predict",
                "",
                "{\"instances\":[[6.1,2.8,4.7,1.2]]}".getBytes(StandardCharsets.US_ASCII),
                5_430);
    }

    @Test
    void grpc() throws Exception {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("simple");
        for (String name : List.of("INPUT0", "INPUT1")) {
            request.addInputsBuilder()
                    .setName(name)
                    .setDatatype("INT32")
                    .addShape(1)
                    .addShape(16);
            request.addRawInputContents(ByteString.copyFrom(integers()));
        }
        ModelInferRequest sent = request.build();
        ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", server.port())
                .usePlaintext()
                .build();
        try {
            allocates(
                    9_430,
                    () -> assertThat(ClientCalls.blockingUnaryCall(channel, INFER, CallOptions.DEFAULT, sent)
                                    .getRawOutputContentsCount())
                            .isEqualTo(2));
        } finally {
            channel.shutdownNow();
        }
    }

    private static byte[] integers() {
        ByteBuffer raw = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < 16; i++) {
            raw.putInt(i);
        }
        return raw.array();
    }

    private static void overHttp(String path, String headers, byte[] body, int expected) throws Exception {
        byte[] head = ("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + body.length + "\r\n"
                        + headers + "\r\n")
                .getBytes(StandardCharsets.US_ASCII);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setTcpNoDelay(true);
            OutputStream out = socket.getOutputStream();
            InputStream in = new BufferedInputStream(socket.getInputStream());
            byte[] request = ByteBuffer.allocate(head.length + body.length)
                    .put(head)
                    .put(body)
                    .array();
            allocates(expected, () -> {
                out.write(request);
                answer(in);
            });
        }
    }

    /** Reads one answer of HTTP/1.1 with a length. */
    private static void answer(InputStream in) throws IOException {
        String status = line(in);
        int length = 0;
        for (String header = line(in); !header.isEmpty(); header = line(in)) {
            if (header.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                length = Integer.parseInt(
                        header.substring(header.indexOf(':') + 1).trim());
            }
        }
        byte[] body = in.readNBytes(length);
        assertThat(status).as(new String(body, StandardCharsets.UTF_8)).isEqualTo("HTTP/1.1 200 OK");
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException("the server closed the connection");
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
        return line.toString();
    }

    private static void allocates(int expected, Request request) throws Exception {
        send(request, WARMUP);
        // The smallest of several windows: a loaded machine changes which threads meet, and so what is pooled.
        double bytes = Double.MAX_VALUE;
        for (int i = 0; i < WINDOWS; i++) {
            long before = allocated();
            send(request, REQUESTS);
            bytes = Math.min(bytes, (allocated() - before) / (double) REQUESTS);
        }
        assertThat(bytes)
                .as("bytes a request; a lower number is to be written down")
                .isBetween(expected * 0.5, expected * (1 + TOLERANCE));
    }

    private static void send(Request request, int times) throws IOException {
        for (int i = 0; i < times; i++) {
            request.send();
        }
    }

    /** The bytes that the threads have allocated that serve requests: what others do depends on time. */
    private static long allocated() throws Exception {
        MBeanServerConnection beans = connector.getMBeanServerConnection();
        ObjectName threading = new ObjectName("java.lang:type=Threading");
        long[] ids = (long[]) beans.getAttribute(threading, "AllThreadIds");
        String[] types = {long[].class.getName()};
        CompositeData[] threads = (CompositeData[]) beans.invoke(threading, "getThreadInfo", new Object[] {ids}, types);
        long[] bytes = (long[]) beans.invoke(threading, "getThreadAllocatedBytes", new Object[] {ids}, types);
        long sum = 0;
        for (int i = 0; i < ids.length; i++) {
            String name = threads[i] == null ? "" : String.valueOf(threads[i].get("threadName"));
            if (SERVING.matcher(name).matches()) {
                sum += Math.max(0, bytes[i]);
            }
        }
        return sum;
    }
}
