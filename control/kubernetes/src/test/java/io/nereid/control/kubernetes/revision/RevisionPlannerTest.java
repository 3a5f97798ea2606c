// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.ObservedState;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Revision;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadCodec;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.kubernetes.cluster.KserveCatalog;
import io.nereid.control.kubernetes.cluster.ObservedCluster;
import io.nereid.control.kubernetes.cluster.Owner;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RevisionPlannerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) JSON.readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private static ObjectNode service(int generation, String predictor) {
        return tree("{'apiVersion':'serving.kserve.io/v1beta1','kind':'InferenceService','metadata':{'name':'iris',"
                + "'namespace':'default','uid':'u-1','generation':" + generation + "},'spec':{'predictor':{"
                + predictor + "}}}");
    }

    private static final String MODEL = "'model':{'modelFormat':{'name':'sklearn'},'storageUri':'gs://models/iris'}";

    @Test
    void transformersAndExplainersOfNereidAreRevisionsOfTheirOwn() {
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("image", "nereid:1");
        ObjectNode service = service(1, MODEL);
        ((ObjectNode) service.get("spec"))
                .setAll(tree("{'transformer':{'minReplicas':0,'nereid':{'storageUri':'s3://steps/words'}},"
                        + "'explainer':{'nereid':{'method':'lime','storageUri':'gs://data/rows'}}}"));
        Plan plan = plan(
                service,
                catalog(InferenceServiceConfig.defaults().with(settings)),
                ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
        assertThat(plan.workloads())
                .extracting(Workload::revision)
                .containsExactlyInAnyOrder("iris-predictor-00001", "iris-transformer-00001", "iris-explainer-00001");
        for (Workload workload : plan.workloads()) {
            Workload.Pod pod = (Workload.Pod) workload.form();
            JsonNode container = pod.spec().at("/containers/0");
            switch (workload.component()) {
                case TRANSFORMER -> {
                    assertThat(container.path("command").toString()).isEqualTo("[\"nereid\",\"transformer\"]");
                    assertThat(container.path("args").toString()).contains("\"iris-predictor.default\"");
                    assertThat(pod.httpPort()).isEqualTo(8080);
                    assertThat(pod.grpcPort()).isEqualTo(8081);
                    assertThat(workload.scaling().min()).isZero();
                    assertThat(pod.spec().at("/initContainers/0/args/0").asText())
                            .isEqualTo("s3://steps/words");
                }
                case EXPLAINER -> {
                    assertThat(container.path("command").toString()).isEqualTo("[\"nereid\",\"explainer\"]");
                    assertThat(pod.grpcPort()).isZero();
                }
                default -> assertThat(container.path("image").asText()).startsWith("kserve/");
            }
        }
    }

    private static RuntimeCatalog catalog(InferenceServiceConfig config) {
        return new RuntimeCatalog(
                List.of(),
                KserveCatalog.runtimes(),
                KserveCatalog.storageContainers(),
                config,
                RuntimeCatalog.Gateway.UNKNOWN);
    }

    private static Plan plan(ObjectNode service, RuntimeCatalog catalog, ObservedState observed) {
        return RevisionPlanner.plan(
                service,
                catalog,
                observed,
                new ObservedCluster(
                        Map.of(), List.of(), observed.status(), secret -> null, account -> null, map -> null),
                NOW);
    }

    private static ObservedState state(Plan plan, String revision, Phase phase, Traffic traffic) {
        return new ObservedState(
                Map.of(revision, new WorkloadState(phase, 1, 1, null, traffic)), plan.revisions(), plan.status());
    }

    @Test
    void aRevisionIsAPodWithItsStorageInitialiserAndBecomesTheRoute() {
        RuntimeCatalog catalog = catalog(InferenceServiceConfig.defaults());
        Plan first = plan(
                service(1, MODEL + ",'containerConcurrency':4,'timeout':70,'minReplicas':0"),
                catalog,
                ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
        assertThat(first.workloads()).hasSize(1);
        Workload workload = first.workloads().get(0);
        assertThat(workload.revision()).isEqualTo("iris-predictor-00001");
        assertThat(workload.timeout()).isEqualTo(Duration.ofSeconds(70));
        assertThat(workload.scaling().min()).isZero();
        assertThat(WorkloadCodec.read(WorkloadCodec.write(workload))).isEqualTo(workload);
        Workload.Pod pod = (Workload.Pod) workload.form();
        assertThat(pod.httpPort()).isEqualTo(8080);
        assertThat(pod.spec().at("/initContainers/0/name").asText()).isEqualTo("storage-initializer");
        assertThat(first.route()).isNull();

        Plan ready = plan(
                service(1, MODEL + ",'containerConcurrency':4,'timeout':70,'minReplicas':0"),
                catalog,
                state(first, "iris-predictor-00001", Phase.READY, Traffic.NONE));
        assertThat(ready.route()).isNotNull();
        assertThat(ready.status().path("deploymentMode").asText()).isEqualTo("Knative");

        ObjectNode resource = service(1, MODEL);
        ObjectNode deployment = RevisionObjects.deployment(Owner.of(resource), workload, 1);
        assertThat(deployment.at("/metadata/name").asText()).isEqualTo("iris-predictor-00001-deployment");
        assertThat(deployment
                        .at("/spec/template/metadata/labels/serving.knative.dev~1revision")
                        .asText())
                .isEqualTo("iris-predictor-00001");
        JsonNode env = deployment.at("/spec/template/spec/containers/0/env");
        assertThat(env.path(0).path("name").asText()).isEqualTo("PORT");
        assertThat(env.path(0).path("value").asText()).isEqualTo("8080");
        assertThat(env.findValuesAsText("name")).contains("K_REVISION", "K_CONFIGURATION", "K_SERVICE");
        RevisionSettings settings = RevisionSettings.read(RevisionObjects.privateService(Owner.of(resource), workload)
                .at("/metadata/annotations/nereid.io~1revision")
                .asText());
        assertThat(settings.containerConcurrency()).isEqualTo(4);
        assertThat(RevisionObjects.routeServices(Owner.of(resource), ready.route(), "gateway.home", ""))
                .extracting(one -> one.at("/metadata/name").asText())
                .containsExactly("iris", "iris-predictor");
    }

    @Test
    void containersAreProbedEachSecondUntilTheyStartAndServeWhileTheyEnd() {
        ObjectNode resource = service(
                1,
                "'containers':[{'name':'kserve-container','image':'a'},"
                        + "{'name':'second','image':'b','lifecycle':{'preStop':{'exec':{'command':['wait']}}},"
                        + "'readinessProbe':{'httpGet':{'path':'/','port':1},'periodSeconds':3}}]");
        Workload workload = plan(
                        resource,
                        catalog(InferenceServiceConfig.defaults()),
                        ObservedState.nothing(JsonNodeFactory.instance.objectNode()))
                .workloads()
                .get(0);
        JsonNode containers =
                RevisionObjects.deployment(Owner.of(resource), workload, 1).at("/spec/template/spec/containers");
        assertThat(containers.at("/0/startupProbe"))
                .hasToString("{\"tcpSocket\":{\"port\":8080},\"periodSeconds\":1,\"failureThreshold\":600}");
        assertThat((Object) containers.at("/0/lifecycle")).isEqualTo(tree("{'preStop':{'sleep':{'seconds':5}}}"));
        assertThat(containers.at("/1").has("startupProbe")).isFalse();
        assertThat((Object) containers.at("/1/lifecycle")).isEqualTo(tree("{'preStop':{'exec':{'command':['wait']}}}"));
    }

    @Test
    void aServiceIsNotReadyWithoutAGatewayAndSaysItOnce() {
        RuntimeCatalog catalog = catalog(InferenceServiceConfig.defaults());
        Plan first = plan(service(1, MODEL), catalog, ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
        ObservedState state = state(first, "iris-predictor-00001", Phase.READY, Traffic.NONE);
        Plan lost = plan(
                service(1, MODEL),
                catalog,
                new ObservedState(state.workloads(), state.revisions(), state.status(), "no gateway is ready"));
        assertThat(lost.route()).isNotNull();
        assertThat(condition(lost, "PredictorReady").path("status").asText()).isEqualTo("True");
        for (String type : List.of("IngressReady", "Ready")) {
            assertThat(condition(lost, type).path("status").asText()).isEqualTo("False");
            assertThat(condition(lost, type).path("reason").asText()).isEqualTo("GatewayNotReady");
            assertThat(condition(lost, type).path("message").asText()).isEqualTo("no gateway is ready");
        }
        Plan again = plan(
                service(1, MODEL),
                catalog,
                new ObservedState(state.workloads(), lost.revisions(), lost.status(), "no gateway is ready"));
        assertThat((Object) again.status()).isEqualTo(lost.status());
        assertThat(again.events()).isEmpty();
        Plan back = plan(service(1, MODEL), catalog, state(lost, "iris-predictor-00001", Phase.READY, Traffic.NONE));
        assertThat(condition(back, "Ready").path("status").asText()).isEqualTo("True");
        assertThat(back.events()).extracting(event -> event.reason()).containsExactly("InferenceServiceReady");
    }

    private static JsonNode condition(Plan plan, String type) {
        for (JsonNode condition : plan.status().path("conditions")) {
            if (condition.path("type").asText().equals(type)) {
                return condition;
            }
        }
        throw new AssertionError("no condition " + type + " in " + plan.status());
    }

    @Test
    void theSpecificationMakesARevisionAndTheSettingsOfTheClusterDoNot() {
        RuntimeCatalog catalog = catalog(InferenceServiceConfig.defaults());
        Plan first = plan(service(1, MODEL), catalog, ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
        ObservedState ready = state(first, "iris-predictor-00001", Phase.READY, Traffic.NONE);
        RuntimeCatalog changed = catalog(
                InferenceServiceConfig.defaults().with(tree("{'storageInitializer':{'image':'registry/fetch:2'}}")));
        Plan other = plan(service(1, MODEL), changed, ready);
        assertThat(other.revisions()).extracting(Revision::name).containsExactly("iris-predictor-00001");

        Plan second = plan(service(2, MODEL.replace("models/iris", "models/v2")), catalog, ready);
        assertThat(second.revisions())
                .extracting(Revision::name)
                .containsExactly("iris-predictor-00001", "iris-predictor-00002");
        assertThat(second.workloads()).hasSize(2);
    }

    @Test
    void aCanaryThatFailsIsRolledBack() {
        RuntimeCatalog catalog = catalog(InferenceServiceConfig.defaults());
        Plan first = plan(service(1, MODEL), catalog, ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
        Plan rolledOut =
                plan(service(1, MODEL), catalog, state(first, "iris-predictor-00001", Phase.READY, Traffic.NONE));
        ObjectNode canary = service(2, MODEL.replace("models/iris", "models/v2") + ",'canaryTrafficPercent':20");
        canary.withObject("/metadata/annotations").put("nereid.io/rollback-error-percent", "5");
        Plan starting = plan(canary, catalog, state(rolledOut, "iris-predictor-00001", Phase.READY, Traffic.NONE));
        WorkloadState fine = new WorkloadState(Phase.READY, 1, 1, null, Traffic.NONE);
        WorkloadState failing = new WorkloadState(Phase.READY, 1, 1, null, new Traffic(100, 50, 10));
        Plan split = plan(
                canary,
                catalog,
                new ObservedState(
                        Map.of("iris-predictor-00001", fine, "iris-predictor-00002", fine),
                        starting.revisions(),
                        starting.status()));
        JsonNode traffic = split.status().at("/components/predictor/traffic");
        assertThat(traffic).as("%s", split.status()).hasSize(2);
        Plan back = plan(
                canary,
                catalog,
                new ObservedState(
                        Map.of("iris-predictor-00001", fine, "iris-predictor-00002", failing),
                        split.revisions(),
                        split.status()));
        assertThat(back.status().at("/components/predictor/traffic")).hasSize(1);
        assertThat(back.status()
                        .at("/components/predictor/traffic/0/revisionName")
                        .asText())
                .isEqualTo("iris-predictor-00001");
    }

    @Test
    void whatAPodOfARevisionCannotBeIsRefusedByName() {
        Plan plan = plan(
                service(1, "'model':{'modelFormat':{'name':'sklearn'}}"),
                catalog(InferenceServiceConfig.defaults()),
                ObservedState.nothing(JsonNodeFactory.instance.objectNode()));
        assertThat(plan.workloads()).isEmpty();
        assertThat(plan.status().toString()).contains("InvalidPredictorSpec", "deploymentMode: Standard");
    }

    @Test
    void theStateIsThatOfDeploymentAndPods() {
        ObjectNode deployment = tree("{'metadata':{'creationTimestamp':'2026-01-01T00:00:00Z'},'spec':{'replicas':1}}");
        ObjectNode pod = tree("{'metadata':{'creationTimestamp':'2026-01-01T00:00:01Z'},'status':{"
                + "'initContainerStatuses':[{'name':'storage-initializer','state':{'waiting':{'reason':"
                + "'CrashLoopBackOff'}},'lastState':{'terminated':{'reason':'Error','exitCode':1,'message':"
                + "'no such object','finishedAt':'2026-01-01T00:00:05Z'}}}]}}");
        WorkloadState failed = RevisionStates.of(deployment, List.of(pod), false, Traffic.NONE);
        assertThat(failed.phase()).isEqualTo(Phase.FAILED);
        assertThat(failed.failure())
                .isEqualTo(new ObservedState.Failure(
                        "ModelLoadFailed", "no such object", Instant.parse("2026-01-01T00:00:05Z"), 1));
        assertThat(RevisionStates.of(deployment, List.of(), false, Traffic.NONE).phase())
                .isEqualTo(Phase.PENDING);
        assertThat(RevisionStates.of(deployment, List.of(), true, Traffic.NONE).phase())
                .isEqualTo(Phase.STANDBY);
        ObjectNode zero = tree("{'spec':{'replicas':0}}");
        assertThat(RevisionStates.of(zero, List.of(), false, Traffic.NONE).phase())
                .isEqualTo(Phase.STANDBY);
        ObjectNode quota = tree("{'metadata':{'creationTimestamp':'2026-01-01T00:00:00Z'},'spec':{'replicas':1},"
                + "'status':{'conditions':[{'type':'ReplicaFailure','status':'True','message':'exceeded quota',"
                + "'lastTransitionTime':'2026-01-01T00:00:02Z'}]}}");
        assertThat(RevisionStates.of(quota, List.of(), false, Traffic.NONE)
                        .failure()
                        .message())
                .isEqualTo("exceeded quota");
    }

    @Test
    void aModelOfAPoolThatWasReadyStaysReadyWhileThePoolDoesNotKnowIt() {
        WorkloadState unknown = new WorkloadState(Phase.PENDING, 0, 1, null, Traffic.NONE);
        assertThat(RevisionStates.pooled(unknown, true).phase()).isEqualTo(Phase.STANDBY);
        assertThat(RevisionStates.pooled(unknown, false)).isSameAs(unknown);
        WorkloadState failed = new WorkloadState(
                Phase.FAILED,
                0,
                1,
                new ObservedState.Failure("ModelLoadFailed", "damaged", Instant.EPOCH, 1),
                Traffic.NONE);
        assertThat(RevisionStates.pooled(failed, true)).isSameAs(failed);
    }
}
