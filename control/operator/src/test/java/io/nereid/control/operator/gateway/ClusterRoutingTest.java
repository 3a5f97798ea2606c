// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.gateway;

import static io.nereid.control.operator.gateway.GatewayFixture.settings;
import static io.nereid.control.operator.gateway.GatewayFixture.to;
import static io.nereid.control.operator.gateway.GatewayFixture.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.access.Operation;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.core.Route;
import io.nereid.control.core.RouteCodec;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.inprocess.AggregatingCall;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.revision.RevisionSettings;
import io.nereid.control.operator.gateway.GatewayFixture.Pod;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ForwardOptions;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.ResponseBody;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.server.Server;
import java.net.ServerSocket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Requests through a gateway over sockets, with the objects of a cluster told by the test. */
class ClusterRoutingTest {
    private static final String PATH = "/serving/default/iris";

    private final GatewayFixture fixture = new GatewayFixture();

    @AfterEach
    void close() {
        fixture.close();
    }

    @Test
    void requestsAreRoutedByHostAndByPath() throws Exception {
        serve("r1", "a");
        assertThat(fixture.ask("iris.default.example.com", "/v1/models/iris"))
                .startsWith("HTTP/1.1 200")
                .endsWith("a /v1/models/iris");
        assertThat(fixture.answer(PATH + "/v1/models/iris:predict")).isEqualTo("200 a /v1/models/iris:predict");
        assertThat(fixture.ask("other.default.example.com", "/v1/models/iris")).startsWith("HTTP/1.1 404");
    }

    @Test
    void trafficIsSplitByPercentages() {
        serve("r1", "a");
        GatewayFixture.Pod b = fixture.new Pod("b");
        fixture.revision(Change.Kind.ADDED, "r2", settings(0));
        fixture.endpoint("r2", b);
        fixture.route(Change.Kind.MODIFIED, "iris", to("r1", 80), to("r2", 20));
        List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            answers.add(fixture.post(PATH + "/v1"));
            if (i % 50 == 49) {
                answers.forEach(CompletableFuture::join);
            }
        }
        assertThat(answers)
                .extracting(answer ->
                        answer.join().statusCode() + " " + answer.join().body())
                .allMatch(answer -> answer.startsWith("200 "));
        // 6 standard deviations of a binomial distribution on either side
        assertThat(b.requests.get()).isBetween(125, 275);
    }

    @Test
    void aRequestIsHeldUntilThereIsAPod() {
        fixture.revision(Change.Kind.ADDED, "r1", settings(0));
        fixture.route(Change.Kind.ADDED, "iris", to("r1", 100));
        CompletableFuture<HttpResponse<String>> held = fixture.post(PATH + "/v1");
        until("it waits", () -> waiting("r1") == 1);
        GatewayFixture.Pod pod = fixture.new Pod("a");
        fixture.endpoint(Change.Kind.ADDED, "r1", "s1", pod.port(), false, false);
        assertThat(held).isNotDone();
        fixture.endpoint(Change.Kind.MODIFIED, "r1", "s1", pod.port(), true, false);
        assertThat(held.orTimeout(60, TimeUnit.SECONDS).join().body()).isEqualTo("a /v1");
    }

    @Test
    void requestsHeldUnderFormerSettingsAreServed() {
        fixture.revision(Change.Kind.ADDED, "r1", settings(0));
        fixture.route(Change.Kind.ADDED, "iris", to("r1", 100));
        CompletableFuture<HttpResponse<String>> held = fixture.post(PATH + "/v1");
        until("it waits", () -> waiting("r1") == 1);
        fixture.revision(Change.Kind.MODIFIED, "r1", settings(2));
        assertThat(waiting("r1")).isEqualTo(0);
        fixture.endpoint("r1", fixture.new Pod("a"));
        assertThat(held.orTimeout(60, TimeUnit.SECONDS).join().statusCode()).isEqualTo(200);
        assertThat(fixture.routing.loaded().get(0).activators()).hasSize(1);
    }

    @Test
    void aRevisionThatDoesNotHoldRefusesAtOnce() {
        fixture.revision(
                Change.Kind.ADDED, "r1", new RevisionSettings("iris", 0, Duration.ofSeconds(60), 8080, 0, false, 211));
        fixture.route(Change.Kind.ADDED, "iris", to("r1", 100));
        assertThat(fixture.answer(PATH + "/v1")).startsWith("503").contains("revision r1 has no ready pod");
        fixture.endpoint("r1", fixture.new Pod("a"));
        assertThat(fixture.answer(PATH + "/v1")).startsWith("200");
    }

    @Test
    void aTerminatingPodEndsItsRequestsAndGetsNoOthers() {
        GatewayFixture.Pod old = serve("r1", "old");
        CompletableFuture<HttpResponse<String>> slow = fixture.post(PATH + "/slow");
        until("the pod has it", () -> old.requests.get() == 1);
        fixture.endpoint("r1", fixture.new Pod("new"));
        fixture.endpoint(Change.Kind.MODIFIED, "r1", "r1-" + old.port(), old.port(), false, true);
        for (int i = 0; i < 50; i++) {
            assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 new /v1");
        }
        assertThat(slow).isNotDone();
        old.slow.countDown();
        assertThat(slow.orTimeout(60, TimeUnit.SECONDS).join().body()).isEqualTo("old /slow");
    }

    @Test
    void noRequestIsLostWhilePodsComeAndGo() throws Exception {
        GatewayFixture.Pod a = serve("r1", "a");
        GatewayFixture.Pod b = fixture.new Pod("b");
        List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            answers.add(fixture.post(PATH + "/v1"));
            GatewayFixture.Pod in = i % 2 == 0 ? b : a;
            GatewayFixture.Pod out = i % 2 == 0 ? a : b;
            fixture.endpoint(Change.Kind.DELETED, "r1", "r1-" + out.port(), out.port(), true, false);
            answers.add(fixture.post(PATH + "/v1"));
            fixture.endpoint("r1", in);
            if (i % 10 == 9) {
                for (CompletableFuture<HttpResponse<String>> answer : answers) {
                    answer.get(60, TimeUnit.SECONDS);
                }
            }
        }
        assertThat(answers)
                .extracting(answer ->
                        answer.join().statusCode() + " " + answer.join().body())
                .allMatch(answer -> answer.startsWith("200 "));
    }

    @Test
    void aRefusedConnectionIsTriedAtAnotherPod() throws Exception {
        serve("r1", "a");
        int free;
        try (ServerSocket socket = new ServerSocket(0)) {
            free = socket.getLocalPort();
        }
        fixture.endpoint(Change.Kind.ADDED, "r1", "gone", free, true, false);
        for (int i = 0; i < 30; i++) {
            assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 a /v1");
        }
    }

    @Test
    void whatCannotBeReadLeavesTheFormerInForce() {
        serve("r1", "a");
        fixture.routeText(Change.Kind.MODIFIED, "iris", "{\"rules\":[]}");
        fixture.routeText(Change.Kind.MODIFIED, "iris", "?");
        assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 a /v1");
    }

    private static RevisionSettings ofModel(String service, String model) {
        return new RevisionSettings(service, 0, Duration.ofSeconds(60), 8080, 0, true, 0, model.isEmpty(), model);
    }

    private void pods(String model, Pod http, int grpc) {
        String revision = PoolObjects.modelRevision(model);
        Owner owner = new Owner("serving.kserve.io/v1alpha1", "TrainedModel", model, "default", model);
        fixture.slice(PoolObjects.slice(
                owner,
                "many",
                revision,
                "pool",
                List.of(new PoolObjects.Holder("pod-" + grpc, "u", "127.0.0.1", http.port(), grpc, ""))));
    }

    /** The server of a pod for gRPC, which answers with its name. */
    private static Server pod(String name) {
        byte[] answer = name.getBytes(StandardCharsets.UTF_8);
        GrpcMethod method = new GrpcMethod(
                "/inference.GRPCInferenceService/ModelInfer",
                GrpcMethod.Kind.UNARY,
                Operation.INFERENCE,
                call -> new GrpcMethod.GrpcListener() {
                    @Override
                    public void onMessage(MemoryRegion message) {
                        call.sendAndClose(new ResponseBody(answer, answer.length));
                    }

                    @Override
                    public void onHalfClose() {}

                    @Override
                    public void onCancel() {}
                });
        return new Server(ServerOptions.builder().listen("127.0.0.1", 0).build(), List.of(new ProtocolCodec() {
            @Override
            public String name() {
                return "pod";
            }

            @Override
            public List<GrpcMethod> grpcMethods() {
                return List.of(method);
            }
        }));
    }

    private String call(String method, String message) throws Exception {
        byte[] bytes = message.getBytes(StandardCharsets.UTF_8);
        AggregatingCall call = new AggregatingCall(
                "/inference.GRPCInferenceService/" + method,
                List.of(),
                Clock.system().nanos());
        CompletableFuture<MemoryRegion> answer = call.start(
                one -> fixture.upstream.forward(
                        one, new UpstreamClient.Address("localhost", fixture.port), ForwardOptions.DEFAULT),
                MemoryRegion.copyOf(bytes, 0, bytes.length));
        MemoryRegion region = answer.get(60, TimeUnit.SECONDS);
        byte[] got = new byte[region.size()];
        region.buffer(0, got.length).get(got);
        region.release();
        return new String(got, StandardCharsets.UTF_8);
    }

    @Test
    void requestsForAServiceOfManyModelsGoToTheModelThatTheyName() throws Exception {
        String many = "/serving/default/many";
        List<String> woken = new CopyOnWriteArrayList<>();
        fixture.onWake((namespace, revision) -> woken.add(revision));
        try (Server first = pod("first");
                Server second = pod("second")) {
            fixture.revision(Change.Kind.ADDED, "many-predictor-00001", ofModel("many", ""));
            fixture.revision(Change.Kind.ADDED, "iris-trainedmodel", ofModel("many", "iris"));
            fixture.revision(Change.Kind.ADDED, "rose-trainedmodel", ofModel("many", "rose"));
            fixture.revision(Change.Kind.ADDED, "lily-trainedmodel", ofModel("others", "lily"));
            pods("iris", fixture.new Pod("a"), first.start().get(0).getPort());
            Route.Backend backend = new Route.Backend(List.of(to("many-predictor-00001", 100)), List.of(), null);
            fixture.routeText(
                    Change.Kind.ADDED,
                    "many",
                    RouteCodec.write(new Route(
                            "default",
                            "many",
                            "InferenceService",
                            List.of(
                                    new Route.IngressRule("localhost", "", null, null),
                                    new Route.IngressRule("many.default.example.com", "", null, null),
                                    new Route.IngressRule("", many, null, null)),
                            Map.of(Component.PREDICTOR, backend),
                            "")));
            assertThat(fixture.answer(many + "/v1/models/iris:predict")).isEqualTo("200 a /v1/models/iris:predict");
            assertThat(fixture.ask("many.default.example.com", "/v2/models/iris/ready"))
                    .endsWith("a /v2/models/iris/ready");
            CompletableFuture<HttpResponse<String>> held = fixture.post(many + "/v2/models/rose/infer");
            until("a request for a model without pods wakes it", () -> woken.contains("rose-trainedmodel"));
            pods("rose", fixture.new Pod("b"), second.start().get(0).getPort());
            assertThat(held.get(60, TimeUnit.SECONDS).body()).isEqualTo("b /v2/models/rose/infer");

            assertThat(call("ModelInfer", "\n\u0004iris")).isEqualTo("first");
            assertThat(call("ModelInfer", "\u0012\u00011\n\u0004rose")).isEqualTo("second");
            assertThatThrownBy(() -> call("ModelInfer", "\n\u0004lily")).hasMessageContaining("has no model 'lily'");
            assertThatThrownBy(() -> call("ModelInfer", "")).hasMessageContaining("names no model");
            assertThat(call("RepositoryIndex", ""))
                    .contains("iris", "rose", "READY")
                    .doesNotContain("lily");
            assertThat(call("ServerReady", "")).isEqualTo("\b\u0001");

            assertThat(fixture.ask("many.default.example.com", "/v1/models"))
                    .endsWith("{\"models\":[\"iris\",\"rose\"]}");
            assertThat(fixture.answer(many + "/v2/repository/index"))
                    .isEqualTo("200 [{\"name\":\"iris\",\"state\":\"READY\",\"reason\":\"\"},"
                            + "{\"name\":\"rose\",\"state\":\"READY\",\"reason\":\"\"}]");
            assertThat(fixture.answer(many + "/v1/models/lily:predict"))
                    .startsWith("404")
                    .contains("the service 'many' has no model 'lily' (it has iris, rose)");
            assertThat(fixture.answer(many + "/v2/repository/models/iris/unload"))
                    .contains("apply or delete their TrainedModels");
            fixture.revision(Change.Kind.DELETED, "iris-trainedmodel", ofModel("many", "iris"));
            assertThat(fixture.answer(many + "/v1/models/iris:predict")).startsWith("404");
        }
    }

    @Test
    void aRouteIsFollowedOnceItsRevisionsAreKnown() {
        serve("r1", "a");
        fixture.route(Change.Kind.MODIFIED, "iris", to("r2", 100));
        assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 a /v1");
        fixture.endpoint("r2", fixture.new Pod("b"));
        fixture.revision(Change.Kind.ADDED, "r2", settings(0));
        assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 b /v1");
    }

    @Test
    void aDeletedRevisionServesWhileARouteLeadsToIt() {
        serve("r1", "a");
        fixture.revision(Change.Kind.DELETED, "r1", settings(0));
        assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 a /v1");
        fixture.revision(Change.Kind.ADDED, "r2", settings(0));
        fixture.endpoint("r2", fixture.new Pod("b"));
        fixture.route(Change.Kind.MODIFIED, "iris", to("r2", 100));
        assertThat(fixture.answer(PATH + "/v1")).isEqualTo("200 b /v1");
        assertThat(fixture.routing.loaded())
                .extracting(ClusterRouting.Loaded::revision)
                .containsExactly("r2");
        fixture.route(Change.Kind.DELETED, "iris", to("r2", 100));
        assertThat(fixture.answer(PATH + "/v1")).startsWith("404");
    }

    private GatewayFixture.Pod serve(String revision, String pod) {
        GatewayFixture.Pod running = fixture.new Pod(pod);
        fixture.endpoint(revision, running);
        fixture.revision(Change.Kind.ADDED, revision, settings(0));
        fixture.route(Change.Kind.ADDED, "iris", to(revision, 100));
        return running;
    }

    private int waiting(String revision) {
        return java.util.Objects.requireNonNull(fixture.gateway.activator("default", revision))
                .waitingNow();
    }
}
