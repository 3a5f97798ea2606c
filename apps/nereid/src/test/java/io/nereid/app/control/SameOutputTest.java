// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.control;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.control.BothTargets.Result;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The commands on resources print the same against a control API and against a real API server. */
@SuppressWarnings("NullAway.Init") // set before all tests
class SameOutputTest {
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

    private static final String OTHERS = """
        apiVersion: serving.kserve.io/v1alpha1
        kind: ServingRuntime
        metadata: {name: own}
        spec:
          supportedModelFormats:
          - {name: sklearn, version: "1", autoSelect: true, priority: 3}
          - {name: xgboost, version: "1"}
          protocolVersions: [v2]
          containers:
          - {name: kserve-container, image: example.com/own:1}
        ---
        apiVersion: serving.kserve.io/v1alpha1
        kind: ClusterServingRuntime
        metadata: {name: unused}
        spec:
          disabled: true
          supportedModelFormats: [{name: other, autoSelect: true}]
          containers: [{name: kserve-container, image: example.com/off:1}]
        ---
        apiVersion: serving.kserve.io/v1alpha1
        kind: InferenceGraph
        metadata: {name: graph}
        spec:
          nodes:
            root:
              routerType: Sequence
              steps: [{serviceName: iris}]
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {one: "1", two: "2"}
        ---
        apiVersion: v1
        kind: Secret
        metadata: {name: keys}
        type: Opaque
        data: {password: c2VjcmV0}
        ---
        apiVersion: v1
        kind: ServiceAccount
        metadata: {name: loader}
        secrets: [{name: keys}]
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

    private static Result both(SoftAssertions softly, String... words) {
        Result local = targets.local(words);
        Result remote = targets.remote(words);
        String what = String.join(" ", words);
        softly.assertThat(plain(remote.out())).as(what).isEqualTo(plain(local.out()));
        softly.assertThat(plain(remote.err())).as(what).isEqualTo(plain(local.err()));
        softly.assertThat(remote.code()).as(what).isEqualTo(local.code());
        return remote;
    }

    /** Without what no two servers have in common: identities, versions, times. */
    private static String plain(String text) {
        return text.replaceAll("(uid\"? ?: ?)\"?[0-9a-f-]{36}\"?", "$1U")
                .replaceAll("(resourceVersion\"? ?: ?)\"?[0-9]+\"?", "$1V")
                .replaceAll("\\d{4}-\\d\\d-\\d\\dT[0-9:.]+Z", "T")
                .replaceAll("(?m) +[0-9]+[smh]([0-9]+[smh])?$", " AGE")
                // the admission of one machine writes it, as KServe's does; in a cluster nothing is written into
                // resources
                .replaceAll(",?\\s*\"?modelFormat\"? ?[:=] ?\"?sklearn\"?", "")
                .replaceAll("(?m)(AGE|LAST SEEN) *$", "$1");
    }

    @Test
    void theSameManifestsGiveTheSameOutputOnBothTargets() throws Exception {
        SoftAssertions softly = new SoftAssertions();
        String iris = targets.file("same/iris.yaml", IRIS.replace("NAME", "iris"));
        targets.file("same/others.yaml", OTHERS);
        String folder = directory.resolve("same").toString();
        Result dry = both(softly, "apply", "-f", iris, "--dry-run=server");
        assertThat(dry.out()).isEqualTo("inferenceservice.serving.kserve.io/iris created (server dry run)\n");
        Result applied = both(softly, "apply", "-f", folder);
        assertThat(applied.code()).as(applied.err()).isZero();
        assertThat(applied.out()).contains("inferenceservice.serving.kserve.io/iris created", "secret/keys created");
        both(softly, "apply", "-f", folder);
        ObjectNode status = (ObjectNode) ControlClient.JSON.readTree("""
            {"observedGeneration":1,"url":"http://iris.default.example.com",
             "components":{"predictor":{"latestCreatedRevision":"iris-predictor-00002",
               "latestReadyRevision":"iris-predictor-00002","traffic":[
               {"latestRevision":true,"percent":20,"revisionName":"iris-predictor-00002"},
               {"latestRevision":false,"percent":80,"revisionName":"iris-predictor-00001","tag":"prev"}]}},
             "conditions":[{"type":"PredictorReady","status":"True"},
               {"type":"Ready","status":"True","reason":"Served","message":"it answers"}]}\
            """);
        targets.status("iris", status);
        targets.event("iris", "Warning", "ModelLoadFailed", "no such file");
        for (String line : List.of(
                "get isvc",
                "get isvc iris",
                "get isvc -o wide",
                "get isvc -A",
                "get isvc -o name",
                "get isvc -o yaml",
                "get isvc -o json",
                "get isvc/iris -o yaml",
                "get isvc -l team=a",
                "get isvc -l team=b",
                "get isvc -n nowhere",
                "get isvc,ig,servingruntimes",
                "get clusterservingruntimes",
                "get cm settings",
                "get secret keys",
                "get sa loader",
                "get isvc none",
                "get isvcs",
                "describe isvc iris",
                "describe ig graph",
                "describe secret keys",
                "describe isvc none",
                "wait isvc/iris --for=condition=Ready --timeout=20s",
                "wait isvc/iris --for=condition=Ready=False --timeout=1s",
                "wait isvc/none",
                "explain-selection " + iris + " --built-in",
                "delete isvc none",
                "delete isvc none --ignore-not-found",
                "delete isvc,ig none",
                "delete ig graph",
                "wait ig/graph --for=delete",
                "logs isvc/none")) {
            both(softly, line.split(" ", -1));
        }
        both(softly, "delete", "-f", folder, "--ignore-not-found");
        softly.assertAll();
    }
}
