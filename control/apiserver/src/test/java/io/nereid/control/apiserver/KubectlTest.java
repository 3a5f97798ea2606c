// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Key;
import io.nereid.control.api.store.ResourceStore.Type;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.store.FileResourceStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;

/** The real kubectl against the API server, without a cluster and without any option but {@code --server}. */
@SuppressWarnings("NullAway.Init") // set before each test
class KubectlTest {
    private static final Type SERVICES = new Type("serving.kserve.io", "inferenceservices");
    private static final String IRIS = """
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata: {name: iris}
        spec:
          predictor:
            minReplicas: 1
            model:
              modelFormat: {name: sklearn}
              storageUri: gs://kfserving-examples/models/sklearn/1.0/model
        """;

    @TempDir
    private Path dir;

    private TestApiServer server;

    @BeforeEach
    void start() {
        boolean there = Stream.of(System.getenv().getOrDefault("PATH", "").split(java.io.File.pathSeparator))
                .anyMatch(p -> Files.isExecutable(Path.of(p, "kubectl")));
        if (!there) {
            LoggerFactory.getLogger(KubectlTest.class)
                    .warn("SKIPPED: KubectlTest needs the program kubectl, which is not on the PATH");
        }
        Assumptions.assumeTrue(there, "kubectl is not on the PATH");
        server = new TestApiServer(dir.resolve("store"));
    }

    @AfterEach
    void stop() {
        if (server != null) {
            server.close();
        }
    }

    private record Result(int code, String text) {}

    private Process begin(String... args) throws IOException {
        List<String> command = new ArrayList<>(List.of("kubectl", "--server=" + server.url()));
        command.addAll(List.of(args));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("HOME", dir.toString());
        builder.environment().put("KUBECONFIG", dir.resolve("none").toString());
        return builder.start();
    }

    private Result run(String... args) throws Exception {
        Process process = begin(args);
        process.getOutputStream().close();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        return new Result(process.exitValue(), text);
    }

    private String ok(String... args) throws Exception {
        Result result = run(args);
        assertThat(result.code())
                .as("%s: %s", String.join(" ", args), result.text())
                .isZero();
        return result.text();
    }

    private String refused(String... args) throws Exception {
        Result result = run(args);
        assertThat(result.code())
                .as("%s: %s", String.join(" ", args), result.text())
                .isNotZero();
        return result.text();
    }

    private String file(String text) throws IOException {
        Path path = Files.createTempFile(dir, "resource", ".yaml");
        Files.writeString(path, text);
        return path.toString();
    }

    private ObjectNode iris() {
        return server.store.get(new Key(SERVICES, "default", "iris"));
    }

    private void ready() {
        ObjectNode resource = iris();
        ObjectNode status = resource.putObject("status");
        status.put("url", "http://iris.example");
        status.putArray("conditions").addObject().put("type", "Ready").put("status", "True");
        server.store.update(SERVICES, resource, null);
    }

    @Test
    void itDiscoversTheApi() throws Exception {
        assertThat(ok("version")).contains("Server Version: v1.32.0+nereid");
        assertThat(ok("api-resources"))
                .containsPattern("inferenceservices +isvc +serving.kserve.io/v1beta1 +true +InferenceService")
                .containsPattern("clusterservingruntimes +serving.kserve.io/v1alpha1 +false")
                .containsPattern("events +ev +v1 +true +Event");
        assertThat(ok("api-versions")).contains("serving.kserve.io/v1alpha1", "serving.kserve.io/v1beta1", "v1");
        assertThat(ok("explain", "isvc")).contains("GROUP:      serving.kserve.io", "spec");
        assertThat(refused("get", "deployments")).contains("the server doesn't have a resource type \"deployments\"");
    }

    @Test
    void applyCreatesConfiguresAndLeavesUnchanged() throws Exception {
        String file = file(IRIS);
        assertThat(ok("apply", "-f", file)).isEqualTo("inferenceservice.serving.kserve.io/iris created\n");
        assertThat(ok("apply", "-f", file)).isEqualTo("inferenceservice.serving.kserve.io/iris unchanged\n");
        String changed = file(IRIS.replace("minReplicas: 1", "timeout: 9"));
        assertThat(ok("diff", "-f", file)).isEmpty();
        assertThat(ok("apply", "--dry-run=server", "-f", changed)).contains("configured (server dry run)");
        assertThat(iris().at("/spec/predictor/timeout").isMissingNode()).isTrue();
        assertThat(ok("apply", "-f", changed)).isEqualTo("inferenceservice.serving.kserve.io/iris configured\n");
        assertThat(iris().at("/spec/predictor/timeout").asInt()).isEqualTo(9);
        assertThat(iris().at("/metadata/generation").asInt()).isEqualTo(2);
        assertThat(refused("apply", "-f", file(IRIS.replace("name: iris", "name: Iris"))))
                .contains("The InferenceService \"Iris\" is invalid: metadata.name");
    }

    @Test
    void aServiceWithAnOldBlockIsAppliedAgainAndAgain() throws Exception {
        String old = IRIS.replace("modelFormat: {name: sklearn}", "protocolVersion: v2")
                .replace("model:", "sklearn:");
        String file = file(old);
        assertThat(ok("apply", "-f", file)).isEqualTo("inferenceservice.serving.kserve.io/iris created\n");
        assertThat(ok("apply", "-f", file)).isEqualTo("inferenceservice.serving.kserve.io/iris configured\n");
        assertThat(iris().at("/metadata/generation").asInt()).isEqualTo(1);
        assertThat(ok("apply", "-f", file(old.replace("1.0/model", "2.0/model"))))
                .isEqualTo("inferenceservice.serving.kserve.io/iris configured\n");
        assertThat(iris().at("/spec/predictor/model/storageUri").asText()).endsWith("2.0/model");
        assertThat(iris().at("/spec/predictor").has("sklearn")).isFalse();
        String patch = "{\"spec\":{\"predictor\":{\"sklearn\":{\"storageUri\":\"gs://b/3\"}}}}";
        assertThat(ok("patch", "isvc", "iris", "--type=merge", "-p", patch)).contains("iris patched");
        assertThat(iris().at("/spec/predictor/model/storageUri").asText()).isEqualTo("gs://b/3");
        assertThat(ok("replace", "-f", file)).contains("iris replaced");
    }

    @Test
    void serverSideApplyReportsConflictsAndForceOverrides() throws Exception {
        String one = file(IRIS);
        String two = file(IRIS.replace("minReplicas: 1", "minReplicas: 2"));
        assertThat(ok("apply", "--server-side", "-f", one)).contains("iris serverside-applied");
        long version = iris().at("/metadata/resourceVersion").asLong();
        ok("apply", "--server-side", "-f", one);
        assertThat(iris().at("/metadata/resourceVersion").asLong()).isEqualTo(version);
        assertThat(refused("apply", "--server-side", "--field-manager=other", "-f", two))
                .contains("Apply failed with 1 conflict: conflict with \"kubectl\" using serving.kserve.io/v1beta1:"
                        + " .spec.predictor.minReplicas");
        ok("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", two);
        assertThat(iris().at("/spec/predictor/minReplicas").asInt()).isEqualTo(2);
        ok("apply", "--server-side", "-f", file(IRIS.replace("    minReplicas: 1\n", "    timeout: 5\n")));
        assertThat(iris().at("/spec/predictor/minReplicas").asInt()).isEqualTo(2);
        ok("apply", "--server-side", "-f", file(IRIS.replace("    minReplicas: 1\n", "")));
        assertThat(iris().at("/spec/predictor/timeout").isMissingNode()).isTrue();
    }

    @Test
    void aClientSideApplyCanContinueServerSide() throws Exception {
        ok("apply", "-f", file(IRIS));
        assertThat(ok("apply", "--server-side", "-f", file(IRIS.replace("minReplicas: 1", "minReplicas: 3"))))
                .contains("serverside-applied");
        assertThat(iris().at("/spec/predictor/minReplicas").asInt()).isEqualTo(3);
    }

    @Test
    void getPatchLabelAnnotateReplace() throws Exception {
        ok("apply", "-f", file(IRIS));
        ready();
        assertThat(ok("get", "isvc"))
                .containsPattern("NAME +URL +READY +PREV +LATEST +PREVROLLEDOUTREVISION +LATESTREADYREVISION +AGE")
                .containsPattern("iris +http://iris.example +True");
        ok("patch", "isvc", "iris", "--type", "merge", "-p", "{\"spec\":{\"predictor\":{\"timeout\":4}}}");
        ok(
                "patch",
                "isvc",
                "iris",
                "--type=json",
                "-p",
                "[{\"op\":\"replace\",\"path\":\"/spec/predictor/timeout\",\"value\":5}]");
        assertThat(iris().at("/spec/predictor/timeout").asInt()).isEqualTo(5);
        assertThat(iris().at("/status/url").asText()).isEqualTo("http://iris.example");
        ok("label", "isvc", "iris", "team=a");
        ok("annotate", "isvc", "iris", "note=x");
        assertThat(ok("get", "isvc", "-l", "team=a", "-o", "name"))
                .isEqualTo("inferenceservice.serving.kserve.io/iris\n");
        assertThat(ok("get", "isvc", "-l", "team notin (a)")).contains("No resources found");
        String json = ok("get", "isvc", "iris", "-o", "json");
        String file = file(json.replace("\"timeout\": 5", "\"timeout\": 6"));
        ok("replace", "-f", file);
        assertThat(iris().at("/spec/predictor/timeout").asInt()).isEqualTo(6);
        assertThat(refused("replace", "-f", file)).contains("the object has been modified");
        assertThat(ok(
                        "patch",
                        "isvc",
                        "iris",
                        "--subresource=status",
                        "--type=merge",
                        "-p",
                        "{\"status\":{\"url\":\"http://new\"},\"spec\":{\"predictor\":{\"timeout\":1}}}"))
                .contains("patched");
        assertThat(iris().at("/status/url").asText()).isEqualTo("http://new");
        assertThat(iris().at("/spec/predictor/timeout").asInt()).isEqualTo(6);
        assertThat(refused("get", "isvc", "nope"))
                .contains("Error from server (NotFound): inferenceservices.serving.kserve.io \"nope\" not found");
    }

    @Test
    void describeShowsEvents() throws Exception {
        ok("apply", "-f", file(IRIS));
        ok("apply", "-f", file("""
            apiVersion: v1
            kind: Event
            metadata: {name: iris.1}
            involvedObject: {kind: InferenceService, name: iris, namespace: default, uid: "UID"}
            type: Warning
            reason: ModelLoadFailed
            message: there is no such file
            lastTimestamp: "2026-01-01T00:00:00Z"
            """.replace("UID", iris().at("/metadata/uid").asText())));
        assertThat(ok("describe", "isvc", "iris"))
                .contains("Storage Uri:  gs://kfserving-examples")
                .containsPattern("Warning +ModelLoadFailed .*there is no such file");
        assertThat(ok("get", "events")).containsPattern("Warning +ModelLoadFailed +inferenceservice/iris +there is no");
    }

    @Test
    void waitAndWatchSeeChanges() throws Exception {
        ok("apply", "-f", file(IRIS));
        Process wait = begin("wait", "--for=condition=Ready", "isvc/iris", "--timeout=30s");
        Process watch = begin("get", "isvc", "-w");
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(watch.getInputStream(), StandardCharsets.UTF_8))) {
            assertThat(lines.readLine()).startsWith("NAME");
            assertThat(lines.readLine()).startsWith("iris");
            ready();
            assertThat(lines.readLine()).contains("http://iris.example");
        } finally {
            watch.toHandle().destroyForcibly();
        }
        assertThat(new String(wait.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                .isEqualTo("inferenceservice.serving.kserve.io/iris condition met\n");
        assertThat(refused("wait", "--for=condition=Gone", "isvc/iris", "--timeout=1s"))
                .contains("timed out");
    }

    private static WorkloadState state(ObservedState.Phase phase, int replicas, int desired) {
        ObservedState.Failure failure = phase == ObservedState.Phase.FAILED
                ? new ObservedState.Failure("ModelLoadFailed", "no such file", Instant.EPOCH, null)
                : null;
        return new WorkloadState(phase, replicas, desired, failure, ObservedState.Traffic.NONE);
    }

    @Test
    void workloadsAreShownAsPods() throws Exception {
        ok("apply", "-f", file(IRIS));
        assertThat(ok("get", "pods")).contains("No resources found in default namespace.");
        server.states.put("iris-predictor-00001", state(ObservedState.Phase.READY, 2, 3));
        server.states.put("iris-transformer-00001", state(ObservedState.Phase.STANDBY, 0, 0));
        server.states.put("iris-predictor-00002", state(ObservedState.Phase.FAILED, 0, 1));
        server.states.put("other-predictor-00001", state(ObservedState.Phase.READY, 1, 1));
        assertThat(ok("get", "pods"))
                .containsPattern("NAME +READY +STATUS +RESTARTS +AGE")
                .containsPattern("iris-predictor-00001 +2/3 +Running +0 ")
                .containsPattern("iris-predictor-00002 +0/1 +ModelLoadFailed +0 ")
                .containsPattern("iris-transformer-00001 +0/0 +Standby +0 ")
                .doesNotContain("other");
        assertThat(ok("get", "po", "-o", "wide", "iris-predictor-00002")).contains("no such file");
        assertThat(ok(
                        "get",
                        "pods",
                        "-A",
                        "-l",
                        "serving.kserve.io/inferenceservice=iris,component=transformer",
                        "-o",
                        "name"))
                .isEqualTo("pod/iris-transformer-00001\n");
        assertThat(ok("get", "pods", "--field-selector", "status.phase=Running", "-o", "name"))
                .isEqualTo("pod/iris-predictor-00001\n");
        assertThat(ok("describe", "pod", "iris-predictor-00002"))
                .contains("Controlled By:  InferenceService/iris", "ModelLoadFailed");
        assertThat(ok("get", "all")).contains("pod/iris-predictor-00001", "inferenceservice.serving.kserve.io/iris");
        assertThat(refused("delete", "pod", "iris-predictor-00001")).contains("pods only show what runs");
        assertThat(refused("get", "pod", "none")).contains("pods \"none\" not found");
    }

    @Test
    void podsAreWatchedAndWaitedFor() throws Exception {
        ok("apply", "-f", file(IRIS));
        server.states.put("iris-predictor-00001", state(ObservedState.Phase.LOADING, 0, 1));
        Process wait = begin(
                "wait",
                "--for=condition=Ready",
                "pod",
                "-l",
                "serving.kserve.io/inferenceservice=iris",
                "--timeout=30s");
        Process watch = begin("get", "pods", "-w");
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(watch.getInputStream(), StandardCharsets.UTF_8))) {
            assertThat(lines.readLine()).startsWith("NAME");
            assertThat(lines.readLine()).contains("Loading");
            server.states.put("iris-predictor-00001", state(ObservedState.Phase.READY, 1, 1));
            assertThat(lines.readLine()).contains("1/1", "Running");
            // kubectl waits for the pods that exist when it starts, which may be late.
            assertThat(new String(wait.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                    .isEqualTo("pod/iris-predictor-00001 condition met\n");
            server.states.put("iris-predictor-00002", state(ObservedState.Phase.PENDING, 0, 1));
            assertThat(lines.readLine()).contains("iris-predictor-00002", "Pending");
        } finally {
            watch.toHandle().destroyForcibly();
        }
    }

    @Test
    void logsAreThoseOfTheRevision() throws Exception {
        ok("apply", "-f", file(IRIS));
        server.states.put("iris-predictor-00001", state(ObservedState.Phase.READY, 1, 1));
        server.states.put("iris-transformer-00001", state(ObservedState.Phase.READY, 1, 1));
        List<String> lines = new CopyOnWriteArrayList<>();
        for (int i = 0; i < 20; i++) {
            lines.add("2026-01-01T00:00:" + (i < 10 ? "0" : "") + i + ".5Z line " + i);
        }
        server.lines.put("iris-predictor-00001", lines);
        server.lines.put("iris-transformer-00001", List.of("2026-01-01T00:00:00Z of the transformer"));
        assertThat(ok("logs", "-l", "serving.kserve.io/inferenceservice=iris").lines())
                .hasSize(11)
                .contains("line 10", "line 19", "of the transformer")
                .doesNotContain("line 9");
        assertThat(ok("logs", "iris-predictor-00001").lines()).hasSize(20).startsWith("line 0", "line 1");
        assertThat(ok("logs", "iris-predictor-00001", "-c", "kserve-container", "--tail=1", "--timestamps"))
                .isEqualTo("2026-01-01T00:00:19.5Z line 19\n");
        assertThat(ok("logs", "iris-predictor-00001", "--since-time=2026-01-01T00:00:18Z"))
                .isEqualTo("line 18\nline 19\n");
        assertThat(ok("logs", "iris-predictor-00001", "--limit-bytes=4")).isEqualTo("line");
        assertThat(refused("logs", "iris-predictor-00001", "-c", "agent"))
                .contains("container agent is not valid for pod iris-predictor-00001");
        assertThat(refused("logs", "iris-predictor-00001", "--previous")).contains("previous terminated container");
        assertThat(refused("logs", "iris-predictor-00009")).contains("not found");

        Process follow = begin("logs", "-f", "--tail=1", "iris-predictor-00001");
        try (BufferedReader read =
                new BufferedReader(new InputStreamReader(follow.getInputStream(), StandardCharsets.UTF_8))) {
            assertThat(read.readLine()).isEqualTo("line 19");
            lines.add("2026-01-01T00:00:20Z line 20");
            assertThat(read.readLine()).isEqualTo("line 20");
            server.states.remove("iris-predictor-00001");
            assertThat(read.readLine()).isNull();
        }
        assertThat(follow.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(follow.exitValue()).isZero();
        Process left = begin("logs", "-f", "iris-transformer-00001");
        try (BufferedReader read =
                new BufferedReader(new InputStreamReader(left.getInputStream(), StandardCharsets.UTF_8))) {
            assertThat(read.readLine()).isEqualTo("of the transformer");
            left.toHandle().destroyForcibly();
        }
        while (server.inFlight() > 0) {
            Thread.onSpinWait();
        }
    }

    private static String owned(String name, String owners) {
        return """
            apiVersion: v1
            kind: ConfigMap
            metadata:
              name: NAME
              ownerReferences: [OWNERS]
            """.replace("NAME", name).replace("OWNERS", owners);
    }

    private static String owner(String kind, String name, String uid) {
        return "{apiVersion: serving.kserve.io/v1beta1, kind: KIND, name: NAME, uid: UID, blockOwnerDeletion: true}"
                .replace("KIND", kind)
                .replace("NAME", name)
                .replace("UID", uid);
    }

    private void gone(String name) {
        Key key = new Key(new Type("", "configmaps"), "default", name);
        long end = Clock.system().millis() + 20_000;
        while (server.store.get(key) != null && Clock.system().millis() < end) {
            Thread.onSpinWait();
        }
        assertThat(server.store.get(key)).as(name).isNull();
    }

    private boolean there(String name) {
        return server.store.get(new Key(new Type("", "configmaps"), "default", name)) != null;
    }

    @Test
    void dependentsOfADeletedOwnerAreDeleted() throws Exception {
        ok("apply", "-f", file(IRIS));
        ok("apply", "-f", file(IRIS.replace("name: iris", "name: other")));
        String iris =
                owner("InferenceService", "iris", iris().at("/metadata/uid").asText());
        String other = owner(
                "InferenceService",
                "other",
                server.store
                        .get(new Key(SERVICES, "default", "other"))
                        .at("/metadata/uid")
                        .asText());
        ok("apply", "-f", file(owned("one", iris)));
        ok("apply", "-f", file(owned("both", iris + ", " + other)));
        ok("apply", "-f", file(owned("unknown", owner("Deployment", "iris", "u"))));
        ok("apply", "-f", file(owned("stranger", owner("InferenceService", "iris", "another-uid"))));
        gone("stranger");
        String uid = server.store
                .get(new Key(new Type("", "configmaps"), "default", "one"))
                .at("/metadata/uid")
                .asText();
        ok("apply", "-f", file(owned("grandchild", "{apiVersion: v1, kind: ConfigMap, name: one, uid: " + uid + "}")));
        ok("delete", "isvc", "iris");
        gone("one");
        gone("grandchild");
        assertThat(there("both")).isTrue();
        ok("delete", "isvc", "other", "--cascade=foreground");
        gone("both");
        assertThat(there("unknown")).isTrue();
        assertThat(refused("apply", "-f", file(owned("bad", "{apiVersion: v1, kind: ConfigMap, name: x}"))))
                .contains("uid");
    }

    @Test
    void dependentsOfAnOwnerDeletedWithOrphanStay() throws Exception {
        ok("apply", "-f", file(IRIS));
        String uid = iris().at("/metadata/uid").asText();
        ok("apply", "-f", file(owned("one", owner("InferenceService", "iris", uid))));
        ok("delete", "isvc", "iris", "--cascade=orphan");
        ok("apply", "-f", file(owned("two", owner("InferenceService", "iris", uid))));
        gone("two");
        assertThat(there("one")).isTrue();
        assertThat(ok("get", "cm", "one", "-o", "jsonpath={.metadata.ownerReferences}"))
                .isEmpty();
    }

    @Test
    void dependentsOrphanedWhileTheServerWasDownAreDeletedAtItsStart() throws Exception {
        ok("apply", "-f", file(IRIS));
        ok(
                "apply",
                "-f",
                file(owned(
                        "one",
                        owner(
                                "InferenceService",
                                "iris",
                                iris().at("/metadata/uid").asText()))));
        server.close();
        try (ResourceStore store = FileResourceStore.open(dir.resolve("store"), Clock.system())) {
            store.delete(new Key(SERVICES, "default", "iris"), null);
        }
        server = new TestApiServer(dir.resolve("store"));
        gone("one");
    }

    @Test
    void deleteWaitsUntilTheResourceIsGone() throws Exception {
        String file = file(IRIS);
        ok("apply", "-f", file);
        ok("patch", "isvc", "iris", "--type=merge", "-p", "{\"metadata\":{\"finalizers\":[\"nereid.io/x\"]}}");
        Process delete = begin("delete", "-f", file, "--timeout=30s");
        while (!iris().at("/metadata").has("deletionTimestamp")) {
            Thread.onSpinWait();
        }
        assertThat(delete.isAlive()).isTrue();
        ok("patch", "isvc", "iris", "--type=merge", "-p", "{\"metadata\":{\"finalizers\":null}}");
        assertThat(new String(delete.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                .contains("deleted");
        assertThat(delete.waitFor()).isZero();
        assertThat(iris()).isNull();
        ok("apply", "-f", file);
        ok("delete", "isvc", "--all");
        assertThat(iris()).isNull();
    }

    @Test
    void fieldsAreExplainedInDepth() throws Exception {
        assertThat(ok("explain", "isvc.spec.predictor.model.storageUri")).contains("FIELD: storageUri <string>");
        assertThat(ok("explain", "isvc.spec.predictor.model.modelFormat"))
                .contains("FIELD: modelFormat <Object>", "name\t<string>", "version\t<string>");
        assertThat(ok("explain", "isvc", "--recursive")).contains("canaryTrafficPercent", "storageUri", "minReplicas");
        assertThat(ok("explain", "clusterservingruntime.spec.supportedModelFormats"))
                .contains("autoSelect\t<boolean>");
        assertThat(ok("explain", "secret.data")).contains("FIELD: data");
        assertThat(refused("explain", "isvc.spec.color")).contains("field \"color\" does not exist");
    }

    @Test
    void whatACallerMayDoIsAnswered() throws Exception {
        assertThat(ok("auth", "can-i", "create", "inferenceservices")).contains("yes");
        assertThat(ok("auth", "can-i", "get", "pods", "--subresource=log")).contains("yes");
        assertThat(ok("auth", "can-i", "--list")).contains("inferenceservices.serving.kserve.io", "secrets");
        assertThat(refused("auth", "can-i", "create", "pods")).contains("no");
        assertThat(refused("auth", "can-i", "create", "pods", "--subresource=exec"))
                .contains("no");
        assertThat(ok("auth", "whoami")).contains("Username");
    }

    @Test
    void theDefinitionsAndTheClusterAreShown() throws Exception {
        assertThat(ok("get", "crd")).contains("inferenceservices.serving.kserve.io");
        assertThat(ok(
                        "get",
                        "crd",
                        "inferenceservices.serving.kserve.io",
                        "-o",
                        "jsonpath={.status.conditions[*].type}"))
                .contains("Established");
        assertThat(refused("get", "crd", "colors.example.com")).contains("NotFound");
        assertThat(ok("wait", "--for=condition=Established", "crd/inferenceservices.serving.kserve.io"))
                .contains("condition met");
        assertThat(refused("delete", "crd", "inferenceservices.serving.kserve.io"))
                .contains("only read here");
        assertThat(ok("cluster-info")).contains("is running at", server.url());
        assertThat(ok("get", "svc")).contains("No resources found");
    }

    @Test
    void sessionsInPodsAreNotSupported() throws Exception {
        ok("apply", "-f", file(IRIS));
        server.states.put("iris-predictor-00001", state(ObservedState.Phase.READY, 1, 1));
        String pod = ok("get", "pods", "-o", "name").strip().lines().findFirst().orElseThrow();
        for (List<String> session : List.of(
                List.of("exec", pod, "--", "ls"), List.of("attach", pod), List.of("port-forward", pod, "18080:8080"))) {
            assertThat(refused(session.toArray(String[]::new)))
                    .as("%s", session)
                    .contains("is not supported: models run inside the server");
        }
    }

    @Test
    void coreResourcesAndNamespaces() throws Exception {
        ok("create", "secret", "generic", "s3", "--from-literal=AWS_ACCESS_KEY_ID=abc");
        assertThat(ok("get", "secret", "s3", "-o", "jsonpath={.data.AWS_ACCESS_KEY_ID} {.type}"))
                .isEqualTo("YWJj Opaque");
        ok("create", "configmap", "settings", "--from-literal=a=b");
        ok("patch", "cm", "settings", "-p", "{\"data\":{\"c\":\"d\",\"a\":null}}");
        assertThat(ok("get", "cm", "settings", "-o", "jsonpath={.data}")).isEqualTo("{\"c\":\"d\"}");
        ok("create", "serviceaccount", "me");
        assertThat(ok("describe", "secret", "s3")).contains("AWS_ACCESS_KEY_ID:  3 bytes");
        ok("create", "namespace", "zoo");
        assertThat(ok("apply", "-n", "fresh", "-f", file(IRIS)))
                .contains("Warning: namespace \"fresh\" did not exist and has been created");
        assertThat(ok("get", "isvc", "-A")).containsPattern("fresh +iris");
        assertThat(ok("get", "ns")).containsPattern("fresh +Active").containsPattern("zoo +Active");
        ok("delete", "ns", "fresh", "zoo");
        assertThat(server.store.get(new Key(SERVICES, "fresh", "iris"))).isNull();
        assertThat(refused("delete", "ns", "default")).contains("this namespace may not be deleted");
    }
}
