// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import io.nereid.app.Main;
import io.nereid.app.control.BothTargets.Result;
import io.nereid.base.Threads;
import io.nereid.testing.kubernetes.FakeNode;
import io.nereid.testing.kubernetes.PodRunner;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** {@code nereid logs} against a real API server, whose node serves the logs of pods. */
@SuppressWarnings("NullAway.Init") // set before all tests
class PodLogsTest {
    private static final String SERVICE = """
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata: {name: iris}
        spec: {predictor: {model: {modelFormat: {name: sklearn}, storageUri: "gs://models/iris"}}}
        """;

    @TempDir
    static Path directory;

    private static final CountDownLatch MORE = new CountDownLatch(1);

    private static BothTargets targets;
    private static FakeNode node;
    private static TlsTestServer kubelet;

    @BeforeAll
    static void start() throws Exception {
        targets = new BothTargets(directory);
        node = new FakeNode(targets.cluster().client(), "node-1", "10.244.0", PodRunner.READY);
        kubelet = new TlsTestServer(directory.resolve("cluster"), PodLogsTest::log);
        targets.cluster()
                .kubectl(
                        "patch",
                        "node",
                        "node-1",
                        "--subresource=status",
                        "--type=merge",
                        "-p",
                        "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"127.0.0.1\"}],"
                                + "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":" + kubelet.port() + "}}}}");
        assertThat(targets.remote("apply", "-f", targets.file("iris.yaml", SERVICE))
                        .code())
                .isZero();
        pod("iris-predictor-1", "predictor", ", initContainers: [{name: storage-initializer, image: a}]");
        pod("iris-transformer-1", "transformer", "");
    }

    @AfterAll
    static void stop() {
        MORE.countDown();
        if (targets != null) {
            kubelet.close();
            node.close();
            targets.close();
        }
    }

    private static void pod(String name, String component, String more) throws Exception {
        targets.cluster().kubectl("apply", "-f", targets.file(name + ".yaml", """
            apiVersion: v1
            kind: Pod
            metadata: {name: NAME, labels: {serving.kserve.io/inferenceservice: iris, component: COMPONENT}}
            spec: {containers: [{name: kserve-container, image: a}]MORE}
            """.replace("NAME", name)
                .replace("COMPONENT", component)
                .replace("MORE", more)));
        targets.cluster().kubectl("wait", "--for=condition=Ready", "pod/" + name, "--timeout=60s");
    }

    /** Answers as a kubelet: {@code /containerLogs/NAMESPACE/POD/CONTAINER}. */
    private static void log(HttpExchange exchange) throws IOException {
        String[] path = exchange.getRequestURI().getPath().split("/", -1);
        String query = String.valueOf(exchange.getRequestURI().getQuery());
        boolean follow = query.contains("follow=true");
        exchange.getResponseHeaders().add("content-type", "text/plain");
        exchange.sendResponseHeaders(200, 0);
        try (OutputStream out = exchange.getResponseBody()) {
            String start = (query.contains("previous=true") ? "before " : "") + path[4] + " of " + path[3] + "\n";
            out.write(start.getBytes(StandardCharsets.UTF_8));
            out.write(("query " + (query.contains("tailLines=7") ? "7" : "other") + "\n")
                    .getBytes(StandardCharsets.UTF_8));
            if (follow) {
                out.flush();
                MORE.await();
                out.write("one more line\n".getBytes(StandardCharsets.UTF_8));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void linesOfSeveralContainersHaveTheirNamesInFront() {
        Result all = targets.remote("logs", "iris", "--tail", "7");
        assertThat(all.err()).isEmpty();
        assertThat(all.out().lines())
                .containsExactly(
                        "[iris-predictor-1 storage-initializer] storage-initializer of iris-predictor-1",
                        "[iris-predictor-1 storage-initializer] query 7",
                        "[iris-predictor-1 kserve-container] kserve-container of iris-predictor-1",
                        "[iris-predictor-1 kserve-container] query 7",
                        "[iris-transformer-1 kserve-container] kserve-container of iris-transformer-1",
                        "[iris-transformer-1 kserve-container] query 7");
        assertThat(targets.remote("logs", "isvc/iris", "-c", "transformer").out())
                .isEqualTo("kserve-container of iris-transformer-1\nquery other\n");
        assertThat(targets.remote("logs", "iris", "--container", "storage-initializer")
                        .out())
                .isEqualTo("storage-initializer of iris-predictor-1\nquery other\n");
    }

    @Test
    void whatHasNoLogsIsSaid() {
        Result none = targets.remote("logs", "nothing");
        assertThat(none.code()).isEqualTo(1);
        assertThat(none.err()).contains("\"nothing\" not found");
        assertThat(targets.remote("logs", "iris", "--container", "agent").err())
                .contains("no container \"agent\" (they have: kserve-container, storage-initializer)");
        assertThat(targets.remote("logs", "iris", "--previous").err()).contains("has been restarted");
        assertThat(targets.remote("logs", "iris", "-c", "explainer").err())
                .contains("the explainer of iris has no pods: nereid describe isvc iris -n default");
        Result both = targets.remote("logs", "iris", "-f", "--previous");
        assertThat(both.err()).contains("both --follow and --previous are given");
        assertThat(targets.local("logs", "iris", "--previous").err()).contains("--previous is for clusters");
    }

    @Test
    void followingGoesOnWithNewLinesAndNewPodsUntilTheServiceIsDeleted() throws Exception {
        String name = "followed";
        assertThat(targets.remote("apply", "-f", targets.file("followed.yaml", SERVICE.replace("iris}", name + "}")))
                        .code())
                .isZero();
        StringWriter out = new StringWriter();
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true));
        Thread following = Threads.named("follow")
                .newThread(() -> command.execute(
                        "logs",
                        name,
                        "-f",
                        "--kubeconfig",
                        targets.cluster().kubeconfig().toString()));
        following.start();
        followed(name, "followed-1");
        until(() -> out.toString().contains("[followed-1 kserve-container] kserve-container of followed-1\n"));
        followed(name, "followed-2");
        until(() -> out.toString().contains("[followed-2 kserve-container] kserve-container of followed-2\n"));
        assertThat(out.toString()).doesNotContain("one more line");
        MORE.countDown();
        until(() -> out.toString().contains("[followed-1 kserve-container] one more line\n"));
        assertThat(targets.remote("delete", "isvc", name).code()).isZero();
        targets.cluster().kubectl("delete", "pod", "followed-1", "followed-2");
        following.join(TimeUnit.SECONDS.toMillis(60));
        assertThat(following.isAlive()).isFalse();
    }

    private static void followed(String service, String pod) throws Exception {
        targets.cluster().kubectl("apply", "-f", targets.file(pod + ".yaml", """
            apiVersion: v1
            kind: Pod
            metadata: {name: NAME, labels: {serving.kserve.io/inferenceservice: SERVICE, component: predictor}}
            spec: {containers: [{name: kserve-container, image: a}]}
            """.replace("NAME", pod)
                .replace("SERVICE", service)));
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        long due = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("the condition holds within 60 s").isLessThan(due);
            boolean unused =
                    new java.util.concurrent.CountDownLatch(1).await(50, java.util.concurrent.TimeUnit.MILLISECONDS);
        }
    }
}
