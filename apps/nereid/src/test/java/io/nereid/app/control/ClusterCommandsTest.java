// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import io.nereid.app.Main;
import io.nereid.app.control.BothTargets.Result;
import io.nereid.base.Threads;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The commands on resources against a real API server. */
@SuppressWarnings("NullAway.Init") // set before all tests
class ClusterCommandsTest {
    private static final String IRIS = """
        apiVersion: serving.kserve.io/v1beta1
        kind: InferenceService
        metadata:
          name: NAME
          labels: {team: a}
          annotations: {example.com/b: "1", example.com/a: "2"}
        spec:
          predictor:
            minReplicas: 1
            model:
              modelFormat: {name: sklearn}
              storageUri: gs://models/iris
        """;

    @TempDir
    static Path directory;

    private static BothTargets targets;

    @BeforeAll
    static void start() throws Exception {
        targets = new BothTargets(directory);
    }

    @AfterAll
    static void stop() {
        if (targets != null) {
            targets.close();
        }
    }

    private static String iris(String name) {
        return IRIS.replace("NAME", name);
    }

    /** A kubeconfig for the cluster, with another user. */
    private static String kubeconfig(String name, String user, String context) throws Exception {
        String text = Files.readString(targets.cluster().kubeconfig())
                .replaceAll("users: .*", "users: [{name: other, user: " + user + "}]")
                .replaceAll(
                        "contexts: .*",
                        "contexts: [{name: test, context: {cluster: test, user: other" + context + "}}]");
        return targets.file(name, text);
    }

    private static Result as(String kubeconfig, String... words) {
        return BothTargets.run(words, "--kubeconfig", kubeconfig);
    }

    @Test
    void conflictsNameTheFieldsAndTheirManagers() throws Exception {
        String file = targets.file("contested.yaml", iris("contested"));
        String theirs = targets.file("theirs.yaml", iris("contested").replace("minReplicas: 1", "minReplicas: 3"));
        targets.cluster().kubectl("apply", "--server-side", "--field-manager=console", "-f", theirs);
        Result refused = targets.remote("apply", "-f", file);
        assertThat(refused.code()).isEqualTo(1);
        assertThat(refused.out()).isEmpty();
        assertThat(refused.err())
                .contains(
                        "inferenceservice.serving.kserve.io/contested: other managers have set fields to other values:")
                .contains("\n    .spec.predictor.minReplicas is set by console")
                .contains("--force-conflicts");
        assertThat(targets.remote("apply", "-f", file, "--force-conflicts", "--dry-run")
                        .out())
                .contains("contested configured (server dry run)");
        assertThat(targets.remote("apply", "-f", file).code()).isEqualTo(1);
        assertThat(targets.remote("apply", "-f", file, "--force-conflicts").out())
                .contains("contested configured");
        assertThat(targets.cluster()
                        .kubectl(
                                "get",
                                "isvc",
                                "contested",
                                "-o",
                                "jsonpath={.spec.predictor.minReplicas}" + " {.metadata.managedFields[*].manager}"))
                .startsWith("1 ")
                .contains("nereid");
        assertThat(targets.remote("delete", "isvc", "contested").code()).isZero();
    }

    @Test
    void whatTheApiServerRefusesIsSaidAndTheRestIsApplied() throws Exception {
        targets.file("partly/a.yaml", iris("a").replace("minReplicas: 1", "minReplicaz: 1"));
        targets.file("partly/b.yaml", iris("b").replace("minReplicas: 1", "minReplicas: many"));
        targets.file("partly/c.yaml", iris("c"));
        Result result =
                targets.remote("apply", "-f", directory.resolve("partly").toString());
        assertThat(result.code()).isEqualTo(1);
        assertThat(result.out()).isEqualTo("inferenceservice.serving.kserve.io/c created\n");
        assertThat(result.err()).contains(".spec.predictor.minReplicaz").contains("does not have the field");
        assertThat(result.err()).contains("spec.predictor.minReplicas");
        assertThat(targets.remote("get", "isvc", "-o", "name").out()).doesNotContain("/a\n", "/b\n");
        assertThat(targets.remote("delete", "isvc", "c").code()).isZero();
    }

    @Test
    void namespacesAreThoseOfTheFileTheOptionOrTheContext() throws Exception {
        targets.file("placed/a.yaml", iris("placed").replace("name: placed", "name: placed\n  namespace: team-a"));
        targets.file("placed/z.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}");
        assertThat(targets.remote("apply", "-f", directory.resolve("placed").toString())
                        .out())
                .isEqualTo("namespace/team-a created\ninferenceservice.serving.kserve.io/placed created\n");
        assertThat(targets.remote("get", "isvc", "-n", "team-a", "-o", "name").out())
                .isEqualTo("inferenceservice.serving.kserve.io/placed\n");
        assertThat(targets.remote("get", "isvc", "-A").out()).containsPattern("team-a +placed ");
        Result none = targets.remote("get", "isvc", "placed");
        assertThat(none.code()).isEqualTo(1);
        assertThat(none.err()).contains("inferenceservices.serving.kserve.io \"placed\" not found");
        String context = targets.file(
                "team.kubeconfig",
                Files.readString(targets.cluster().kubeconfig())
                        .replace("user: admin}", "user: admin, namespace: team-a}"));
        assertThat(as(context, "get", "isvc", "-o", "name").out()).contains("/placed");
        assertThat(as(context, "get", "isvc", "-n", "default", "-o", "name").out())
                .doesNotContain("/placed");
        Result other = as(context, "get", "isvc", "placed", "--context", "tset");
        assertThat(other.err()).contains("has no context \"tset\"").contains("did you mean 'test'?");
        Result missing = targets.remote("apply", "-n", "absent", "-f", targets.file("placed.yaml", iris("placed")));
        assertThat(missing.code()).isEqualTo(1);
        assertThat(missing.err()).contains("namespaces \"absent\" not found");
        assertThat(as(context, "delete", "isvc", "--all").code()).isZero();
        assertThat(as(context, "get", "isvc").err()).contains("No resources found in team-a namespace.");
    }

    @Test
    void watchingPrintsWhatThereIsAndThenEachChange() throws Exception {
        assertThat(targets.remote("apply", "-f", targets.file("seen.yaml", iris("seen")))
                        .code())
                .isZero();
        StringWriter out = new StringWriter();
        CommandLine command = Main.commandLine();
        command.setOut(new PrintWriter(out, true));
        Thread watching = Threads.named("watch")
                .newThread(() -> command.execute(
                        "get",
                        "isvc",
                        "-w",
                        "-l",
                        "team=a",
                        "--kubeconfig",
                        targets.cluster().kubeconfig().toString()));
        watching.start();
        until(() -> out.toString().contains("seen"));
        targets.cluster()
                .kubectl(
                        "patch",
                        "isvc",
                        "seen",
                        "--subresource=status",
                        "--type=merge",
                        "-p",
                        "{\"status\":{\"url\":\"http://seen\"}}");
        until(() -> out.toString().contains("http://seen"));
        assertThat(targets.remote("delete", "isvc", "seen").code()).isZero();
        until(() -> out.toString()
                        .lines()
                        .filter(line -> line.contains("http://seen"))
                        .count()
                == 2);
        assertThat(out.toString()
                        .lines()
                        .filter(line -> line.startsWith("NAME"))
                        .count())
                .isEqualTo(1);
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        long due = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("the condition holds within 60 s").isLessThan(due);
            boolean unused =
                    new java.util.concurrent.CountDownLatch(1).await(50, java.util.concurrent.TimeUnit.MILLISECONDS);
        }
    }

    @Test
    void waitEndsWithTheConditionOrTheDeletion() throws Exception {
        assertThat(targets.remote("apply", "-f", targets.file("slow.yaml", iris("slow")))
                        .code())
                .isZero();
        Result late = targets.remote("wait", "isvc/slow", "--timeout", "1s");
        assertThat(late.code()).isEqualTo(1);
        assertThat(late.err()).contains("timed out after 1 s waiting for the condition Ready");
        CompletableFuture<Result> ready = CompletableFuture.supplyAsync(
                () -> targets.remote("wait", "isvc/slow", "--for=condition=Ready", "--timeout", "60s"),
                task -> new Thread(task).start());
        targets.cluster()
                .kubectl(
                        "patch",
                        "isvc",
                        "slow",
                        "--subresource=status",
                        "--type=merge",
                        "-p",
                        "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
        assertThat(ready.get(90, TimeUnit.SECONDS).out())
                .isEqualTo("inferenceservice.serving.kserve.io/slow condition met\n");
        CompletableFuture<Result> gone = CompletableFuture.supplyAsync(
                () -> targets.remote("wait", "isvc/slow", "--for=delete", "--timeout", "60s"),
                task -> new Thread(task).start());
        assertThat(targets.remote("delete", "isvc", "slow").out())
                .isEqualTo("inferenceservice.serving.kserve.io \"slow\" deleted\n");
        assertThat(gone.get(90, TimeUnit.SECONDS).code()).isZero();
    }

    @Test
    void credentialsComeFromTheKubeconfigAndRefusalsNameThem() throws Exception {
        targets.cluster().kubectl("create", "serviceaccount", "reader");
        targets.cluster()
                .kubectl("create", "rolebinding", "reader", "--clusterrole=view", "--serviceaccount=default:reader");
        String token = targets.cluster().kubectl("create", "token", "reader").strip();
        String direct = kubeconfig("token.kubeconfig", "{token: " + token + "}", "");
        assertThat(as(direct, "get", "cm").code()).isZero();
        Result forbidden = as(direct, "get", "secret");
        assertThat(forbidden.code()).isEqualTo(1);
        assertThat(forbidden.err())
                .contains("secrets is forbidden: User \"system:serviceaccount:default:reader\" cannot list resource");

        String file = targets.file("reader.token", token + "\n");
        String byFile = kubeconfig("file.kubeconfig", "{tokenFile: reader.token}", "");
        assertThat(as(byFile, "get", "cm").code()).isZero();
        Files.writeString(Path.of(file), "expired");
        Result expired = as(byFile, "get", "cm");
        assertThat(expired.code()).isEqualTo(1);
        assertThat(expired.err())
                .contains("does not accept the token of '" + file + "' of the user \"other\": Unauthorized")
                .contains("context \"test\"")
                .doesNotContain("nereid login");

        assertThat(as(byFile, "get", "cm", "--token", token).code()).isZero();
        Result none = as(kubeconfig("none.kubeconfig", "{}", ""), "get", "cm");
        assertThat(none.err()).contains("User \"system:anonymous\" cannot list resource");

        String admin = Files.readString(targets.cluster().kubeconfig())
                .replace("client-key-data", "as: someone, as-groups: [team-a], client-key-data");
        Result impersonated = as(targets.file("as.kubeconfig", admin), "get", "isvc");
        assertThat(impersonated.err()).contains("User \"someone\" cannot list resource");
    }

    @Test
    void aCredentialPluginIsAskedAndAskedAgainWhenItsTokenIsRefused() throws Exception {
        targets.cluster().kubectl("create", "serviceaccount", "plugged");
        targets.cluster()
                .kubectl("create", "rolebinding", "plugged", "--clusterrole=view", "--serviceaccount=default:plugged");
        String token = targets.cluster().kubectl("create", "token", "plugged").strip();
        for (String version : List.of("v1", "v1beta1")) {
            Path plugin = Path.of(targets.file(version + "/plugin", """
                #!/bin/sh
                echo "$KUBERNETES_EXEC_INFO" >>"$(dirname "$0")/calls"
                calls=$(wc -l <"$(dirname "$0")/calls")
                [ "$calls" -eq 1 ] && token=expired || token=$PLUGIN_TOKEN
                printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/%s","status":{"token":"%s"}}' "$1" "$token"
                """));
            assertThat(plugin.toFile().setExecutable(true)).isTrue();
            String exec = kubeconfig(
                    version + "/exec.kubeconfig",
                    "{exec: {apiVersion: client.authentication.k8s.io/" + version
                            + ", command: ./plugin, args: [" + version + "], interactiveMode: Never,"
                            + " provideClusterInfo: true, env: [{name: PLUGIN_TOKEN, value: " + token + "}]}}",
                    "");
            assertThat(as(exec, "get", "cm").err()).isEmpty();
            List<String> calls = Files.readAllLines(plugin.resolveSibling("calls"));
            assertThat(calls).hasSize(2);
            JsonNode info = ControlClient.JSON.readTree(calls.get(0));
            assertThat(info.at("/apiVersion").asText()).isEqualTo("client.authentication.k8s.io/" + version);
            assertThat(info.at("/spec/interactive").asBoolean(true)).isFalse();
            assertThat(info.at("/spec/cluster/server").asText()).startsWith("https://127.0.0.1:");
            assertThat(info.at("/spec/cluster/certificate-authority-data").asText())
                    .isNotEmpty();
        }
        Result wrong = as(
                kubeconfig(
                        "v1/wrong.kubeconfig",
                        "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin, args: [v1]}}",
                        ""),
                "get",
                "cm");
        assertThat(wrong.code()).isEqualTo(1);
        assertThat(wrong.err())
                .contains("printed client.authentication.k8s.io/v1 ExecCredential (expected:"
                        + " client.authentication.k8s.io/v1beta1 ExecCredential)");
        Result missing = as(
                kubeconfig(
                        "missing.kubeconfig",
                        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin,"
                                + " interactiveMode: Never, installHint: install it from example.com}}",
                        ""),
                "get",
                "cm");
        assertThat(missing.err())
                .contains("the credential plugin 'no-such-plugin' of the user \"other\"", "cannot be run")
                .contains("install it from example.com");
    }

    @Test
    void theCertificateOfTheServerIsVerified() throws Exception {
        String unknown =
                Files.readString(targets.cluster().kubeconfig()).replaceAll(", certificate-authority-data: [^}]*", "");
        Result untrusted = as(targets.file("untrusted.kubeconfig", unknown), "get", "cm");
        assertThat(untrusted.code()).isEqualTo(1);
        assertThat(untrusted.err()).contains("PKIX").contains("certificate-authority-data of the cluster \"test\"");
        String authority = directory.resolve("cluster/pki/ca.crt").toString();
        assertThat(as(targets.file("untrusted.kubeconfig", unknown), "get", "cm", "--ca-cert", authority)
                        .code())
                .isZero();
        String insecure = targets.file(
                "insecure.kubeconfig",
                Files.readString(targets.cluster().kubeconfig())
                        .replaceAll("certificate-authority-data: [^}]*", "insecure-skip-tls-verify: true"));
        Result refused = as(insecure, "get", "cm");
        assertThat(refused.code()).isEqualTo(1);
        assertThat(refused.err()).contains("has insecure-skip-tls-verify").contains("--insecure-skip-tls-verify");
        Result accepted = as(insecure, "get", "cm", "--insecure-skip-tls-verify");
        assertThat(accepted.code()).isZero();
        assertThat(accepted.err()).contains("is not verified");
    }

    @Test
    void aRefusalOfAWebhookIsTheWebhooksText() throws Exception {
        targets.cluster().kubectl("create", "namespace", "guarded");
        Path cluster = directory.resolve("cluster");
        try (TlsTestServer webhook = new TlsTestServer(cluster, exchange -> {
            JsonNode review = ControlClient.JSON.readTree(exchange.getRequestBody());
            byte[] answer =
                    ("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{\"uid\":\""
                                    + review.at("/request/uid").asText()
                                    + "\",\"allowed\":false,\"status\":{\"message\":\"minReplicas is 1 (expected:"
                                    + " 2)\"}}}")
                            .getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().add("content-type", "application/json");
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        })) {
            String bundle = Base64.getEncoder().encodeToString(Files.readAllBytes(cluster.resolve("pki/ca.crt")));
            targets.cluster().kubectl("apply", "-f", targets.file("webhook.json", """
                {"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"guard"},
                "webhooks":[{"name":"guard.example.com","admissionReviewVersions":["v1"],"sideEffects":"None",
                "failurePolicy":"Fail","timeoutSeconds":5,"clientConfig":{"url":"https://127.0.0.1:PORT/","caBundle":"CA"},
                "namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"guarded"}},
                "rules":[{"apiGroups":["serving.kserve.io"],"apiVersions":["*"],"operations":["CREATE"],"resources":["*"]}]}]}
                """.replace(
                            "PORT", Integer.toString(webhook.port()))
                    .replace("CA", bundle)));
            String file = targets.file("guarded.yaml", iris("guarded"));
            Result[] last = new Result[1];
            // the API server learns of the webhook a moment later
            until(() -> {
                last[0] = targets.remote("apply", "-f", file, "-n", "guarded", "--dry-run");
                return last[0].code() != 0;
            });
            assertThat(last[0].err())
                    .contains("/guarded: minReplicas is 1 (expected: 2)")
                    .contains("refused by the webhook guard.example.com of the cluster");
        }
        Result away = targets.remote("apply", "-f", targets.file("guarded.yaml", iris("guarded")), "-n", "guarded");
        assertThat(away.code()).isEqualTo(1);
        assertThat(away.err()).contains("failed calling webhook").contains("does not answer");
        targets.cluster().kubectl("delete", "validatingwebhookconfiguration", "guard");
    }

    @Test
    void aClusterWithoutTheDefinitionsIsToldFromAResourceThatIsNotThere() throws Exception {
        targets.cluster().kubectl("delete", "crd", "clusterstoragecontainers.serving.kserve.io");
        for (String line : List.of("get csc", "get csc one", "wait csc/one", "delete csc one")) {
            Result result = targets.remote(line.split(" ", -1));
            assertThat(result.code()).as(line).isEqualTo(1);
            assertThat(result.err())
                    .as(line)
                    .contains("does not have this kind of resource")
                    .contains("nereid operator manifests");
        }
    }

    @Test
    void theSelectionIsThatOfTheClustersRuntimes() throws Exception {
        targets.cluster().kubectl("create", "namespace", "select");
        String iris = targets.file("selected.yaml", iris("selected"));
        String clusterRuntime = """
            apiVersion: serving.kserve.io/v1alpha1
            kind: ClusterServingRuntime
            metadata: {name: NAME, annotations: {nereid.io/serving-engine: ENGINE}}
            spec:
              supportedModelFormats: [{name: sklearn, version: "1", autoSelect: true, priority: 1}]
              protocolVersions: [v1]
              containers: [{name: kserve-container, image: "example.com/a:1"}]
            ---
            """;
        assertThat(targets.remote("explain-selection", iris, "-n", "select").code())
                .isEqualTo(1);
        Result installed = targets.remote(
                "apply",
                "-f",
                targets.file(
                        "cluster-runtimes.yaml",
                        clusterRuntime.replace("NAME", "theirs").replace("ENGINE", "kserve")
                                + clusterRuntime.replace("NAME", "ours").replace("ENGINE", "nereid")));
        assertThat(installed.code()).as(installed.err()).isZero();
        assertThat(targets.remote("explain-selection", iris, "-n", "select").out())
                .startsWith("selected: theirs");
        targets.cluster().kubectl("annotate", "namespace", "select", "nereid.io/serving-engine=nereid");
        assertThat(targets.remote("explain-selection", iris, "-n", "select").out())
                .startsWith("selected: ours");
        targets.cluster().kubectl("annotate", "namespace", "select", "nereid.io/serving-engine-");
        assertThat(targets.remote("apply", "-n", "select", "-f", targets.file("runtimes.yaml", """
            apiVersion: serving.kserve.io/v1alpha1
            kind: ServingRuntime
            metadata: {name: own}
            spec:
              supportedModelFormats: [{name: sklearn, version: "1", autoSelect: true, priority: 3}]
              protocolVersions: [v1]
              containers: [{name: kserve-container, image: "example.com/own:1"}]
            """))
                        .code())
                .isZero();
        Result own = targets.remote("explain-selection", iris, "-n", "select");
        assertThat(own.out()).startsWith("selected: own (v1)").containsPattern("own +namespace +yes +yes");
        assertThat(targets.remote("explain-selection", iris, "-n", "default").out())
                .startsWith("selected: theirs");
        assertThat(targets.remote("apply", "-n", "select", "-f", iris).code()).isZero();
        assertThat(targets.remote("explain-selection", "isvc/selected", "-n", "select")
                        .out())
                .isEqualTo(own.out());
        targets.cluster()
                .kubectl(
                        "patch",
                        "isvc",
                        "selected",
                        "-n",
                        "select",
                        "--subresource=status",
                        "--type=merge",
                        "-p",
                        "{\"status\":{\"observedGeneration\":1,\"clusterServingRuntimeName\":\"theirs\"}}");
        assertThat(targets.remote("explain-selection", "selected", "-n", "select")
                        .out())
                .contains("It runs with theirs, and stays with it until its specification changes.");
    }

    @Test
    void aClusterThatIsAwayIsNamed() throws Exception {
        String away = targets.file(
                "away.kubeconfig",
                Files.readString(targets.cluster().kubeconfig())
                        .replaceAll("https://127.0.0.1:\\d+", "https://127.0.0.1:1"));
        Result result = as(away, "get", "isvc");
        assertThat(result.code()).isEqualTo(1);
        assertThat(result.err())
                .contains("no API server responds at https://127.0.0.1:1 (context \"test\" of " + away + ")");
        // nothing is guessed: the built-in runtimes are not those of the cluster that was named
        assertThat(as(away, "explain-selection", targets.file("away.yaml", iris("away")))
                        .code())
                .isEqualTo(1);
    }
}
