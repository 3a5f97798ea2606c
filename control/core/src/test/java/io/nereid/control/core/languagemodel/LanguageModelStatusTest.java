// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.languagemodel;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.admission.Site;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class LanguageModelStatusTest {
    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");

    private final Map<String, ObjectNode> configs = new TreeMap<>();

    private static ObjectNode tree(String json) {
        try {
            return (ObjectNode) new ObjectMapper().readTree(json.replace('\'', '"'));
        } catch (IOException e) {
            throw new AssertionError(json, e);
        }
    }

    private static ObjectNode service(String spec) {
        return tree("{'metadata':{'name':'opt','namespace':'team','generation':3},'spec':" + spec + "}");
    }

    private ObjectNode status(ObjectNode service) {
        return LanguageModelStatus.service(
                service, "home", (namespace, name) -> configs.get(namespace + "/" + name), Site.KUBERNETES, NOW);
    }

    private static List<String> conditions(JsonNode status) {
        List<String> all = new ArrayList<>();
        status.path("conditions")
                .forEach(one -> all.add(one.path("type").asText() + " "
                        + one.path("status").asText()
                        + (one.has("reason") ? " " + one.path("reason").asText() : "")));
        return all;
    }

    private static String message(JsonNode status, String type) {
        for (JsonNode one : status.path("conditions")) {
            if (one.path("type").asText().equals(type)) {
                return one.path("message").asText();
            }
        }
        return "";
    }

    @Test
    void aPlainServiceIsNotReadyAndSaysWhatIsMissingAndWhatToDo() {
        ObjectNode status = status(service("{'model':{'uri':'hf://facebook/opt-125m'}}"));
        assertThat(conditions(status))
                .containsExactly(
                        "MainWorkloadReady False LanguageModelsNotSupported",
                        "PresetsCombined True",
                        "Ready False LanguageModelsNotSupported",
                        "RouterReady True",
                        "WorkloadsReady False LanguageModelsNotSupported");
        assertThat(message(status, "Ready"))
                .isEqualTo("the model hf://facebook/opt-125m is not served: servers of large language models, such as"
                        + " vLLM with the routing of llm-d, are not built in; write an InferenceService whose predictor"
                        + " has a container with such a server, or let KServe's own controller of this kind run beside"
                        + " Nereid");
        assertThat(status.path("observedGeneration").asInt()).isEqualTo(3);
        assertThat(status.has("appliedConfigs")).isFalse();
    }

    @Test
    void everyPartHasAConditionOfItsOwn() {
        ObjectNode status = status(service("{'model':{'uri':'u'},'worker':{},'parallelism':{'pipeline':2},"
                + "'prefill':{'worker':{},'parallelism':{'data':2,'dataLocal':1}},"
                + "'router':{'route':{},'scheduler':{},'gateway':{'refs':[{'name':'g'}]}}}"));
        assertThat(conditions(status).stream()
                        .filter(one -> one.endsWith(" False LanguageModelsNotSupported"))
                        .map(one -> one.substring(0, one.indexOf(' '))))
                .containsExactly(
                        "GatewaysReady",
                        "HTTPRoutesReady",
                        "InferencePoolReady",
                        "PrefillWorkerWorkloadReady",
                        "Ready",
                        "RouterReady",
                        "SchedulerWorkloadReady",
                        "WorkerWorkloadReady",
                        "WorkloadsReady");
        assertThat(message(status, "WorkloadsReady")).startsWith("the decoding of the model u on several nodes");
        assertThat(message(status, "RouterReady")).startsWith("nothing is routed from the gateways");
    }

    @Test
    void configurationsAreCombinedThoseOfTheNamespaceFirst() {
        configs.put("home/shared", tree("{'spec':{'model':{'uri':'hf://a/home'}}}"));
        configs.put("team/shared", tree("{'spec':{'model':{'uri':'hf://a/team'},'router':{'route':{}}}}"));
        configs.put("home/kserve-config-llm-template", tree("{'spec':{'tracing':{}}}"));
        configs.put("home/kserve-config-llm-router-route", tree("{'spec':{}}"));
        configs.put("home/kserve-config-llm-scheduler", tree("{'spec':{}}"));
        ObjectNode status = status(service("{'baseRefs':[{'name':'shared'}]}"));
        assertThat(status.path("appliedConfigs").toString().replace('"', '\''))
                .isEqualTo("[{'name':'kserve-config-llm-router-route','namespace':'home','source':'Preset'},"
                        + "{'name':'kserve-config-llm-template','namespace':'home','source':'Preset'},"
                        + "{'name':'shared','namespace':'team','source':'UserRef'}]");
        assertThat(message(status, "Ready")).startsWith("the model hf://a/team is not served");
        assertThat(conditions(status)).contains("HTTPRoutesReady False LanguageModelsNotSupported");
    }

    @Test
    void theServiceWinsOverItsConfigurations() {
        configs.put("home/shared", tree("{'spec':{'model':{'uri':'hf://a/home'}}}"));
        ObjectNode status = status(service("{'model':{'uri':'hf://a/own'},'baseRefs':[{'name':'shared'}]}"));
        assertThat(message(status, "Ready")).startsWith("the model hf://a/own is not served");
    }

    @Test
    void aMissingConfigurationIsNamed() {
        ObjectNode status = status(service("{'model':{'uri':'u'},'baseRefs':[{'name':'gone'}]}"));
        assertThat(conditions(status)).contains("PresetsCombined False ConfigNotFound", "Ready False ConfigNotFound");
        assertThat(message(status, "Ready"))
                .isEqualTo(
                        "there is no LLMInferenceServiceConfig \"gone\" in the namespaces team and home; create it, or"
                                + " remove it from spec.baseRefs");
    }

    @Test
    void aStoppedServiceSaysSo() {
        ObjectNode service = service("{'model':{'uri':'u'}}");
        service.withObjectProperty("metadata").putObject("annotations").put("serving.kserve.io/stop", "true");
        ObjectNode status = status(service);
        assertThat(conditions(status)).contains("Ready False Stopped");
        assertThat(message(status, "Ready"))
                .startsWith("the service is stopped by the annotation serving.kserve.io/stop, and would not start: ");
    }

    @Test
    void theSameInputGivesTheSameStatus() {
        ObjectNode service = service("{'model':{'uri':'u'}}");
        ObjectNode first = status(service);
        service.set("status", first);
        ObjectNode later = LanguageModelStatus.service(
                service, "home", (namespace, name) -> null, Site.KUBERNETES, NOW.plusSeconds(60));
        assertThat(later).isEqualTo(first);
    }

    @Test
    void aConfigurationListsItsServices() {
        ObjectNode config = tree("{'metadata':{'name':'shared','namespace':'home'},'spec':{}}");
        configs.put("home/shared", config);
        ObjectNode service = service("{'model':{'uri':'u'},'baseRefs':[{'name':'shared'}]}");
        ObjectNode unused = LanguageModelStatus.config(config, List.of(service), "home", NOW);
        assertThat(conditions(unused)).containsExactly("ConfigInUse False NotInUse", "Ready True");
        service.set("status", status(service));
        ObjectNode used = LanguageModelStatus.config(config, List.of(service), "home", NOW);
        assertThat(conditions(used)).containsExactly("ConfigInUse True InUse", "Ready True");
        assertThat(used.path("referencedBy").toString()).isEqualTo("[{\"name\":\"opt\",\"namespace\":\"team\"}]");
    }
}
