// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.pod;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.LoggerSpec;
import io.nereid.control.kubernetes.cluster.ClusterSettings;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Puts KServe's agent beside servers of KServe's images: it logs and batches requests, and gives servers with many
 * models their models. Confined to one planning.
 */
final class AgentInjection {
    private static final String NAME = "agent";
    private static final String BUNDLE = "agent-ca-bundle";
    private static final String MODEL_DIR = "model-dir";
    private static final String MODEL_CONFIG = "model-config";

    private final InferenceService service;
    private final ClusterSettings settings;
    private final StorageCredentials credentials;

    AgentInjection(InferenceService service, ClusterSettings settings, StorageCredentials credentials) {
        this.service = service;
        this.settings = settings;
        this.credentials = credentials;
    }

    void into(ObjectNode template, Map<String, String> annotations) {
        ObjectNode pod = Trees.object(template, "spec");
        boolean logger = annotations.containsKey(PodNames.LOGGER);
        boolean puller = annotations.containsKey(PodNames.AGENT);
        boolean batcher = annotations.containsKey(PodNames.BATCHER);
        if (!(logger || puller || batcher) || Trees.named(pod.path("containers"), NAME) != null) {
            return;
        }
        List<String> args = new ArrayList<>();
        if (puller) {
            args.add("--enable-puller");
            add(args, "--config-dir", annotations.get(PodNames.AGENT_CONFIG_PATH));
            add(args, "--model-dir", annotations.get(PodNames.AGENT_MODEL_DIR));
        }
        if (batcher) {
            args.add("--enable-batcher");
            add(args, "--max-batchsize", annotations.get(PodNames.BATCHER_SIZE));
            add(args, "--max-latency", annotations.get(PodNames.BATCHER_LATENCY));
        }
        if (logger) {
            loggerArguments(template, annotations, args);
        }
        ObjectNode server = Trees.named(pod.path("containers"), PodNames.TRANSFORMER);
        JsonNode first = pod.path("containers").path(0);
        JsonNode ports = server == null ? Trees.named(pod.path("containers"), PodNames.MAIN) : server;
        add(
                args,
                "--component-port",
                ports == null
                        ? "8080"
                        : ports.path("ports").path(0).path("containerPort").asText("8080"));
        ObjectNode agent = Trees.object().put("name", NAME);
        agent.put("image", settings.section("agent").path("image").asText());
        Trees.texts(agent, "args", args);
        agent.set("resources", settings.resources("agent"));
        Trees.list(agent, "ports")
                .addObject()
                .put("name", "agent-port")
                .put("containerPort", PodNames.AGENT_PORT)
                .put("protocol", "TCP");
        if (first.path("securityContext").isObject()) {
            agent.set("securityContext", first.path("securityContext").deepCopy());
        }
        ObjectNode queue = Trees.named(pod.path("containers"), PodNames.QUEUE);
        if (queue == null) {
            probe(agent, (server == null ? first : server).path("readinessProbe"));
        } else {
            behind(queue, agent);
        }
        if (logger) {
            bundle(agent, pod);
        }
        credentials.ofAccount(StorageCredentials.account(pod), annotations, agent, pod);
        JsonNode store = store(ownLogger(
                template.path("metadata").path("labels").path("component").asText("")));
        if (logger && store.isObject()) {
            credentials.ofAccount(orElse(store.path("serviceAccountName"), "logger-sa"), annotations, agent, pod);
        }
        Trees.list(pod, "containers").add(agent);
        if (puller) {
            models(pod, agent, annotations.getOrDefault(PodNames.AGENT_CONFIG_MAP, ""));
        }
    }

    private void loggerArguments(ObjectNode template, Map<String, String> annotations, List<String> args) {
        JsonNode labels = template.path("metadata").path("labels");
        String url = annotations.get(PodNames.LOGGER_URL);
        add(
                args,
                "--log-url",
                url == null ? settings.section("logger").path("defaultUrl").asText() : url);
        add(args, "--source-uri", "");
        add(args, "--log-mode", annotations.getOrDefault(PodNames.LOGGER_MODE, "all"));
        add(args, "--inference-service", labels.path(PodNames.SERVICE_LABEL).asText(""));
        add(args, "--namespace", service.metadata().namespace());
        add(args, "--endpoint", labels.path("endpoint").asText(""));
        add(args, "--component", labels.path("component").asText(""));
        LoggerSpec own = ownLogger(labels.path("component").asText(""));
        JsonNode store = store(own);
        addText(args, "--log-store-path", store.path("path"));
        addText(args, "--log-store-format", store.path("parameters").path("format"));
        JsonNode section = settings.section("logger");
        addText(args, "--log-marshaller-url", setting(own, "marshallerUrl", section));
        JsonNode size = setting(own, "batchSize", section);
        if (size.asInt() > 0) {
            add(args, "--log-batch-size", size.asText());
        }
        addText(args, "--log-batch-interval", setting(own, "batchInterval", section));
        add(args, "--metadata-headers", annotations.get(PodNames.LOGGER_HEADERS));
        String names = annotations.get(PodNames.LOGGER_ANNOTATIONS);
        if (names != null) {
            List<String> pairs = new ArrayList<>();
            for (String name : names.split(",", -1)) {
                if (annotations.containsKey(name)) {
                    pairs.add(name + "=" + annotations.get(name));
                }
            }
            add(args, "--metadata-annotations", String.join(",", pairs));
        }
        addText(args, "--logger-ca-cert-file", section.path("caCertFile"));
        add(
                args,
                "--logger-tls-skip-verify",
                Boolean.toString(section.path("tlsSkipVerify").asBoolean()));
    }

    private JsonNode setting(@Nullable LoggerSpec own, String field, JsonNode section) {
        LoggerSpec predictor = service.predictor().extension().logger();
        if (own != null && own.tree().hasNonNull(field)) {
            return own.tree().path(field);
        }
        return predictor != null && predictor.tree().hasNonNull(field)
                ? predictor.tree().path(field)
                : section.path(field);
    }

    private @Nullable LoggerSpec ownLogger(String component) {
        return switch (component) {
            case "transformer" ->
                service.transformer() == null
                        ? null
                        : service.transformer().extension().logger();
            case "explainer" ->
                service.explainer() == null
                        ? null
                        : service.explainer().extension().logger();
            default -> service.predictor().extension().logger();
        };
    }

    /** Where the logger stores files: by the component's own logger, else the predictor's, else by the settings. */
    private JsonNode store(@Nullable LoggerSpec own) {
        if (own != null && own.tree().hasNonNull("storage")) {
            return own.tree().path("storage");
        }
        LoggerSpec predictor = service.predictor().extension().logger();
        return predictor != null
                ? predictor.tree().path("storage")
                : settings.section("logger").path("storage");
    }

    private static void probe(ObjectNode agent, JsonNode probe) {
        String path = "/";
        if (probe.has("httpGet") || probe.has("tcpSocket")) {
            Trees.env(agent, "SERVING_READINESS_PROBE", ProbeText.of(probe));
            path = orElse(probe.path("httpGet").path("path"), path);
        }
        ObjectNode get = agent.putObject("readinessProbe").putObject("httpGet");
        get.put("path", path).put("port", PodNames.AGENT_PORT).put("scheme", "HTTP");
        get.putArray("httpHeaders").addObject().put("name", "K-Network-Probe").put("value", "queue");
    }

    /** Puts the agent between Knative's queue and the server; it is probed as the queue is. */
    private static void behind(ObjectNode queue, ObjectNode agent) {
        for (JsonNode variable : queue.path("env")) {
            Trees.list(agent, "env").add(variable.deepCopy());
            if (variable.path("name").asText().equals("USER_PORT")) {
                ((ObjectNode) variable).put("value", Integer.toString(PodNames.AGENT_PORT));
            }
        }
        probe(agent, Trees.object());
    }

    private void bundle(ObjectNode agent, ObjectNode pod) {
        String map = settings.section("logger").path("caBundle").asText("");
        if (map.isEmpty()) {
            return;
        }
        ObjectNode volume = Trees.object().put("name", BUNDLE);
        volume.putObject("configMap").put("name", map).put("optional", true);
        Trees.addNamed(pod, "volumes", volume);
        mount(agent, BUNDLE, "/etc/tls/logger").put("readOnly", true);
    }

    private static void models(ObjectNode pod, ObjectNode agent, String configMap) {
        ObjectNode models = Trees.object().put("name", MODEL_DIR);
        models.putObject("emptyDir");
        Trees.addNamed(pod, "volumes", models);
        ObjectNode config = Trees.object().put("name", MODEL_CONFIG);
        config.putObject("configMap").put("name", configMap);
        Trees.addNamed(pod, "volumes", config);
        mount(agent, MODEL_DIR, PodNames.MODELS);
        mount(agent, MODEL_CONFIG, PodNames.MODEL_CONFIG);
        ObjectNode main = Trees.named(pod.path("containers"), PodNames.MAIN);
        if (main != null) {
            mount(main, MODEL_DIR, PodNames.MODELS);
        }
    }

    private static ObjectNode mount(ObjectNode container, String volume, String path) {
        return Trees.list(container, "volumeMounts")
                .addObject()
                .put("name", volume)
                .put("mountPath", path);
    }

    private static void add(List<String> args, String name, @Nullable String value) {
        if (value != null) {
            args.add(name);
            args.add(value);
        }
    }

    private static void addText(List<String> args, String name, JsonNode value) {
        if (!value.asText("").isEmpty()) {
            add(args, name, value.asText());
        }
    }

    private static String orElse(JsonNode value, String orElse) {
        return value.asText("").isEmpty() ? orElse : value.asText();
    }
}
