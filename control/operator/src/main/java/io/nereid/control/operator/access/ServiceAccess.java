// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.control.core.Route;
import io.nereid.control.operator.access.AccessApi.Right;
import io.nereid.control.operator.access.ReviewedCaller.Decision;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.api.access.AccessPolicy;
import io.nereid.transport.api.access.ClientConnection;
import io.nereid.transport.api.access.RequestHead;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The access policy of a gateway whose services are called with tokens of the cluster. A caller of a protected service
 * sends a bearer token; the API server says whose it is (TokenReview) and whether that user has the verb {@code get} on the
 * InferenceService or InferenceGraph, or {@code update} for what changes something (SubjectAccessReview). All other
 * requests, and probes, are decided by the policy behind this one.
 *
 * <p>The API server is asked on threads of its own: the request is returned a {@link
 * io.nereid.control.gateway.access.PendingCaller}, and the gateway holds it back. While the API server is away, callers
 * about whom nothing is remembered get UNAVAILABLE. Thread-safe.
 *
 * <pre>{@code
 * ProtectedServices services = new ProtectedServices(options.mode());
 * ServiceAccess access = new ServiceAccess(services, options, client, gateway::routeOf, other, refusal -> {}, clock);
 * serverOptions.access(access);
 * }</pre>
 */
public final class ServiceAccess implements AccessPolicy, AutoCloseable {
    private static final int MOST_TOKEN_CHARS = 16 << 10;
    private static final String BEARER = "Bearer ";

    /** What API keys of Nereid begin with; they are not the API server's business. */
    private static final String KEY_PREFIX = "nrd_";

    private final ProtectedServices services;
    private final AccessReviews reviews;
    private final Function<VirtualHosts.Head, @Nullable Route> routes;
    private final AccessPolicy others;
    private final RefusalListener refusals;

    /** Called for each refusal, such as by an audit log, on any thread; must not block. */
    @FunctionalInterface
    public interface RefusalListener {
        /** A request was refused. */
        void refused(Refusal refusal);
    }

    /**
     * A request that was refused. Immutable.
     *
     * @param caller the user, or {@code anonymous}
     * @param operation what it was to do
     * @param target the service or graph, as {@code NAMESPACE/NAME}
     * @param status the HTTP status, or the number of the gRPC status
     * @param early whether it was refused before its body was read
     */
    public record Refusal(
            String caller,
            Operation operation,
            String target,
            String method,
            String path,
            String remote,
            @Nullable String requestId,
            boolean grpc,
            ErrorCode status,
            boolean early) {}

    /**
     * Creates the policy.
     *
     * @param client asks the API server; should have short time limits; closed by the caller
     * @param routes finds the route of a request
     * @param others decides about requests for services that are not protected
     */
    public ServiceAccess(
            ProtectedServices services,
            AccessReviewOptions options,
            KubernetesClient client,
            Function<VirtualHosts.Head, @Nullable Route> routes,
            AccessPolicy others,
            RefusalListener refusals,
            Clock clock) {
        this(services, options, new ClusterAccessApi(new ClusterClient(client)), routes, others, refusals, clock);
    }

    ServiceAccess(
            ProtectedServices services,
            AccessReviewOptions options,
            AccessApi api,
            Function<VirtualHosts.Head, @Nullable Route> routes,
            AccessPolicy others,
            RefusalListener refusals,
            Clock clock) {
        this.services = services;
        this.reviews = new AccessReviews(api, options, clock);
        this.routes = routes;
        this.others = others;
        this.refusals = refusals;
    }

    @Override
    public Caller admit(RequestHead head, ClientConnection connection, Operation operation, @Nullable String model) {
        if (!services.any() || operation.permission() == Permission.HEALTH) {
            return others.admit(head, connection, operation, model);
        }
        Route route = routes.apply(head);
        boolean changes = changes(head, operation);
        List<Right> rights = route == null ? List.of() : services.rights(route, changes ? "update" : "get");
        if (route == null || rights.isEmpty()) {
            return others.admit(head, connection, operation, model);
        }
        ReviewedCaller caller = new ReviewedCaller(rights, changes);
        String token = null;
        if (services.mode() == AccessReviewOptions.Mode.OFF) {
            caller.decide(new Decision(
                    null,
                    ServingException.of(
                            ErrorCode.UNAVAILABLE,
                            "the service asks for callers that Kubernetes knows, but the gateway does not review them",
                            "start nereid gateway with --kubernetes-auth=annotated")));
        } else {
            token = token(head, caller);
        }
        if (token != null) {
            reviews.ask(token, rights, caller);
        }
        Decision decision = caller.decision();
        Refusal refusal = decision != null && decision.refusal() == null
                ? null
                : refusal(head, connection, operation, route, decision != null);
        if (refusal == null) {
            return caller;
        }
        if (decision == null || decision.refusal() == null) {
            caller.whenDecided(e -> {
                if (e != null) {
                    notifyRefusal(refusal, caller, e);
                }
            });
            return caller;
        }
        notifyRefusal(refusal, caller, decision.refusal());
        throw decision.refusal();
    }

    /** Whether a request needs the right to change the service. */
    private static boolean changes(RequestHead head, Operation operation) {
        // The message of these calls says whether they change settings, and only the pods read it.
        boolean settings = head.grpc() && (operation == Operation.TRACE || operation == Operation.LOGGING);
        return settings || operation.permission().guarded();
    }

    /** The token of a request; null when it has none, which is decided then. */
    private static @Nullable String token(RequestHead head, ReviewedCaller caller) {
        String given = head.header("authorization");
        String token = given != null && given.regionMatches(true, 0, BEARER, 0, BEARER.length())
                ? given.substring(BEARER.length()).strip()
                : "";
        if (!token.isEmpty() && token.length() <= MOST_TOKEN_CHARS && !token.startsWith(KEY_PREFIX)) {
            return token;
        }
        String why;
        if (token.isEmpty()) {
            why = "the service needs a token";
        } else if (token.length() > MOST_TOKEN_CHARS) {
            why = "the token is longer than " + MOST_TOKEN_CHARS + " characters";
        } else {
            why = "the service takes tokens of the cluster, not API keys";
        }
        caller.decide(new Decision(
                null,
                ServingException.of(
                        ErrorCode.UNAUTHENTICATED,
                        why,
                        "send a token of a service account of this cluster in the header 'authorization: Bearer …'")));
        return null;
    }

    private static Refusal refusal(
            RequestHead head, ClientConnection connection, Operation operation, Route route, boolean early) {
        return new Refusal(
                Caller.ANONYMOUS.name(),
                operation,
                route.namespace() + "/" + route.name(),
                head.method(),
                head.path(),
                String.valueOf(connection.remote()).replaceFirst("^/", ""),
                head.header("x-request-id"),
                head.grpc(),
                ErrorCode.UNAUTHENTICATED,
                early);
    }

    private void notifyRefusal(Refusal refusal, ReviewedCaller caller, ServingException e) {
        refusals.refused(new Refusal(
                caller.name(),
                refusal.operation(),
                refusal.target(),
                refusal.method(),
                refusal.path(),
                refusal.remote(),
                refusal.requestId(),
                refusal.grpc(),
                e.code(),
                refusal.early()));
    }

    /** Whether no review is under way. */
    boolean isIdle() {
        return reviews.isIdle();
    }

    /** Writes the metrics of the reviews. */
    public void writeMetrics(MetricsWriter page) {
        page.family(
                "nereid_gateway_access_reviews_total",
                MetricType.COUNTER,
                "Requests to the API server about callers of protected services.");
        page.sample(LabelSet.of("review", "token"), reviews.tokenReviews.sum());
        page.sample(LabelSet.of("review", "access"), reviews.accessReviews.sum());
        page.family(
                "nereid_gateway_access_review_failures_total",
                MetricType.COUNTER,
                "Requests about callers that the API server did not answer.");
        page.sample(LabelSet.of(Map.of()), reviews.failures.sum());
        page.family(
                "nereid_gateway_access_remembered_total",
                MetricType.COUNTER,
                "Requests whose callers were decided by an answer from before.");
        page.sample(LabelSet.of(Map.of()), reviews.remembered.sum());
    }

    @Override
    public void close() {
        reviews.close();
    }
}
