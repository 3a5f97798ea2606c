// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.languagemodel;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.admission.Site;
import io.nereid.control.core.languagemodel.LanguageModelConfigs.Applied;
import io.nereid.control.core.status.Conditions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * The statuses of LLMInferenceServices and LLMInferenceServiceConfigs, with the conditions of KServe. A service is
 * combined with its configurations and is never ready: its conditions name each part that would have to be built, and
 * what to do instead. Pure and stateless: the same input gives the same status.
 *
 * <pre>{@code
 * ObjectNode status = LanguageModelStatus.service(service, "kserve", configs::get, Site.ONE_MACHINE, now);
 * String why = status.at("/conditions/0/message").asText();
 * }</pre>
 */
public final class LanguageModelStatus {
    /** The reason of the conditions of what is not built in. */
    public static final String NOT_SUPPORTED = "LanguageModelsNotSupported";

    private static final String READY = "Ready";
    private static final String PRESETS = "PresetsCombined";
    private static final String WORKLOADS = "WorkloadsReady";
    private static final String ROUTER = "RouterReady";
    private static final String STOP = "serving.kserve.io/stop";

    private LanguageModelStatus() {}

    /**
     * The status of an LLMInferenceService.
     *
     * @param service the stored service with its last status; unchanged
     * @param home the namespace of the configurations for all namespaces
     * @param lookup returns the configuration with a namespace and a name; null if it does not exist
     * @param site where the control plane is, which decides about the way out
     */
    public static ObjectNode service(
            ObjectNode service,
            String home,
            BiFunction<String, String, @Nullable ObjectNode> lookup,
            Site site,
            Instant now) {
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        Conditions conditions = new Conditions(service.path("status"), now);
        LanguageModelConfigs configs = LanguageModelConfigs.of(service, home, lookup);
        if (configs.missing() != null) {
            conditions.set(
                    PRESETS,
                    Conditions.FALSE,
                    "ConfigNotFound",
                    "there is no LLMInferenceServiceConfig \"" + ValidationErrors.clip(configs.missing())
                            + "\" in the namespaces "
                            + service.path("metadata").path("namespace").asText() + " and " + home
                            + "; create it, or remove it from spec.baseRefs");
        } else {
            conditions.set(PRESETS, Conditions.TRUE, null, null);
        }
        boolean stopped = service.path("metadata")
                .path("annotations")
                .path(STOP)
                .asText("")
                .equals("true");
        String reason = stopped ? "Stopped" : NOT_SUPPORTED;
        String instead = site.languageModelsMissing() + "; " + site.languageModelsInstead();
        String before = stopped ? "the service is stopped by the annotation " + STOP + ", and would not start: " : "";
        List<String> workloads = new ArrayList<>();
        workloads(configs.spec())
                .forEach(part -> part.set(conditions, reason, before + part.text() + ": " + instead, workloads));
        conditions.all(WORKLOADS, workloads);
        List<String> router = new ArrayList<>();
        router(configs.spec().path("router"))
                .forEach(part -> part.set(conditions, reason, before + part.text() + ": " + instead, router));
        conditions.all(ROUTER, router);
        conditions.all(READY, List.of(PRESETS, WORKLOADS, ROUTER));
        status.set("conditions", conditions.tree());
        observed(service, status);
        if (!configs.applied().isEmpty()) {
            ArrayNode applied = status.putArray("appliedConfigs");
            for (Applied one : configs.applied()) {
                applied.addObject()
                        .put("name", one.name())
                        .put("namespace", one.namespace())
                        .put("source", one.preset() ? "Preset" : "UserRef");
            }
        }
        return status;
    }

    /** A part of a service that is not made, as the text of its condition. */
    private record Part(String condition, String text) {
        void set(Conditions conditions, String reason, String message, List<String> names) {
            conditions.set(condition, Conditions.FALSE, reason, message);
            names.add(condition);
        }
    }

    private static List<Part> workloads(JsonNode spec) {
        JsonNode model = spec.path("model");
        String uri = model.path("uri").asText("");
        String name = uri.isEmpty() ? "the model" : "the model " + ValidationErrors.clip(uri);
        List<Part> parts = new ArrayList<>();
        boolean split = spec.has("prefill");
        String task = split ? "the decoding of " + name : name;
        if (spec.has("worker")) {
            parts.add(new Part("WorkerWorkloadReady", task + " on several nodes is not served"));
        } else {
            parts.add(new Part("MainWorkloadReady", task + " is not served"));
        }
        if (split) {
            boolean workers = spec.path("prefill").has("worker");
            parts.add(new Part(
                    workers ? "PrefillWorkerWorkloadReady" : "PrefillWorkloadReady",
                    "the prefill of " + name + (workers ? " on several nodes" : "") + " is not served"));
        }
        return parts;
    }

    private static List<Part> router(JsonNode router) {
        List<Part> parts = new ArrayList<>();
        if (!router.path("gateway").path("refs").isEmpty()) {
            parts.add(new Part("GatewaysReady", "nothing is routed from the gateways of spec.router.gateway"));
        }
        if (router.has("route")) {
            parts.add(new Part("HTTPRoutesReady", "no HTTPRoute is made"));
        }
        if (router.has("scheduler")) {
            parts.add(new Part("InferencePoolReady", "no InferencePool is made"));
            parts.add(new Part("SchedulerWorkloadReady", "the scheduler of requests does not run"));
        }
        return parts;
    }

    /**
     * The status of an LLMInferenceServiceConfig.
     *
     * @param config the stored configuration with its last status; unchanged
     * @param services all LLMInferenceServices
     * @param home the namespace of the configurations for all namespaces
     */
    public static ObjectNode config(ObjectNode config, Collection<ObjectNode> services, String home, Instant now) {
        String namespace = config.path("metadata").path("namespace").asText();
        String name = config.path("metadata").path("name").asText();
        List<ObjectNode> users = services.stream()
                .filter(service -> uses(service, namespace, name, home))
                .toList();
        ObjectNode status = JsonNodeFactory.instance.objectNode();
        Conditions conditions = new Conditions(config.path("status"), now);
        conditions.set(
                "ConfigInUse",
                users.isEmpty() ? Conditions.FALSE : Conditions.TRUE,
                users.isEmpty() ? "NotInUse" : "InUse",
                users.isEmpty()
                        ? "no LLMInferenceService uses it"
                        : "LLMInferenceServices that use it: " + users.size());
        conditions.set(READY, Conditions.TRUE, null, null);
        status.set("conditions", conditions.tree());
        observed(config, status);
        if (!users.isEmpty()) {
            ArrayNode list = status.putArray("referencedBy");
            users.forEach(service -> list.addObject()
                    .put("name", service.path("metadata").path("name").asText())
                    .put("namespace", service.path("metadata").path("namespace").asText()));
        }
        return status;
    }

    /** Whether the service has the configuration among those that its status lists. */
    private static boolean uses(ObjectNode service, String namespace, String name, String home) {
        String of = service.path("metadata").path("namespace").asText();
        if (!namespace.equals(of) && !namespace.equals(home)) {
            return false;
        }
        for (JsonNode applied : service.path("status").path("appliedConfigs")) {
            if (applied.path("name").asText().equals(name)
                    && applied.path("namespace").asText().equals(namespace)) {
                return true;
            }
        }
        return false;
    }

    private static void observed(ObjectNode resource, ObjectNode status) {
        long generation = resource.path("metadata").path("generation").asLong();
        if (generation > 0) {
            status.put("observedGeneration", generation);
        }
    }
}
