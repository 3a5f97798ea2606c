// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.apiserver.cluster.AccessReviewHandler;
import io.nereid.control.apiserver.cluster.ClusterKinds;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.ErrorResponseException;
import io.nereid.control.apiserver.http.ResourceAddress;
import io.nereid.control.apiserver.pod.PodLogHandler;
import io.nereid.control.apiserver.pod.PodView;
import io.nereid.control.apiserver.read.ReadHandler;
import io.nereid.control.apiserver.read.ResourceSelector;
import io.nereid.control.apiserver.write.GarbageCollector;
import io.nereid.control.apiserver.write.NamespaceLifecycle;
import io.nereid.control.apiserver.write.WriteHandler;
import io.nereid.control.core.WorkloadObserver;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.HttpRoute.HttpHandler;
import io.nereid.transport.api.HttpStatusCodes;
import io.nereid.transport.api.ProtocolCodec;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the resources over HTTP with the API of Kubernetes, closely enough that kubectl works. Its route matches every
 * path, so it needs a port of its own. Thread-safe. Requests run on its own threads and not on the event loop, because
 * changes block until they are on disk.
 *
 * <pre>{@code
 * Admission admission = new Admission(AdmissionContext.NONE);
 * ApiServer server = new ApiServer(store, admission, ApiServer.Options.plain(Clock.system()));
 * List<HttpRoute> routes = server.httpRoutes(); // to be served by the HTTP transport
 * }</pre>
 */
public final class ApiServer implements ProtocolCodec, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ApiServer.class);
    private static final int THREADS = 16;
    private static final int TAIL = 500;

    private final Options options;
    private final ResourceStore store;
    private final Admission admission;
    private final DiscoveryHandler discoveryHandler;
    private final WriteHandler writeHandler;
    private final GarbageCollector collector;
    private final ThreadPoolExecutor pool = Threads.pool("nereid-control-api", THREADS);
    private final ScheduledThreadPoolExecutor timer = Threads.timer("nereid-control-timer");
    private final ReadHandler readHandler;
    private final PodLogHandler podLogHandler;
    private final AccessReviewHandler reviews = new AccessReviewHandler();

    /**
     * The options of the server. Immutable.
     *
     * @param version the version of the program
     * @param clock the server's clock
     * @param logs the logs of services
     * @param selection explains which runtime is selected for a service
     * @param observer observes the workloads to show as pods
     * @param advice names what of a service has no effect, for warnings when it is written
     * @param definitions the definitions of the kinds, as manifests for a cluster
     */
    public record Options(
            String version,
            Clock clock,
            Logs logs,
            Selection selection,
            WorkloadObserver observer,
            Advice advice,
            List<ObjectNode> definitions) {
        /** Options without advice and definitions. */
        public Options(String version, Clock clock, Logs logs, Selection selection, WorkloadObserver observer) {
            this(version, clock, logs, selection, observer, service -> List.of(), List.of());
        }

        /** Options without pods. */
        public Options(String version, Clock clock, Logs logs, Selection selection) {
            this(version, clock, logs, selection, WorkloadObserver.NONE);
        }

        /** Options without logs and without explanations of runtime selections; for tests. */
        public static Options plain(Clock clock) {
            return new Options("test", clock, (namespace, service, component, most) -> List.of(), service -> {
                throw ServingException.of(ErrorCode.UNIMPLEMENTED, "runtime selection is not available");
            });
        }
    }

    /** The logs of services. Implementations are thread-safe. */
    @FunctionalInterface
    public interface Logs {
        /**
         * The last log lines of a service, from its processes and from the loading of its models; oldest first.
         *
         * @param component {@code predictor}, {@code transformer} or {@code explainer}; null for all
         */
        List<String> tail(String namespace, String service, @Nullable String component, int most);
    }

    /** Explains which runtime is selected for a service. Implementations are thread-safe. */
    @FunctionalInterface
    public interface Selection {
        /** The selection for an admitted InferenceService; null when it has custom containers. */
        @Nullable RuntimeSelection explain(ObjectNode service);
    }

    /** Names what of a service has no effect. Implementations are thread-safe. */
    @FunctionalInterface
    public interface Advice {
        /** A sentence for each field and annotation of an admitted InferenceService that has no effect. */
        List<String> of(ObjectNode service);
    }

    /**
     * Creates a server. Requests arrive only when its routes are served; garbage collection of resources whose owners
     * were deleted starts now.
     */
    public ApiServer(ResourceStore store, Admission admission, Options options) {
        this.options = options;
        this.store = store;
        this.admission = admission;
        List<ResourceKind> kinds = new ArrayList<>(ResourceKinds.all());
        for (ResourceKind kind : ResourceKinds.all()) {
            kind.alternates().forEach(version -> kinds.add(kind.inVersion(version)));
        }
        kinds.add(PodView.KIND);
        kinds.addAll(ClusterKinds.ALL);
        AccessReviewHandler.KINDS.values().forEach(kinds::addAll);
        this.discoveryHandler = new DiscoveryHandler(List.copyOf(kinds), options.version());
        PodView pods =
                new PodView(store, options.observer(), timer, options.clock().millis());
        this.writeHandler = new WriteHandler(
                store, admission, options.advice()::of, new NamespaceLifecycle(store), options.clock());
        String now = Instant.ofEpochSecond(options.clock().millis() / 1000).toString();
        ClusterKinds views = new ClusterKinds(options.definitions(), now);
        this.readHandler = new ReadHandler(store, pods, views, options.clock(), timer);
        this.podLogHandler = new PodLogHandler(pods, options.clock(), timer);
        this.collector = new GarbageCollector(store, writeHandler);
        collector.start();
    }

    @Override
    public String name() {
        return "control";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        HttpHandler handler = new HttpHandler() {
            @Override
            public void handle(HttpExchange exchange) {
                ApiServer.this.handle(exchange);
            }

            @Override
            public HttpReply denied(ServingException e) {
                boolean unknown = e.code() == ErrorCode.UNAUTHENTICATED;
                return ApiResponse.failure(
                                unknown ? 401 : HttpStatusCodes.http(e.code()),
                                unknown ? "Unauthorized" : "Forbidden",
                                e.describe())
                        .reply();
            }
        };
        return List.of(new HttpRoute(HttpRoute.ANY, "/{rest...}", ApiServer::operation, handler));
    }

    /** Reading needs less than writing; a connection check of a load balancer needs nothing else than health. */
    private static Operation operation(String method, String path) {
        boolean read = method.equals("GET") || method.equals("HEAD");
        if (PodView.isSession(path)) {
            return Operation.HEALTH; // nothing is run: the answer is that it is not supported
        }
        if (read && (path.equals("/healthz") || path.equals("/livez") || path.equals("/readyz"))) {
            return Operation.HEALTH;
        }
        return read || AccessReviewHandler.isReview(path) ? Operation.CONTROL_READ : Operation.CONTROL;
    }

    /** Ends all watches and rejects further requests. */
    @Override
    public void close() {
        readHandler.close();
        podLogHandler.close();
        collector.close();
        timer.shutdownNow();
        pool.shutdown();
    }

    private void handle(HttpExchange exchange) {
        try {
            pool.execute(() -> run(exchange));
        } catch (RejectedExecutionException e) {
            exchange.reply(ApiResponse.failure(503, "ServiceUnavailable", "the server is shutting down")
                    .reply());
        }
    }

    private void run(HttpExchange exchange) {
        ApiResponse response;
        try {
            response = dispatch(new ApiRequest(exchange));
        } catch (ErrorResponseException e) {
            response = e.response();
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INTERNAL) {
                LOG.error("{} {} failed", exchange.method(), exchange.path(), e);
            }
            response = ApiResponse.ofStatus(ApiResponse.failureStatus(e));
        } catch (RuntimeException e) {
            LOG.error("{} {} failed", exchange.method(), exchange.path(), e);
            response = ApiResponse.ofStatus(ApiResponse.failureStatus(ServingException.from(e)));
        }
        if (response != null) {
            exchange.reply(response.reply());
        }
    }

    /** The response; null when the handler has replied itself or replies with a stream. */
    private @Nullable ApiResponse dispatch(ApiRequest request) {
        List<String> path = request.path();
        if (path.isEmpty()) {
            return get(request, () -> ApiResponse.ok(roots()));
        }
        String first = path.get(0);
        if (path.size() == 1) {
            switch (first) {
                case "version" -> {
                    return get(request, () -> ApiResponse.ok(discoveryHandler.version()));
                }
                case "api" -> {
                    return get(request, () -> discoveryHandler.core(request));
                }
                case "apis" -> {
                    return get(request, () -> discoveryHandler.groups(request));
                }
                case "healthz", "livez", "readyz" -> {
                    request.exchange().reply(HttpReply.text(200, "text/plain; charset=utf-8", "ok"));
                    return null;
                }
                default -> throw ApiRequest.notFound();
            }
        }
        if (first.equals("openapi")) {
            return openApi(request);
        }
        if (first.equals("apis") && path.size() == 2) {
            return get(request, () -> ApiResponse.ok(discoveryHandler.group(path.get(1))));
        }
        int rest = first.equals("api") ? 2 : 3;
        if (!first.equals("api") && !first.equals("apis")) {
            throw ApiRequest.notFound();
        }
        String group = first.equals("api") ? "" : path.get(1);
        String version = path.get(rest - 1);
        if (path.size() == rest) {
            return get(request, () -> ApiResponse.ok(discoveryHandler.resources(group, version)));
        }
        if (request.method().equals("POST") && path.size() == rest + 1) {
            ApiResponse review = reviews.answer(group, path.get(rest), request);
            if (review != null) {
                return review;
            }
        }
        ResourceAddress target = target(group, version, path.subList(rest, path.size()));
        if (target.kind() == PodView.KIND
                && PodView.isSession(request.exchange().path())) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    target.subresource() + " is not supported: models run inside the server, and pods only show them",
                    "kubectl logs shows what a service prints");
        }
        boolean read = request.method().equals("GET") || request.method().equals("HEAD");
        // a collection of all namespaces, or what belongs to none, needs a role for all namespaces
        request.exchange()
                .require(
                        read ? Permission.CONTROL_READ : Permission.CONTROL,
                        target.namespace().isEmpty() ? Caller.ALL : target.namespace());
        try {
            return resource(target, request);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INTERNAL || e.code() == ErrorCode.INVALID_ARGUMENT) {
                throw e;
            }
            return ApiResponse.ofStatus(ApiResponse.about(ApiResponse.failureStatus(e), target.kind(), target.name()));
        }
    }

    private static ApiResponse get(ApiRequest request, java.util.function.Supplier<ApiResponse> response) {
        if (!request.method().equals("GET") && !request.method().equals("HEAD")) {
            throw notAllowed(request);
        }
        return response.get();
    }

    private static ServingException notAllowed(ApiRequest request) {
        return ServingException.of(
                ErrorCode.UNIMPLEMENTED,
                "the server does not allow this method on the requested resource: " + request.method());
    }

    private static ObjectNode roots() {
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        ArrayNode paths = tree.putArray("paths");
        List.of("/api", "/api/v1", "/apis", "/apis/" + ResourceKinds.SERVING, "/healthz", "/openapi/v3", "/version")
                .forEach(paths::add);
        return tree;
    }

    private ApiResponse openApi(ApiRequest request) {
        List<String> path = request.path();
        if (path.get(1).equals("v3")) {
            return get(
                    request,
                    () -> ApiResponse.ok(
                            path.size() == 2
                                    ? discoveryHandler.openApiIndex()
                                    : discoveryHandler.openApi(String.join("/", path.subList(2, path.size())))));
        }
        // kubectl asks for OpenAPI v2 in protobuf; after a 406 it continues without the document.
        return ApiResponse.failure(
                406, "NotAcceptable", "only OpenAPI v3 is available; clients that ask for v2 work without it");
    }

    /** Parses the part of a path after the API version: {@code [namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]}. */
    private static ResourceAddress target(String group, String version, List<String> path) {
        String namespace = "";
        List<String> rest = path;
        boolean scoped = path.get(0).equals("namespaces")
                && path.size() >= 3
                && !(group.isEmpty()
                        && path.size() == 3
                        && List.of("status", "finalize").contains(path.get(2)));
        if (scoped) {
            namespace = path.get(1);
            rest = path.subList(2, path.size());
        }
        ResourceKind kind = group.isEmpty() && rest.get(0).equals(PodView.KIND.plural())
                ? PodView.KIND
                : ResourceKinds.byPlural(group, rest.get(0));
        kind = kind == null ? ClusterKinds.byPlural(group, rest.get(0)) : kind;
        if (kind == null || !kind.serves(version) || scoped != (kind.namespaced() && scoped)) {
            throw ApiRequest.notFound();
        }
        String name = rest.size() > 1 ? rest.get(1) : "";
        String subresource = rest.size() > 2 ? rest.get(2) : "";
        if (rest.size() > 3 || kind.namespaced() && !scoped && !name.isEmpty()) {
            throw ApiRequest.notFound();
        }
        return new ResourceAddress(kind.inVersion(version), namespace, name, subresource);
    }

    private @Nullable ApiResponse resource(ResourceAddress target, ApiRequest request) {
        ResourceKind kind = target.kind();
        String method = request.method();
        if (kind == PodView.KIND) {
            return pods(target, request);
        }
        if (ClusterKinds.has(kind)) {
            return view(target, request);
        }
        if (!target.subresource().isEmpty() && !(target.isStatus() && kind.hasStatus())) {
            return subresource(target, request);
        }
        if (target.name().isEmpty()) {
            boolean everywhere = kind.namespaced() && target.namespace().isEmpty();
            return switch (method) {
                case "GET", "HEAD" ->
                    request.flag("watch") ? readHandler.watch(target, request) : readHandler.list(target, request);
                case "POST" -> {
                    if (everywhere) {
                        throw notAllowed(request);
                    }
                    yield writeHandler.create(target, request);
                }
                case "DELETE" ->
                    writeHandler.deleteAll(
                            target,
                            new ResourceSelector(kind, request.query("labelSelector"), request.query("fieldSelector")),
                            request.dryRun());
                default -> throw notAllowed(request);
            };
        }
        return switch (method) {
            case "GET", "HEAD" -> readHandler.one(target, request);
            case "PUT" -> writeHandler.replace(target, request);
            case "PATCH" -> writeHandler.patch(target, request);
            case "DELETE" -> {
                if (target.isStatus()) {
                    throw notAllowed(request);
                }
                yield writeHandler.delete(target, request);
            }
            default -> throw notAllowed(request);
        };
    }

    private @Nullable ApiResponse view(ResourceAddress target, ApiRequest request) {
        if (!request.method().equals("GET") && !request.method().equals("HEAD")) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "the server does not allow this method on the requested resource: " + target.qualifiedPlural()
                            + " are only read here",
                    "apply them to a cluster");
        }
        if (!target.subresource().isEmpty()) {
            throw ApiRequest.notFound();
        }
        if (!target.name().isEmpty()) {
            return readHandler.one(target, request);
        }
        return request.flag("watch") ? readHandler.watch(target, request) : readHandler.list(target, request);
    }

    private @Nullable ApiResponse pods(ResourceAddress target, ApiRequest request) {
        if (!request.method().equals("GET") && !request.method().equals("HEAD")) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "the server does not allow this method on the requested resource: pods only show what runs",
                    "change or delete the InferenceService instead");
        }
        if (target.name().isEmpty()) {
            return request.flag("watch") ? readHandler.watch(target, request) : readHandler.list(target, request);
        }
        if (target.subresource().isEmpty()) {
            return readHandler.one(target, request);
        }
        if (!target.subresource().equals("log")) {
            throw ApiRequest.notFound();
        }
        podLogHandler.answer(target, request);
        return null;
    }

    private @Nullable ApiResponse subresource(ResourceAddress target, ApiRequest request) {
        if (target.kind() != ResourceKinds.INFERENCE_SERVICE) {
            throw ApiRequest.notFound();
        }
        switch (target.subresource()) {
            case "logs" -> {
                target.read(store);
                String component = request.query("component");
                List<String> lines = options.logs()
                        .tail(
                                target.namespace(),
                                target.name(),
                                component == null || component.isEmpty() ? null : component,
                                (int) Math.min(Math.max(0, request.number("tail", TAIL)), 1_000_000));
                String text = lines.isEmpty() ? "" : String.join("\n", lines) + "\n";
                request.exchange().reply(HttpReply.text(200, "text/plain; charset=utf-8", text));
                return null;
            }
            case "selection" -> {
                ObjectNode service;
                if (request.method().equals("POST")) {
                    service = request.resource();
                    service.withObject("/metadata").put("namespace", target.namespace());
                    service = admission.admit(target.kind(), service, null).resource();
                } else {
                    service = target.read(store);
                }
                return ApiResponse.ok(tree(options.selection().explain(service)));
            }
            default -> throw ApiRequest.notFound();
        }
    }

    private static ObjectNode tree(@Nullable RuntimeSelection selection) {
        ObjectNode tree = ApiResponse.JSON.createObjectNode();
        ArrayNode considered = tree.putArray("considered");
        if (selection == null) {
            tree.putNull("chosen");
            return tree.put("message", "the predictor has custom containers, so a runtime is not selected");
        }
        ServingRuntime chosen = selection.chosen();
        tree.put("chosen", chosen == null ? null : chosen.name());
        tree.put("protocol", selection.protocol());
        tree.put("reason", selection.reason());
        tree.put("message", selection.message());
        for (RuntimeSelection.Considered one : selection.considered()) {
            considered
                    .addObject()
                    .put("runtime", one.runtime())
                    .put("cluster", one.cluster())
                    .put("fits", one.fits())
                    .put("chosen", one.chosen())
                    .put("why", one.why());
        }
        return tree;
    }
}
