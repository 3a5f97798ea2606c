// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ServingRuntime;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.core.runtime.RuntimeCatalog.Gateway;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class ServingEngineTest {
    private static InferenceService service(String format, String protocol, String runtime, @Nullable String engine) {
        ObjectNode service = JsonNodeFactory.instance.objectNode();
        ObjectNode metadata = service.putObject("metadata").put("name", "iris").put("namespace", "team-a");
        if (engine != null) {
            metadata.putObject("annotations").put(ServingEngine.ANNOTATION, engine);
        }
        ObjectNode model = service.putObject("spec").putObject("predictor").putObject("model");
        model.putObject("modelFormat").put("name", format);
        model.put("storageUri", "gs://models/iris");
        if (!protocol.isEmpty()) {
            model.put("protocolVersion", protocol);
        }
        if (!runtime.isEmpty()) {
            model.put("runtime", runtime);
        }
        return InferenceService.read(service);
    }

    private static RuntimeCatalog catalog(@Nullable ServingEngine namespace, @Nullable ServingEngine settings) {
        ObjectNode config = JsonNodeFactory.instance.objectNode();
        if (settings != null) {
            config.putObject("nereid").put("servingEngine", settings.text());
        }
        return new RuntimeCatalog(
                        List.of(),
                        BuiltInRuntimes.all(),
                        List.of(),
                        InferenceServiceConfig.defaults().with(config),
                        Gateway.UNKNOWN)
                .withNamespaceEngine(namespace);
    }

    private static @Nullable String chosen(InferenceService service, RuntimeCatalog catalog) {
        RuntimeSelection selection = RuntimeSelection.of(service, catalog);
        ServingRuntime runtime = selection == null ? null : selection.chosen();
        return runtime == null ? null : runtime.name();
    }

    @Test
    void everyRuntimeOfKserveHasACounterpartWithTheSameFormatsPrioritiesAndProtocols() {
        Map<String, ObjectNode> runtimes = BuiltInRuntimes.trees().stream()
                .collect(Collectors.toMap(one -> one.at("/metadata/name").asText(), one -> one));
        List<String> compared = new ArrayList<>();
        runtimes.forEach((name, runtime) -> {
            if (name.startsWith("kserve-") && !name.equals(BuiltInRuntimes.GENERAL)) {
                ObjectNode own = runtimes.get("nereid-" + name.substring("kserve-".length()));
                assertThat(own).as(name).isNotNull();
                for (String field : List.of("supportedModelFormats", "protocolVersions")) {
                    assertThat(own.path("spec").path(field))
                            .as(name)
                            .isEqualTo(runtime.path("spec").path(field));
                }
                compared.add(name);
            }
        });
        assertThat(compared).hasSize(11);
    }

    @Test
    void theServiceDecidesBeforeItsNamespaceAndThatBeforeTheSettings() {
        ServingEngine kserve = ServingEngine.KSERVE;
        ServingEngine nereid = ServingEngine.NEREID;
        InferenceService silent = service("sklearn", "", "", null);
        assertThat(chosen(silent, catalog(null, null))).isEqualTo("kserve-sklearnserver");
        assertThat(chosen(silent, catalog(null, kserve))).isEqualTo("kserve-sklearnserver");
        assertThat(chosen(silent, catalog(null, nereid))).isEqualTo("nereid-sklearnserver");
        assertThat(chosen(silent, catalog(kserve, nereid))).isEqualTo("kserve-sklearnserver");
        assertThat(chosen(silent, catalog(nereid, kserve))).isEqualTo("nereid-sklearnserver");
        assertThat(chosen(service("sklearn", "", "", "kserve"), catalog(nereid, nereid)))
                .isEqualTo("kserve-sklearnserver");
        assertThat(chosen(service("sklearn", "", "", "nereid"), catalog(kserve, kserve)))
                .isEqualTo("nereid-sklearnserver");
    }

    @Test
    void bothEnginesFollowTheSamePrioritiesAndProtocols() {
        RuntimeCatalog nereid = catalog(ServingEngine.NEREID, null);
        RuntimeCatalog kserve = catalog(ServingEngine.KSERVE, null);
        int compared = 0;
        for (String format :
                List.of("sklearn", "xgboost", "lightgbm", "mlflow", "pmml", "onnx", "tensorflow", "pytorch")) {
            for (String protocol : List.of("v1", "v2")) {
                InferenceService service = service(format, protocol, "", null);
                String of = chosen(service, kserve);
                if (of != null) {
                    assertThat(chosen(service, nereid)).isEqualTo(of.replace("kserve-", "nereid-"));
                    compared++;
                }
            }
        }
        assertThat(compared).isGreaterThan(10);
    }

    @Test
    void aNamedRuntimeWinsWhateverTheEngineIs() {
        assertThat(chosen(service("sklearn", "", "kserve-sklearnserver", "nereid"), catalog(null, null)))
                .isEqualTo("kserve-sklearnserver");
        assertThat(chosen(service("sklearn", "", "nereid-sklearnserver", "kserve"), catalog(null, null)))
                .isEqualTo("nereid-sklearnserver");
    }

    @Test
    void aRuntimeOfTheEngineIsOnlyChosenWhenTheEngineIs() {
        RuntimeCatalog kserve = catalog(ServingEngine.KSERVE, null);
        RuntimeSelection none = RuntimeSelection.of(service("catboost", "", "", null), kserve);
        assertThat(none).isNotNull();
        assertThat(none.reason()).isEqualTo("NoSupportingRuntime");
        assertThat(none.message()).contains("kserve-nereid supports it", "nereid.io/serving-engine: nereid");
        assertThat(chosen(service("catboost", "", "", "nereid"), kserve)).isEqualTo("kserve-nereid");
        assertThat(chosen(service("catboost", "", "", null), catalog(null, null)))
                .isEqualTo("kserve-nereid");
    }

    @Test
    void whereTheEngineHasNoRuntimeTheOthersAreChosen() {
        ObjectNode vllm = JsonNodeFactory.instance.objectNode().put("kind", "ClusterServingRuntime");
        vllm.putObject("metadata").put("name", "vllm");
        ObjectNode spec = vllm.putObject("spec");
        spec.putArray("supportedModelFormats").addObject().put("name", "vLLM").put("autoSelect", true);
        spec.putArray("protocolVersions").add("v1");
        List<ServingRuntime> all = new ArrayList<>(BuiltInRuntimes.all());
        all.add(ServingRuntime.read(vllm));
        RuntimeCatalog catalog = new RuntimeCatalog(
                List.of(), all, List.of(), InferenceServiceConfig.defaults(), Gateway.UNKNOWN, ServingEngine.NEREID);
        assertThat(chosen(service("vLLM", "", "", null), catalog)).isEqualTo("vllm");
        RuntimeSelection selection = RuntimeSelection.of(service("sklearn", "", "", null), catalog);
        assertThat(selection).isNotNull();
        assertThat(selection.considered())
                .filteredOn(one -> one.runtime().equals("kserve-sklearnserver"))
                .singleElement()
                .satisfies(one -> assertThat(one.why()).contains("engine nereid take precedence"));
    }

    @Test
    void anUnknownEngineIsRefusedWithTheKnownOnes() {
        InferenceService service = service("sklearn", "", "", "nereide");
        assertThatThrownBy(() -> RuntimeSelection.of(service, catalog(null, null)))
                .hasMessageContaining("nereid.io/serving-engine")
                .hasMessageContaining("\"nereide\" is not one of nereid, kserve");
        ObjectNode settings = JsonNodeFactory.instance.objectNode();
        settings.putObject("nereid").put("servingEngine", "triton");
        JsonNode tree = settings;
        assertThatThrownBy(() -> InferenceServiceConfig.defaults().with((ObjectNode) tree))
                .hasMessageContaining("nereid.servingEngine")
                .hasMessageContaining("is not one of nereid, kserve");
    }
}
