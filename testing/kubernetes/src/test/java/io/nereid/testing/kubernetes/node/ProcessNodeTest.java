// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.nereid.testing.kubernetes.TestCluster;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A node of processes beside a real control plane: networks, Services, names, volumes, probes, restarts and ends. */
class ProcessNodeTest {
    private static final int LIMIT_SECONDS = 90;

    @TempDir
    static Path directory;

    private static TestCluster cluster;
    private static KubernetesClient client;
    private static ProcessNode node;

    @BeforeAll
    static void start() throws IOException {
        String why = ProcessNode.unavailable().or(TestCluster::unavailable).orElse("");
        assumeTrue(why.isEmpty(), why);
        cluster = TestCluster.start(directory.resolve("cluster"));
        client = cluster.client();
        ContainerImage python =
                new ContainerImage(List.of("python3", "-u", "-c"), Map.of("FROM_IMAGE", "yes"), Map.of(), 0);
        node = ProcessNode.start(
                client, "node-1", name -> name.equals("python") ? python : null, directory.resolve("node"));
    }

    @AfterAll
    static void stop() {
        if (node != null) {
            node.close();
        }
        if (cluster != null) {
            cluster.close();
        }
    }

    private static void apply(String yaml) {
        client.load(new ByteArrayInputStream(yaml.getBytes(StandardCharsets.UTF_8)))
                .inNamespace("default")
                .serverSideApply();
    }

    private static Pod waitFor(String name, java.util.function.Predicate<Pod> condition) {
        try {
            return client.pods()
                    .inNamespace("default")
                    .withName(name)
                    .waitUntilCondition(pod -> pod != null && condition.test(pod), LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (RuntimeException e) {
            throw new AssertionError(
                    Serialization.asYaml(client.pods()
                                    .inNamespace("default")
                                    .withName(name)
                                    .get()
                                    .getStatus())
                            + logs(name),
                    e);
        }
    }

    private static String logs(String pod) {
        try {
            return node.logs("default", pod);
        } catch (IOException e) {
            return e.toString();
        }
    }

    private static boolean ready(Pod pod) {
        return pod.getStatus().getConditions().stream()
                .anyMatch(
                        one -> one.getType().equals("Ready") && one.getStatus().equals("True"));
    }

    private static String get(String url) throws IOException {
        HttpURLConnection connection =
                (HttpURLConnection) URI.create(url).toURL().openConnection();
        connection.setConnectTimeout(10_000);
        connection.setReadTimeout(30_000);
        return new String(connection.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    /** Answers every request with what the container sees. */
    private static final String SERVER = """
            import http.server, os, signal, sys, time
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    if self.path.startswith('/file/'):
                        text = open(self.path[5:]).read()
                    elif self.path == '/try-write':
                        try:
                            open('/usr/written', 'w'); text = 'written'
                        except OSError as e:
                            text = e.strerror
                    elif self.path.startswith('/fetch/'):
                        import urllib.request
                        text = urllib.request.urlopen('http://' + self.path[7:]).read().decode()
                    else:
                        text = os.environ.get(self.path[1:], str(os.getuid()))
                    body = text.encode()
                    self.send_response(200); self.send_header('content-length', str(len(body))); self.end_headers()
                    self.wfile.write(body)
                def log_message(self, *arguments): pass
            http.server.ThreadingHTTPServer(('0.0.0.0', 8080), Handler).serve_forever()
            """;

    private static String indented(String text, int by) {
        return text.strip().replace("\n", "\n" + " ".repeat(by));
    }

    private static String deployment(String name, int replicas) {
        return """
                apiVersion: v1
                kind: ConfigMap
                metadata: {name: NAME-texts}
                data: {greeting: "hello of NAME"}
                ---
                apiVersion: apps/v1
                kind: Deployment
                metadata: {name: NAME}
                spec:
                  replicas: REPLICAS
                  selector: {matchLabels: {app: NAME}}
                  template:
                    metadata: {labels: {app: NAME}}
                    spec:
                      terminationGracePeriodSeconds: 10
                      initContainers:
                      - name: first
                        image: python
                        args: ["open('/shared/made', 'w').write('by the init container')"]
                        volumeMounts: [{name: shared, mountPath: /shared}]
                      containers:
                      - name: server
                        image: python
                        args:
                        - |-
                          SERVER
                        env:
                        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
                        - {name: GREETING, valueFrom: {configMapKeyRef: {name: NAME-texts, key: greeting}}}
                        - {name: BOTH, value: "$(GREETING) at $(POD_IP)"}
                        ports: [{name: http, containerPort: 8080}]
                        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
                        securityContext: {runAsUser: 1234, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
                        volumeMounts:
                        - {name: shared, mountPath: /mnt/shared, readOnly: true}
                        - {name: texts, mountPath: /etc/texts}
                      volumes:
                      - {name: shared, emptyDir: {}}
                      - {name: texts, configMap: {name: NAME-texts}}
                ---
                apiVersion: v1
                kind: Service
                metadata: {name: NAME}
                spec:
                  selector: {app: NAME}
                  ports: [{name: http, port: 80, targetPort: http}]
                """.replace("SERVER", indented(SERVER, 10))
                .replace("NAME", name)
                .replace("REPLICAS", Integer.toString(replicas));
    }

    private static List<Pod> pods(String app) {
        return client.pods().inNamespace("default").withLabel("app", app).list().getItems();
    }

    @Test
    void podsHaveAddressesVolumesUsersAndAreReachedByTheirService() throws Exception {
        apply(deployment("first", 2));
        client.apps()
                .deployments()
                .inNamespace("default")
                .withName("first")
                .waitUntilCondition(
                        one -> one != null
                                && one.getStatus() != null
                                && Integer.valueOf(2).equals(one.getStatus().getReadyReplicas()),
                        LIMIT_SECONDS,
                        TimeUnit.SECONDS);
        for (Pod pod : pods("first")) {
            String address = "http://" + pod.getStatus().getPodIP() + ":8080/";
            assertThat(get(address + "POD_IP")).isEqualTo(pod.getStatus().getPodIP());
            assertThat(get(address + "BOTH"))
                    .isEqualTo("hello of first at " + pod.getStatus().getPodIP());
            assertThat(get(address + "FROM_IMAGE")).isEqualTo("yes");
            assertThat(get(address + "file/mnt/shared/made")).isEqualTo("by the init container");
            assertThat(get(address + "file/etc/texts/greeting")).isEqualTo("hello of first");
            assertThat(get(address + "try-write")).isEqualTo("Read-only file system");
            assertThat(get(address)).isEqualTo("1234");
        }
        // The Service by its name, from the node and from a pod, which looks the name up in its own namespace.
        assertThat(get("http://first.default.svc.cluster.local/GREETING")).isEqualTo("hello of first");
        String pod = pods("first").get(0).getStatus().getPodIP();
        assertThat(get("http://" + pod + ":8080/fetch/first/GREETING")).isEqualTo("hello of first");
        // A pod reaches the API server with the token of its service account.
        assertThat(get("http://" + pod + ":8080/file/var/run/secrets/kubernetes.io/serviceaccount/namespace"))
                .isEqualTo("default");
        client.apps().deployments().inNamespace("default").withName("first").delete();
        for (Pod one : pods("first")) {
            client.resource(one).waitUntilCondition(java.util.Objects::isNull, LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    @Test
    void aProgramThatEndsIsStartedAgainLaterAndItsLastWordsAreInTheStatus() {
        apply("""
                apiVersion: v1
                kind: Pod
                metadata: {name: failing}
                spec:
                  containers:
                  - name: main
                    image: python
                    args: ["print('no model at /mnt/models'); raise SystemExit(3)"]
                    terminationMessagePolicy: FallbackToLogsOnError
                """);
        Pod pod = waitFor(
                "failing",
                one -> one.getStatus().getContainerStatuses().stream()
                        .anyMatch(container -> container.getRestartCount() >= 1 && container.getLastState() != null));
        var status = pod.getStatus().getContainerStatuses().get(0);
        assertThat(status.getLastState().getTerminated().getExitCode()).isEqualTo(3);
        assertThat(status.getLastState().getTerminated().getMessage()).isEqualTo("no model at /mnt/models\n");
        client.resource(pod).delete();
    }

    @Test
    void anImageThatDoesNotExistAndAMissingSecretKeepThePodFromStarting() {
        apply("""
                apiVersion: v1
                kind: Pod
                metadata: {name: no-image}
                spec: {containers: [{name: main, image: missing}]}
                ---
                apiVersion: v1
                kind: Pod
                metadata: {name: no-secret}
                spec:
                  containers:
                  - name: main
                    image: python
                    args: ["import time; time.sleep(1000)"]
                    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: absent, key: password}}}]
                """);
        Pod pod = waitFor(
                "no-image", one -> !one.getStatus().getContainerStatuses().isEmpty());
        assertThat(pod.getStatus()
                        .getContainerStatuses()
                        .get(0)
                        .getState()
                        .getWaiting()
                        .getReason())
                .isEqualTo("ImagePullBackOff");
        pod = waitFor(
                "no-secret",
                one -> one.getStatus().getContainerStatuses().stream()
                        .anyMatch(container -> container.getState().getWaiting() != null
                                && container.getState().getWaiting().getReason().equals("CreateContainerConfigError")));
        assertThat(pod.getStatus()
                        .getContainerStatuses()
                        .get(0)
                        .getState()
                        .getWaiting()
                        .getMessage())
                .isEqualTo("secret \"absent\" not found");
        // When the Secret is there, the pod starts.
        apply("""
                apiVersion: v1
                kind: Secret
                metadata: {name: absent}
                stringData: {password: "x"}
                """);
        Pod started = waitFor("no-secret", ProcessNodeTest::ready);
        assertThat(started.getStatus().getPhase()).isEqualTo("Running");
        client.resource(started).withGracePeriod(1).delete();
    }
}
