// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.apiserver.WriteHandler.Refused;
import io.nereid.control.apiserver.WriteHandler.Target;
import io.nereid.control.apiserver.http.ApiRequest;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.CrossOriginFilter;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
 * Admission admission = new Admission(Admission.Surroundings.NONE);
 * ApiServer server = new ApiServer(store, admission, ApiServer.Options.plain(Clock.systemUTC()));
 * List<HttpRoute> routes = server.httpRoutes(); // to be served by the HTTP transport
 * }</pre>
 */
public final class ApiServer implements ProtocolCodec, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ApiServer.class);
    private static final int THREADS = 16;
    private static final int TAIL = 500;

    private final Options options;
    private final Admission admission;
    private final CrossOriginFilter guard;
    private final DiscoveryHandler discovery;
    private final WriteHandler resources;
    private final GarbageCollector collector;
    private final ThreadPoolExecutor pool = Threads.pool("nereid-control-api", THREADS);
    private final ScheduledThreadPoolExecutor timer = Threads.timer("nereid-control-timer");
    private final ReadHandler reads;
    private final PodLogHandler podLogs;

    /**
     * The options of the server. Immutable.
     *
     * @param hosts host names that clients may use, in addition to localhost and loopback addresses; {@code *} for any
     * @param version the version of the program
     * @param clock the server's clock
     * @param logs the logs of services
     * @param selection explains which runtime is selected for a service
     * @param runs the workloads to show as pods
     */
    public record Options(Set<String> hosts, String version, Clock clock, Logs logs, Selection selection, Runs runs) {
        /** Copies the hosts. */
        public Options {
            hosts = Set.copyOf(hosts);
        }

        /** Options without pods. */
        public Options(Set<String> hosts, String version, Clock clock, Logs logs, Selection selection) {
            this(hosts, version, clock, logs, selection, Runs.NONE);
        }

        /** Options without logs and without explanations of runtime selections; for tests. */
        public static Options plain(Clock clock) {
            return new Options(Set.of(), "test", clock, (namespace, service, component, most) -> List.of(), service -> {
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

    /** The running workloads, for clients that list pods. Implementations are thread-safe, and no method blocks. */
    public interface Runs {
        /** No workloads. */
        Runs NONE = new Runs() {
            @Override
            public Map<String, WorkloadState> of(String namespace, String service) {
                return Map.of();
            }

            @Override
            public List<String> tail(String namespace, String revision, int most) {
                return List.of();
            }
        };

        /** The workloads that an infrastructure observes. */
        static Runs of(Infrastructure infrastructure) {
            return new Runs() {
                @Override
                public Map<String, WorkloadState> of(String namespace, String service) {
                    return infrastructure.observe(namespace, service);
                }

                @Override
                public List<String> tail(String namespace, String revision, int most) {
                    return infrastructure.logs(namespace, revision, most);
                }
            };
        }

        /** The states of a service's workloads by revision. */
        Map<String, WorkloadState> of(String namespace, String service);

        /** The last log lines of a revision, oldest first; each begins with a timestamp and a space. */
        List<String> tail(String namespace, String revision, int most);
    }

    /** Explains which runtime is selected for a service. Implementations are thread-safe. */
    @FunctionalInterface
    public interface Selection {
        /** The selection for an admitted InferenceService; null when it has custom containers. */
        @Nullable RuntimeSelection explain(ObjectNode service);
    }

    /**
     * Creates a server. Requests arrive only when its routes are served; garbage collection of resources whose owners
     * were deleted starts now.
     */
    public ApiServer(ResourceStore store, Admission admission, Options options) {
        this.options = options;
        this.admission = admission;
        this.guard = new CrossOriginFilter(options.hosts());
        List<ResourceKind> kinds = new ArrayList<>(ResourceKinds.all());
        kinds.add(PodView.KIND);
        this.discovery = new DiscoveryHandler(List.copyOf(kinds), options.version());
        PodView pods = new PodView(store, options.runs(), timer, options.clock().millis());
        this.resources = new WriteHandler(store, admission, new NamespaceLifecycle(store), options.clock());
        this.reads = new ReadHandler(store, pods, resources, options.clock(), timer);
        this.podLogs = new PodLogHandler(pods, options.clock(), timer);
        this.collector = new GarbageCollector(store, resources);
        collector.start();
    }

    @Override
    public String name() {
        return "control";
    }

    @Override
    public List<HttpRoute> httpRoutes() {
        return List.of(new HttpRoute(HttpRoute.ANY, "/{rest...}", this::handle));
    }

    /** Ends all watches and rejects further requests. */
    @Override
    public void close() {
        reads.close();
        podLogs.close();
        collector.close();
        timer.shutdownNow();
        pool.shutdown();
    }

    private void handle(HttpExchange exchange) {
        String rejection = guard.rejection(exchange);
        if (rejection != null) {
            exchange.reply(ApiResponse.failure(403, "Forbidden", rejection).reply());
            return;
        }
        try {
            pool.execute(() -> run(exchange));
        } catch (RejectedExecutionException e) {
            exchange.reply(ApiResponse.failure(503, "ServiceUnavailable", "the server is shutting down")
                    .reply());
        }
    }

    private void run(HttpExchange exchange) {
        ApiResponse answer;
        try {
            answer = dispatch(new ApiRequest(exchange));
        } catch (Refused e) {
            answer = e.answer();
        } catch (ApiRequest.Unsupported e) {
            answer = ApiResponse.failure(415, "UnsupportedMediaType", String.valueOf(e.getMessage()));
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INTERNAL) {
                LOG.error("{} {} failed", exchange.method(), exchange.path(), e);
            }
            answer = ApiResponse.ofStatus(ApiResponse.failureStatus(e));
        } catch (RuntimeException e) {
            LOG.error("{} {} failed", exchange.method(), exchange.path(), e);
            answer = ApiResponse.ofStatus(ApiResponse.failureStatus(ServingException.from(e)));
        }
        if (answer != null) {
            exchange.reply(answer.reply());
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
                    return get(request, () -> ApiResponse.ok(discovery.version()));
                }
                case "api" -> {
                    return get(request, () -> discovery.core(request));
                }
                case "apis" -> {
                    return get(request, () -> discovery.groups(request));
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
            return get(request, () -> ApiResponse.ok(discovery.group(path.get(1))));
        }
        int rest = first.equals("api") ? 2 : 3;
        if (!first.equals("api") && !first.equals("apis")) {
            throw ApiRequest.notFound();
        }
        String group = first.equals("api") ? "" : path.get(1);
        String version = path.get(rest - 1);
        if (path.size() == rest) {
            return get(request, () -> ApiResponse.ok(discovery.resources(group, version)));
        }
        Target target = target(group, version, path.subList(rest, path.size()));
        try {
            return resource(target, request);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INTERNAL || e.code() == ErrorCode.INVALID_ARGUMENT) {
                throw e;
            }
            return ApiResponse.ofStatus(ApiResponse.about(ApiResponse.failureStatus(e), target.kind(), target.name()));
        }
    }

    private static ApiResponse get(ApiRequest request, java.util.function.Supplier<ApiResponse> answer) {
        if (!request.method().equals("GET") && !request.method().equals("HEAD")) {
            throw notAllowed(request);
        }
        return answer.get();
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
                                    ? discovery.openApiIndex()
                                    : discovery.openApi(String.join("/", path.subList(2, path.size())))));
        }
        // kubectl asks for OpenAPI v2 in protobuf; after a 406 it continues without the document.
        return ApiResponse.failure(
                406, "NotAcceptable", "only OpenAPI v3 is available; clients that ask for v2 work without it");
    }

    /** Parses the part of a path after the API version: {@code [namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]}. */
    private static Target target(String group, String version, List<String> path) {
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
        if (kind == null || !kind.version().equals(version) || scoped != (kind.namespaced() && scoped)) {
            throw ApiRequest.notFound();
        }
        String name = rest.size() > 1 ? rest.get(1) : "";
        String subresource = rest.size() > 2 ? rest.get(2) : "";
        if (rest.size() > 3 || kind.namespaced() && !scoped && !name.isEmpty()) {
            throw ApiRequest.notFound();
        }
        return new Target(kind, namespace, name, subresource);
    }

    private @Nullable ApiResponse resource(Target target, ApiRequest request) {
        ResourceKind kind = target.kind();
        String method = request.method();
        if (kind == PodView.KIND) {
            return pods(target, request);
        }
        if (!target.subresource().isEmpty() && !(target.isStatus() && kind.hasStatus())) {
            return subresource(target, request);
        }
        if (target.name().isEmpty()) {
            boolean everywhere = kind.namespaced() && target.namespace().isEmpty();
            return switch (method) {
                case "GET", "HEAD" ->
                    request.flag("watch") ? reads.watch(target, request) : reads.list(target, request);
                case "POST" -> {
                    if (everywhere) {
                        throw notAllowed(request);
                    }
                    yield resources.create(target, request);
                }
                case "DELETE" ->
                    resources.deleteAll(
                            target,
                            new ResourceSelector(kind, request.query("labelSelector"), request.query("fieldSelector")),
                            request.dryRun());
                default -> throw notAllowed(request);
            };
        }
        return switch (method) {
            case "GET", "HEAD" -> reads.one(target, request);
            case "PUT" -> resources.replace(target, request);
            case "PATCH" -> resources.patch(target, request);
            case "DELETE" -> {
                if (target.isStatus()) {
                    throw notAllowed(request);
                }
                yield resources.delete(target, request);
            }
            default -> throw notAllowed(request);
        };
    }

    private @Nullable ApiResponse pods(Target target, ApiRequest request) {
        if (!request.method().equals("GET") && !request.method().equals("HEAD")) {
            throw ServingException.of(
                    ErrorCode.UNIMPLEMENTED,
                    "the server does not allow this method on the requested resource: pods only show what runs",
                    "change or delete the InferenceService instead");
        }
        if (target.name().isEmpty()) {
            return request.flag("watch") ? reads.watch(target, request) : reads.list(target, request);
        }
        if (target.subresource().isEmpty()) {
            return reads.one(target, request);
        }
        if (!target.subresource().equals("log")) {
            throw ApiRequest.notFound();
        }
        podLogs.answer(target, request);
        return null;
    }

    private @Nullable ApiResponse subresource(Target target, ApiRequest request) {
        if (target.kind() != ResourceKinds.INFERENCE_SERVICE) {
            throw ApiRequest.notFound();
        }
        switch (target.subresource()) {
            case "logs" -> {
                resources.get(target);
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
                    service = resources.get(target);
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
