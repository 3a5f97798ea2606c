// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.AdmissionContext;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.yaml.ManifestReader;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ResourceRecordsTest {
    @Test
    void aServiceIsReadWithAllItsParts() {
        InferenceService service = InferenceService.read(tree("""
            metadata: {name: iris, namespace: a, generation: 3, creationTimestamp: "2026-01-01T00:00:00Z",
              labels: {x: y}, annotations: {c: d}}
            spec:
              predictor:
                name: blue
                minReplicas: 0
                maxReplicas: 5
                containerConcurrency: 7
                canaryTrafficPercent: 10
                serviceAccountName: sa
                logger: {url: "http://s", mode: request}
                batcher: {maxBatchSize: 8, maxLatency: 20}
                autoScaling: {metrics: [{type: Resource, resource: {name: cpu, target: {averageUtilization: 60}}}]}
                model:
                  modelFormat: {name: onnx, version: "1"}
                  runtime: nereid
                  storage: {key: k, path: p, parameters: {bucket: b}}
                  protocolVersion: v2
                  args: [-x]
                  env: [{name: A, value: b}, {name: S, valueFrom: {secretKeyRef: {name: n, key: k}}}]
              transformer:
                containers:
                  - name: kserve-container
                    command: [python]
                    ports: [{containerPort: 8081, name: http1}]
                    readinessProbe: {httpGet: {path: /r, port: http1}, periodSeconds: 2}
                    resources: {limits: {cpu: 2, memory: 1Gi}}
              explainer: {nereid: {method: shap, config: {a: b}}}
            status: {url: u}
            """));
        assertThat(service.metadata().generation()).isEqualTo(3);
        assertThat(service.metadata().creationTimestamp()).hasToString("2026-01-01T00:00:00Z");
        assertThat(service.metadata().annotation("c")).isEqualTo("d");
        InferenceService.PredictorSpec predictor = service.predictor();
        assertThat(predictor.name()).isEqualTo("blue");
        assertThat(predictor.extension().minReplicas()).isZero();
        assertThat(predictor.extension().maxReplicas()).isEqualTo(5);
        assertThat(predictor.extension().containerConcurrency()).isEqualTo(7);
        assertThat(predictor.extension().canaryTrafficPercent()).isEqualTo(10);
        assertThat(Objects.requireNonNull(predictor.extension().logger()).mode())
                .isEqualTo("request");
        assertThat(Objects.requireNonNull(predictor.extension().batcher()).maxLatency())
                .isEqualTo(20);
        assertThat(Objects.requireNonNull(predictor.extension().autoScaling())
                        .metrics()
                        .get(0)
                        .averageUtilization())
                .isEqualTo(60);
        assertThat(predictor.pod().serviceAccountName()).isEqualTo("sa");
        InferenceService.ModelSpec model = Objects.requireNonNull(predictor.model());
        assertThat(model.formatName()).isEqualTo("onnx");
        assertThat(model.formatVersion()).isEqualTo("1");
        assertThat(model.runtime()).isEqualTo("nereid");
        assertThat(Objects.requireNonNull(model.storage()).parameters()).isEqualTo(Map.of("bucket", "b"));
        assertThat(model.container().args()).containsExactly("-x");
        assertThat(model.container().env("A")).isEqualTo("b");
        assertThat(model.container().env().get(1).from())
                .isEqualTo(new Container.ValueFrom("secretKeyRef", "n", "k", false));
        Container transformer = Objects.requireNonNull(
                Objects.requireNonNull(service.transformer()).pod().container("kserve-container"));
        assertThat(transformer.ports()).containsExactly(new Container.Port("http1", 8081, "TCP", null));
        assertThat(transformer.resources().limits()).isEqualTo(Map.of("cpu", "2", "memory", "1Gi"));
        Container.Probe probe = Objects.requireNonNull(transformer.readinessProbe());
        assertThat(Objects.requireNonNull(probe.httpGet()).port()).isEqualTo("http1");
        assertThat(probe.periodSeconds()).isEqualTo(2);
        assertThat(probe.failureThreshold()).isEqualTo(3);
        assertThat(Objects.requireNonNull(service.explainer()).builtIn())
                .isEqualTo(new InferenceService.BuiltInExplainer("shap", null, Map.of("a", "b")));
        assertThat((JsonNode) service.status()).hasToString("{\"url\":\"u\"}");
    }

    @Test
    void aWrongTypeIsReportedWithItsPath() {
        assertThatThrownBy(() ->
                        InferenceService.read(tree("spec: {predictor: {containers: [{name: a, env: [{name: 5}]}]}}")))
                .isInstanceOf(ServingException.class)
                .hasMessage("spec.predictor.containers[0].env[0].name: expected a string, found 5");
    }

    @Test
    void storageContainersMatchByPrefixAndExpression() {
        ClusterStorageContainer container = ClusterStorageContainer.read(tree("""
            metadata: {name: a}
            spec:
              container: {name: s}
              supportedUriFormats: [{prefix: "x://"}, {regex: "https://(.+)/(.+)"}]
            """));
        assertThat(container.supports("x://a")).isTrue();
        assertThat(container.supports("https://h/f")).isTrue();
        assertThat(container.supports("https://h")).isFalse();
        assertThat(container.supports("ax://a")).isFalse();
    }

    @ParameterizedTest
    @CsvSource({
        "1,1",
        "500m,0.5",
        "2Gi,2147483648",
        "1k,1000",
        "1e3,1000",
        "1.5G,1500000000",
        "0,0",
        ".5,0.5",
        "100u,0.0001",
        "1Ei,1152921504606846976",
        "3E2,300",
        "1E,1000000000000000000"
    })
    void quantitiesAreRead(String text, String value) {
        assertThat(Quantity.parse(text).value()).isEqualByComparingTo(value);
    }

    @ParameterizedTest
    @CsvSource({"''", "1GiB", "Gi", "1 k", "1e", "--1", "0x1", "1e999"})
    void anInvalidQuantityIsRejected(String text) {
        assertThatThrownBy(() -> Quantity.parse(text)).isInstanceOf(ServingException.class);
    }

    @Test
    void settingsDefaultToKserves() {
        InferenceServiceConfig config = InferenceServiceConfig.defaults();
        assertThat(config.ingress().ingressDomain()).isEqualTo("example.com");
        assertThat(config.ingress().domainTemplate()).isEqualTo("{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}");
        assertThat(config.deploy().defaultDeploymentMode()).isEqualTo(InferenceServiceConfig.DeploymentMode.KNATIVE);
        assertThat(config.batcher()).isEqualTo(new InferenceServiceConfig.Batcher(32, 5000));
        assertThat(config.autoscaler()).isEqualTo(new InferenceServiceConfig.Autoscaler(0, 300));
        assertThat(config.credentials().storageSpecSecretName()).isEqualTo("storage-config");
    }

    @Test
    void aNamespaceOverridesSettingsFieldByField() {
        InferenceServiceConfig config = InferenceServiceConfig.read(tree("""
            ingress: {ingressDomain: a.org, urlScheme: https}
            namespaces:
              team: {ingress: {ingressDomain: team.org}, batcher: {maxBatchSize: "8"}}
            """));
        InferenceServiceConfig team = config.forNamespace("team");
        assertThat(team.ingress().ingressDomain()).isEqualTo("team.org");
        assertThat(team.ingress().urlScheme()).isEqualTo("https");
        assertThat(team.batcher().maxBatchSize()).isEqualTo(8);
        assertThat(config.forNamespace("other").ingress().ingressDomain()).isEqualTo("a.org");
    }

    @Test
    void kservesConfigMapIsReadAsSettings() {
        InferenceServiceConfig config = InferenceServiceConfig.read(tree("""
            kind: ConfigMap
            data:
              _example: "any thing"
              deploy: '{"defaultDeploymentMode": "RawDeployment"}'
              inferenceService: '{"resource": {"cpuLimit": "4"}, "serviceLabelDisallowedList": ["x"]}'
              metricsAggregator: '{"enableMetricAggregation": "true"}'
              somethingNew: '{"a": 1}'
            """));
        assertThat(config.deploy().defaultDeploymentMode()).isEqualTo(InferenceServiceConfig.DeploymentMode.STANDARD);
        assertThat(config.inferenceService().defaultResources().limits())
                .isEqualTo(Map.of("cpu", "4", "memory", "2Gi"));
        assertThat(config.inferenceService().labelDisallowedList()).isEqualTo(List.of("x"));
        assertThat(config.metricsAggregator().enableMetricAggregation()).isTrue();
    }

    @Test
    void unknownSettingsOfATreeAreRejected() {
        assertThatThrownBy(() -> InferenceServiceConfig.read(tree("ingres: {}\nbatcher: {maxBatchSize: many}")))
                .isInstanceOf(ServingException.class)
                .hasMessage("ingres: unknown field; did you mean 'ingress'?");
        assertThatThrownBy(() -> InferenceServiceConfig.read(tree("batcher: {maxBatchSize: many}")))
                .isInstanceOf(ServingException.class)
                .hasMessage("batcher.maxBatchSize: expected an integer, found \"many\"");
    }

    @Test
    void knativeServingRunsNoServicesUnlessTheSettingsSaySo() {
        assertThat(InferenceServiceConfig.defaults().knativeServing())
                .isEqualTo(InferenceServiceConfig.KnativeServing.NONE);
        InferenceServiceConfig config =
                InferenceServiceConfig.read(tree("namespaces: {team: {nereid: {knative: auto}}}"));
        assertThat(config.forNamespace("team").knativeServing()).isEqualTo(InferenceServiceConfig.KnativeServing.AUTO);
        assertThatThrownBy(() -> InferenceServiceConfig.read(tree("nereid: {knative: 'yes'}")))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("nereid.knative: \"yes\" is not one of none, auto, installed");
    }

    @Test
    void everyKindIsFoundByItsNames() {
        for (ResourceKind kind : ResourceKinds.all()) {
            assertThat(ResourceKinds.byKind(kind.apiVersion(), kind.kind())).isSameAs(kind);
            assertThat(ResourceKinds.byPlural(kind.group(), kind.plural())).isSameAs(kind);
        }
        assertThat(ResourceKinds.all())
                .hasSize(17)
                .extracting(ResourceKind::plural)
                .doesNotHaveDuplicates();
        assertThat(ResourceKinds.byPlural("", "inferenceservices")).isNull();
        ResourceKind older = ResourceKinds.byKind("serving.kserve.io/v1alpha1", "LLMInferenceService");
        assertThat(older).isNotNull();
        assertThat(older.apiVersion()).isEqualTo("serving.kserve.io/v1alpha1");
        assertThat(older.plural()).isEqualTo(ResourceKinds.LLM_INFERENCE_SERVICE.plural());
        assertThatThrownBy(() -> ResourceKinds.LLM_INFERENCE_SERVICE.inVersion("v1"))
                .hasMessage("LLMInferenceService is not served as v1");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "serving.kserve.io/v1alpha1|Predictor|write an InferenceService",
                "serving.kserve.io/v1beta1|LLMInferenceService|write apiVersion: serving.kserve.io/v1alpha2",
                "serving.kserve.io/v1beta1|LocalModelCache|write apiVersion: serving.kserve.io/v1alpha1",
                "serving.kserve.io/v1alpha2|InferenceService|write apiVersion: serving.kserve.io/v1beta1",
                "serving.kubeflow.org/v1beta1|InferenceService|write apiVersion: serving.kserve.io/v1beta1",
                "v1|InferenceService|no such",
                "serving.kserve.io/v1beta1|InferenceServices|did you mean 'InferenceService'",
                "apps/v1|Deployment|the rest is for a cluster",
                "v1|Secrets|did you mean 'Secret'?"
            })
    void unsupportedKindsAreRejectedWithARemedy(String apiVersion, String kind, String remedy) {
        ObjectNode resource = tree("a: 1");
        resource.put("apiVersion", apiVersion).put("kind", kind);
        assertThatThrownBy(() -> ResourceKinds.of(resource)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.getMessage()).isEqualTo("there is no " + apiVersion + " " + kind + " here");
            assertThat(e.remedy()).contains(remedy.equals("no such") ? "this server keeps" : remedy);
        });
    }

    @Test
    void aChangeOfTheSpecificationIsDetected() {
        ObjectNode before = tree("metadata: {name: a}\nspec: {x: 1}\nstatus: {y: 1}");
        assertThat(Admission.specChanged(before, tree("metadata: {name: b}\nspec: {x: 1}\nstatus: {y: 2}")))
                .isFalse();
        assertThat(Admission.specChanged(before, tree("metadata: {name: a}\nspec: {x: 2}\nstatus: {y: 1}")))
                .isTrue();
        assertThat((JsonNode) before)
                .hasToString("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"x\":1},\"status\":{\"y\":1}}");
    }

    @Test
    void aNameIsGeneratedFromGenerateName() {
        ObjectNode admitted = new Admission(AdmissionContext.NONE)
                .admit(ResourceKinds.CONFIG_MAP, tree("metadata: {generateName: a-}"), null)
                .resource();
        assertThat(admitted.path("metadata").path("name").asText()).matches("a-[a-z0-9]{5}");
    }

    private static ObjectNode tree(String yaml) {
        return ManifestReader.parse(yaml, "test").get(0);
    }
}
