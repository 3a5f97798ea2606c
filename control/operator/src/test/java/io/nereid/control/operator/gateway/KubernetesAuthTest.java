// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.operator.access.AccessReviewOptions;
import io.nereid.control.operator.access.ProtectedServices;
import io.nereid.control.operator.access.ServiceAccess;
import io.nereid.testing.kubernetes.TestCluster;
import io.nereid.transport.api.access.AccessPolicy;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.api.parallel.ResourceAccessMode;
import org.junit.jupiter.api.parallel.ResourceLock;

/** A gateway whose callers are service accounts of a real cluster, with tokens and roles of its API server. */
@Execution(ExecutionMode.CONCURRENT)
class KubernetesAuthTest {
    private static final String AUDIENCE = "https://models.example";

    @TempDir
    static Path directory;

    private static TestCluster cluster;
    private static KubernetesClient gatewayAccount;

    @BeforeAll
    static void start() throws IOException {
        String why = TestCluster.unavailable().orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory.resolve("cluster"));
        cluster.define(CustomResourceDefinitions.all().stream()
                .map(ObjectNode::toString)
                .toList());
        for (String account : List.of("gateway", "client", "stranger", "admin")) {
            cluster.kubectl("create", "serviceaccount", account);
        }
        // The rights of the gateway: no more than to ask for reviews.
        cluster.kubectl(
                "create",
                "clusterrole",
                "reviews",
                "--verb=create",
                "--resource=tokenreviews.authentication.k8s.io,subjectaccessreviews.authorization.k8s.io");
        cluster.kubectl(
                "create", "clusterrolebinding", "reviews", "--clusterrole=reviews", "--serviceaccount=default:gateway");
        role("client", "get", "--resource-name=iris");
        role("admin", "get,update");
        Config admin = cluster.client().getConfiguration();
        Config own = new ConfigBuilder(Config.empty())
                .withMasterUrl(admin.getMasterUrl())
                .withCaCertData(admin.getCaCertData())
                .withCaCertFile(admin.getCaCertFile())
                .withOauthToken(cluster.kubectl("create", "token", "gateway", "--duration=1h")
                        .strip())
                .withRequestRetryBackoffLimit(0)
                .withRequestTimeout(30_000)
                .withConnectionTimeout(30_000)
                .build();
        gatewayAccount = new KubernetesClientBuilder().withConfig(own).build();
    }

    private static void role(String account, String verbs, String... more) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(
                "create", "role", account, "--verb=" + verbs, "--resource=inferenceservices.serving.kserve.io"));
        arguments.addAll(List.of(more));
        cluster.kubectl(arguments.toArray(String[]::new));
        cluster.kubectl("create", "rolebinding", account, "--role=" + account, "--serviceaccount=default:" + account);
    }

    @AfterAll
    static void stop() {
        if (gatewayAccount != null) {
            gatewayAccount.close();
        }
        if (cluster != null) {
            cluster.close();
        }
    }

    private static String token(String account, String audience) throws IOException {
        return cluster.kubectl("create", "token", account, "--audience=" + audience, "--duration=10m")
                .strip();
    }

    /** A gateway with a pod of the protected service iris and one of the open service open. */
    private static final class Gateway implements AutoCloseable {
        final ProtectedServices services = new ProtectedServices(AccessReviewOptions.Mode.ANNOTATED);
        final List<String> refusals = Collections.synchronizedList(new ArrayList<>());

        @Nullable ServiceAccess access;

        final GatewayFixture fixture;
        final GatewayFixture.Pod pod;

        Gateway() {
            fixture = new GatewayFixture(
                    services,
                    gateway -> access = new ServiceAccess(
                            services,
                            new AccessReviewOptions(
                                    AccessReviewOptions.Mode.ANNOTATED, List.of(AUDIENCE), Duration.ofMinutes(5)),
                            gatewayAccount,
                            gateway::routeOf,
                            AccessPolicy.OPEN,
                            refusal -> refusals.add(refusal.caller() + " " + refusal.target() + " " + refusal.status()),
                            Clock.system()));
            pod = fixture.new Pod("pod");
            for (String revision : List.of("iris-1", "open-1")) {
                fixture.revision(Change.Kind.ADDED, revision, GatewayFixture.settings(0));
                fixture.endpoint(revision, pod);
            }
            fixture.enableAuth = "true";
            fixture.route(Change.Kind.ADDED, "iris", GatewayFixture.to("iris-1", 100));
            fixture.enableAuth = "";
            fixture.route(Change.Kind.ADDED, "open", GatewayFixture.to("open-1", 100));
        }

        HttpResponse<String> call(String service, String path, @Nullable String token) {
            HttpRequest.Builder request = HttpRequest.newBuilder(
                            URI.create("http://127.0.0.1:" + fixture.port + "/serving/default/" + service + path))
                    .POST(HttpRequest.BodyPublishers.ofString("{}"));
            if (token != null) {
                request.header("authorization", "Bearer " + token);
            }
            return fixture.client
                    .sendAsync(request.build(), HttpResponse.BodyHandlers.ofString())
                    .orTimeout(90, TimeUnit.SECONDS)
                    .join();
        }

        @Override
        public void close() {
            fixture.close();
            if (access != null) {
                access.close();
            }
        }
    }

    /** The tests of the class run at the same time; the one that stops the API server runs alone. */
    private static final String API_SERVER = "API server of KubernetesAuthTest";

    private static final String INFER = "/v2/models/iris/infer";

    @Test
    @ResourceLock(value = API_SERVER, mode = ResourceAccessMode.READ)
    void serviceAccountsCallWhatTheirRolesAllow() throws Exception {
        String client = token("client", AUDIENCE);
        try (Gateway gateway = new Gateway()) {
            HttpResponse<String> allowed = gateway.call("iris", INFER, client);
            assertThat(allowed.statusCode()).as(allowed.body()).isEqualTo(200);
            assertThat(allowed.body()).isEqualTo("pod " + INFER);
            HttpResponse<String> again = gateway.call("iris", INFER, client);
            assertThat(again.statusCode()).isEqualTo(200);

            HttpResponse<String> forbidden = gateway.call("iris", INFER, token("stranger", AUDIENCE));
            assertThat(forbidden.statusCode()).isEqualTo(403);
            assertThat(forbidden.body())
                    .contains("system:serviceaccount:default:stranger")
                    .contains("may not get inferenceservices.serving.kserve.io");

            HttpResponse<String> without = gateway.call("iris", INFER, null);
            assertThat(without.statusCode()).isEqualTo(401);
            assertThat(without.headers().firstValue("www-authenticate"))
                    .hasValueSatisfying(challenge -> assertThat(challenge).startsWith("Bearer"));
            HttpResponse<String> wrong = gateway.call("iris", INFER, "not.a.token");
            assertThat(wrong.statusCode()).isEqualTo(401);
            assertThat(wrong.headers().firstValue("www-authenticate")).isPresent();
            assertThat(gateway.call("iris", INFER, token("client", "https://elsewhere.example"))
                            .statusCode())
                    .isEqualTo(401);

            assertThat(gateway.call("open", INFER, null).statusCode()).isEqualTo(200);
            assertThat(gateway.call("iris", "/v2/repository/models/iris/load", client)
                            .statusCode())
                    .isEqualTo(403);
            assertThat(gateway.call("iris", "/v2/repository/models/iris/load", token("admin", AUDIENCE))
                            .statusCode())
                    .isEqualTo(200);
            assertThat(gateway.refusals)
                    .contains("system:serviceaccount:default:stranger default/iris PERMISSION_DENIED")
                    .contains("anonymous default/iris UNAUTHENTICATED")
                    .noneMatch(text -> text.contains(client));
        }
    }

    @Test
    @ResourceLock(value = API_SERVER, mode = ResourceAccessMode.READ)
    void theBodyIsNotReadOfACallerWhoIsKnownToBeRefused() throws Exception {
        String stranger = token("stranger", AUDIENCE);
        try (Gateway gateway = new Gateway()) {
            List<CompletableFuture<Integer>> answers = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                answers.add(gateway.fixture
                        .client
                        .sendAsync(
                                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + gateway.fixture.port
                                                + "/serving/default/iris" + INFER))
                                        .header("authorization", "Bearer " + stranger)
                                        .POST(HttpRequest.BodyPublishers.ofString("{}"))
                                        .build(),
                                HttpResponse.BodyHandlers.ofString())
                        .thenApply(HttpResponse::statusCode));
            }
            for (CompletableFuture<Integer> answer : answers) {
                assertThat(answer.orTimeout(90, TimeUnit.SECONDS).join()).isEqualTo(403);
            }
            assertThat(gateway.pod.requests).hasValue(0);
        }
    }

    @Test
    @ResourceLock(API_SERVER)
    void whileTheApiServerIsAwayKnownCallersGoOn() throws Exception {
        String known = token("client", AUDIENCE);
        String unknown = token("client", AUDIENCE);
        try (Gateway gateway = new Gateway()) {
            assertThat(gateway.call("iris", INFER, known).statusCode()).isEqualTo(200);
            CompletableFuture<?> restart = CompletableFuture.runAsync(
                    () -> {
                        try {
                            cluster.restartApiServer();
                        } catch (IOException e) {
                            throw new AssertionError(e);
                        }
                    },
                    task -> Threads.named("restart").newThread(task).start());
            HttpResponse<String> away = gateway.call("iris", INFER, unknown);
            long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            int other = 0;
            while (away.statusCode() != 503 && System.nanoTime() < end) {
                // A token that is known by now is not asked about again: another one each time.
                away = gateway.call("iris", INFER, unknown + other++);
            }
            assertThat(away.statusCode()).isEqualTo(503);
            assertThat(away.body()).contains("API server cannot review");
            assertThat(gateway.call("iris", INFER, known).statusCode()).isEqualTo(200);
            restart.orTimeout(120, TimeUnit.SECONDS).join();
            end = System.nanoTime() + Duration.ofSeconds(90).toNanos();
            while (away.statusCode() != 200 && System.nanoTime() < end) {
                away = gateway.call("iris", INFER, unknown);
            }
            assertThat(away.statusCode()).as(away.body()).isEqualTo(200);
        }
    }
}
