// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Operation;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.Site;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.server.Server;
import io.nereid.transport.tls.TlsOptions;
import io.nereid.transport.tls.TlsOptions.Pem;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the validating webhook at {@code POST /validate} over TLS, and at {@code POST /mutate-pods} the one that completes
 * pods of KServe's templates. It accepts what the API server sends: two objects of at most 1.5 MB, within seconds. When
 * the validating one cannot answer, the API server goes on without it ({@code failurePolicy: Ignore}), so an internal
 * error is answered with 500 and is not a refusal; pods are refused then. Requests need no permission: a response has only
 * whether the client's own object is valid, and what a pod of a service gets, which are references to secrets and no
 * values. Thread-safe.
 *
 * <pre>{@code
 * try (WebhookServer webhook = new WebhookServer(9443, file.path(), context, client, "nereid")) {
 *     webhook.start();
 * }
 * }</pre>
 */
public final class WebhookServer implements AutoCloseable {
    /** The path of the webhook that validates resources. */
    public static final String PATH = "/validate";

    /** The path of the webhook that completes pods of KServe's templates. */
    public static final String PODS = "/mutate-pods";

    private static final int MAX_BODY = 4 << 20;
    private static final int MAX_WAITING = 128;
    private static final Duration LIMIT = Duration.ofSeconds(10);
    private static final Logger LOG = LoggerFactory.getLogger(WebhookServer.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final AdmissionReviewer reviewer;
    private final PodMutator pods;
    private final Server server;
    private final ThreadPoolExecutor threads = Threads.pool("nereid-webhook", 2);
    private final AtomicInteger waiting = new AtomicInteger();

    /**
     * Creates a server that does not listen yet.
     *
     * @param port the port on all addresses; 0 for any free one
     * @param certificate a file of PEM with the certificate and its key, which is polled
     * @param client reads what pods need
     * @param home the operator's own namespace
     */
    public WebhookServer(
            int port, Path certificate, ClusterAdmissionContext context, ClusterClient client, String home) {
        this.pods = new PodMutator(context, client, home);
        this.reviewer = new AdmissionReviewer(
                new Admission(context, Site.KUBERNETES),
                new Admission(context.latest(), Site.KUBERNETES),
                new LocalModelReviews(client));
        ServerOptions options = ServerOptions.builder()
                .listen(
                        "0.0.0.0",
                        port,
                        ServerOptions.Purpose.ALL,
                        TlsOptions.of(Pem.file(certificate), Pem.file(certificate)))
                .eventLoops(1)
                .maxConnections(256)
                .maxBodyBytes(MAX_BODY)
                .requestTimeout(LIMIT)
                .access(AccessPolicy.OPEN)
                .build();
        this.server = new Server(options, List.of(new Routes()));
    }

    /**
     * Starts to listen.
     *
     * @return the port
     * @throws ServingException FAILED_PRECONDITION when the port is in use or the certificate cannot be used
     */
    public int start() {
        int port = server.start().get(0).getPort();
        LOG.info("the webhook answers on port {}", port);
        return port;
    }

    private final class Routes implements ProtocolCodec {
        @Override
        public String name() {
            return "webhook";
        }

        @Override
        public List<HttpRoute> httpRoutes() {
            return List.of(
                    HttpRoute.post(PATH, Operation.METADATA, exchange -> handle(exchange, reviewer::review)),
                    HttpRoute.post(PODS, Operation.METADATA, exchange -> handle(exchange, pods::review)));
        }
    }

    private void handle(HttpExchange exchange, Function<JsonNode, ObjectNode> review) {
        MemoryRegion body = exchange.body();
        byte[] bytes = new byte[body.size()];
        body.getBytes(0, bytes, 0, bytes.length);
        if (waiting.incrementAndGet() > MAX_WAITING) {
            waiting.decrementAndGet();
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, MAX_WAITING + " reviews are waiting already", "try again later");
        }
        threads.execute(() -> {
            try {
                exchange.reply(answer(bytes, review));
            } finally {
                waiting.decrementAndGet();
            }
        });
    }

    private static HttpReply answer(byte[] bytes, Function<JsonNode, ObjectNode> review) {
        try {
            byte[] answer = JSON.writeValueAsBytes(review.apply(JSON.readTree(bytes)));
            return HttpReply.json(200, answer, answer.length);
        } catch (JsonProcessingException e) {
            return HttpReply.error(400, "the body is not JSON: " + e.getOriginalMessage());
        } catch (IOException | RuntimeException e) {
            ServingException failure = ServingException.from(e);
            if (failure.code() != ErrorCode.INVALID_ARGUMENT) {
                LOG.error("a review failed", e);
            }
            return HttpReply.error(failure);
        }
    }

    /** Answers the reviews that are being processed, and stops listening. */
    @Override
    public void close() {
        server.announceDrain();
        server.drain(LIMIT);
        server.close();
        threads.shutdown();
    }
}
