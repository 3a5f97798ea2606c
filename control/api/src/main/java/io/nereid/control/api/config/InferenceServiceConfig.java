// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.config;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Container;
import io.nereid.control.api.FieldReader;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ValidationErrors;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The settings of KServe's {@code inferenceservice-config} as typed values. They are submitted as one tree, {@code
 * {ingress: {ingressDomain: …}, namespaces: {team-a: {ingress: …}}}}, or as KServe's ConfigMap, whose values are
 * strings of JSON. Settings of a namespace override the global ones field by field. Immutable.
 *
 * <pre>{@code
 * InferenceServiceConfig config = InferenceServiceConfig.defaults().with(configMap);
 * String domain = config.forNamespace("team-a").ingress().ingressDomain();
 * }</pre>
 *
 * @param inferenceService default resources of containers, and labels and annotations that are not propagated
 * @param ingress hosts and paths of services
 * @param deploy deployment mode and rollout
 * @param logger defaults of request loggers
 * @param batcher defaults of request batchers
 * @param router the router of graphs
 * @param credentials where credentials are found
 * @param autoscaler stabilization windows
 * @param storageInitializer the download of models
 * @param metricsAggregator scraping of metrics
 * @param artExplainer the image of the ART explainer
 * @param autoMountServiceAccountToken whether containers see the token of their service account
 * @param gpuResourceTypes further resource names of GPUs
 * @param servingEngine the engine of services for which neither they nor their namespace choose one; null for any. An
 *     extension of Nereid
 * @param knativeServing whether Knative Serving runs the services of the Knative mode. An extension of Nereid
 * @param tree all settings as submitted, including sections without a record component
 */
public record InferenceServiceConfig(
        InferenceServices inferenceService,
        Ingress ingress,
        Deploy deploy,
        Logger logger,
        Batcher batcher,
        Router router,
        Credentials credentials,
        Autoscaler autoscaler,
        StorageInitializer storageInitializer,
        MetricsAggregator metricsAggregator,
        Explainer artExplainer,
        boolean autoMountServiceAccountToken,
        List<String> gpuResourceTypes,
        @Nullable ServingEngine servingEngine,
        KnativeServing knativeServing,
        ObjectNode tree) {

    /** The name of KServe's ConfigMap. */
    public static final String CONFIG_MAP = "inferenceservice-config";

    private static final String NAMESPACES = "namespaces";

    private static final ObjectMapper JSON = new ObjectMapper();

    /** KServe's defaults; the deployment mode is Knative. */
    public static InferenceServiceConfig defaults() {
        return of(new ObjectNode(JsonNodeFactory.instance));
    }

    /**
     * Reads settings: a tree of sections, or a ConfigMap. Unknown fields of a ConfigMap are ignored, because it may be
     * meant for another version of KServe; admission reports them as warnings.
     *
     * @throws ServingException INVALID_ARGUMENT with all invalid values, and with all unknown fields of a tree
     */
    public static InferenceServiceConfig read(ObjectNode settings) {
        return of(sections(settings, isConfigMap(settings) ? new ArrayList<>() : null));
    }

    /** The sections with all their keys, as an OpenAPI schema such as that of a CustomResourceDefinition. */
    public static ObjectNode schema() {
        return ConfigSchemas.openApi();
    }

    /** The unknown fields of a ConfigMap, a line each; unknown fields of a tree are rejected instead. */
    public static List<String> unknown(ObjectNode configMap) {
        List<String> unknown = new ArrayList<>();
        sections(configMap, unknown);
        return unknown;
    }

    /**
     * A copy of these settings that others override, field by field.
     *
     * @param settings as for {@link #read}
     * @throws ServingException as {@link #read}
     */
    public InferenceServiceConfig with(ObjectNode settings) {
        ObjectNode all = tree.deepCopy();
        merge(all, sections(settings, isConfigMap(settings) ? new ArrayList<>() : null));
        return of(all);
    }

    /** The effective settings of a namespace. */
    public InferenceServiceConfig forNamespace(String namespace) {
        JsonNode own = tree.path(NAMESPACES).get(namespace);
        return own instanceof ObjectNode settings ? with(settings) : this;
    }

    private static InferenceServiceConfig of(ObjectNode tree) {
        FieldReader all = FieldReader.of(tree);
        return new InferenceServiceConfig(
                InferenceServices.read(all.object("inferenceService")),
                Ingress.read(all.object("ingress")),
                Deploy.read(all.object("deploy")),
                Logger.read(all.object("logger")),
                Batcher.read(all.object("batcher")),
                new Router(all.object("router").object("headers").texts("propagate")),
                Credentials.read(all.object("credentials")),
                Autoscaler.read(all.object("autoscaler")),
                StorageInitializer.read(all.object("storageInitializer")),
                MetricsAggregator.read(all.object("metricsAggregator")),
                Explainer.read(all.object("explainers").object("art")),
                all.object("security").flag("autoMountServiceAccountToken", true),
                all.object("multiNode").texts("customGPUResourceTypeList"),
                servingEngine(all.object("nereid")),
                KnativeServing.read(all.object("nereid")),
                tree);
    }

    private static @Nullable ServingEngine servingEngine(FieldReader fields) {
        String value = fields.text("servingEngine", "");
        if (value.isEmpty()) {
            return null;
        }
        ServingEngine engine = ServingEngine.of(value);
        if (engine == null) {
            throw ServingException.invalidArgument(fields.at("servingEngine") + ": " + ServingEngine.unknown(value));
        }
        return engine;
    }

    private static boolean isConfigMap(ObjectNode settings) {
        return "ConfigMap".equals(settings.path("kind").textValue());
    }

    private static ObjectNode sections(ObjectNode settings, @Nullable List<String> unknown) {
        if (!isConfigMap(settings)) {
            ObjectNode all = settings.deepCopy();
            FieldReader.prune(all);
            ConfigSchemas.check(all, unknown);
            return all;
        }
        ObjectNode all = new ObjectNode(JsonNodeFactory.instance);
        List<String> problems = new ArrayList<>();
        for (Map.Entry<String, String> entry :
                FieldReader.of(settings).map("data").entrySet()) {
            if (entry.getKey().startsWith("_")) {
                continue; // KServe's ConfigMap documents itself in the entry _example
            }
            try {
                all.set(entry.getKey(), JSON.readTree(entry.getValue()));
            } catch (JsonProcessingException e) {
                String problem = e.getOriginalMessage();
                int details = problem.indexOf(" (start marker");
                problems.add("data." + entry.getKey() + ": not JSON: "
                        + (details < 0 ? problem : problem.substring(0, details)));
            }
        }
        if (!problems.isEmpty()) {
            throw ServingException.invalidArgument(String.join("\n", problems));
        }
        FieldReader.prune(all);
        ConfigSchemas.check(all, unknown);
        return all;
    }

    private static void merge(ObjectNode into, ObjectNode from) {
        for (Map.Entry<String, JsonNode> entry : from.properties()) {
            if (entry.getValue() instanceof ObjectNode other && into.get(entry.getKey()) instanceof ObjectNode there) {
                merge(there, other);
            } else {
                into.set(entry.getKey(), entry.getValue());
            }
        }
    }

    /**
     * Defaults of services.
     *
     * @param defaultResources resources of custom containers that do not specify any
     * @param annotationDisallowedList annotations that are not propagated to workloads
     * @param labelDisallowedList labels that are not propagated to workloads
     */
    public record InferenceServices(
            Container.Resources defaultResources,
            List<String> annotationDisallowedList,
            List<String> labelDisallowedList) {
        static InferenceServices read(FieldReader fields) {
            return new InferenceServices(
                    resources(fields.object("resource"), "1", "2Gi", "1", "2Gi"),
                    fields.texts("serviceAnnotationDisallowedList"),
                    fields.texts("serviceLabelDisallowedList"));
        }
    }

    /**
     * The hosts and paths under which clients reach services.
     *
     * @param domainTemplate template of host names
     * @param additionalDomainTemplates templates of further host names; an extension of Nereid
     * @param ingressDomain the domain of host names; a port in it becomes part of the URLs
     * @param additionalIngressDomains further domains
     * @param pathTemplate template of path prefixes; null for none
     * @param urlScheme {@code http} or {@code https}
     * @param disableIngressCreation whether services get URLs, but no ingress host or path
     * @param disableHttpRouteTimeout whether routes have no timeout
     */
    public record Ingress(
            String domainTemplate,
            List<String> additionalDomainTemplates,
            String ingressDomain,
            List<String> additionalIngressDomains,
            @Nullable String pathTemplate,
            String urlScheme,
            boolean disableIngressCreation,
            boolean disableHttpRouteTimeout) {
        /** KServe's default template of host names. */
        public static final String DOMAIN_TEMPLATE = "{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}";

        static Ingress read(FieldReader fields) {
            String pathTemplate = fields.text("pathTemplate", "");
            return new Ingress(
                    orElse(fields.text("domainTemplate"), DOMAIN_TEMPLATE),
                    fields.texts("additionalDomainTemplates"),
                    orElse(fields.text("ingressDomain"), "example.com"),
                    fields.texts("additionalIngressDomains"),
                    pathTemplate.isEmpty() ? null : pathTemplate,
                    orElse(fields.text("urlScheme"), "http"),
                    fields.flag("disableIngressCreation", false),
                    fields.flag("disableHTTPRouteTimeout", false));
        }
    }

    /**
     * The deployment of services.
     *
     * @param defaultDeploymentMode the mode of services without an annotation for it
     * @param defaultRollout {@code maxSurge} and {@code maxUnavailable}; empty for none
     */
    public record Deploy(DeploymentMode defaultDeploymentMode, Map<String, String> defaultRollout) {
        static Deploy read(FieldReader fields) {
            String mode = orElse(fields.text("defaultDeploymentMode"), "Knative");
            DeploymentMode known = DeploymentMode.of(mode);
            if (known == null) {
                throw ServingException.invalidArgument(fields.at("defaultDeploymentMode") + ": \"" + mode
                        + "\" is not a deployment mode; expected Knative or Standard");
            }
            return new Deploy(known, fields.object("deploymentRolloutStrategy").quantities("defaultRollout"));
        }
    }

    /** KServe's deployment modes. */
    public enum DeploymentMode {
        /** With revisions, traffic splitting and request-based scaling; formerly {@code Serverless}. */
        KNATIVE("Knative", "Serverless"),
        /** With a fixed number of replicas or a horizontal pod autoscaler; formerly {@code RawDeployment}. */
        STANDARD("Standard", "RawDeployment"),
        /** Many models in one process. */
        MODEL_MESH("ModelMesh", "ModelMesh");

        private final String text;
        private final String former;

        DeploymentMode(String text, String former) {
            this.text = text;
            this.former = former;
        }

        /** The name in resources. */
        public String text() {
            return text;
        }

        /** The mode of this name, old or new, or null. */
        public static @Nullable DeploymentMode of(String name) {
            for (DeploymentMode mode : values()) {
                if (mode.text.equals(name) || mode.former.equals(name)) {
                    return mode;
                }
            }
            return null;
        }
    }

    /** Who runs the services of the Knative mode of a cluster. */
    public enum KnativeServing {
        /** Nereid's operator and gateways, without Knative. */
        NONE,
        /** Knative Serving where the cluster has it, else as {@link #NONE}. */
        AUTO,
        /** Knative Serving; services that need it where it is missing say so. */
        INSTALLED;

        /** The name in settings. */
        public String text() {
            return name().toLowerCase(Locale.ROOT);
        }

        static KnativeServing read(FieldReader fields) {
            String value = fields.text("knative", "");
            for (KnativeServing one : values()) {
                if (one.text().equals(value)) {
                    return one;
                }
            }
            if (value.isEmpty()) {
                return NONE;
            }
            throw ServingException.invalidArgument(fields.at("knative") + ": \"" + ValidationErrors.clip(value)
                    + "\" is not one of none, auto, installed");
        }
    }

    /**
     * The default sink of request loggers, and the certificates to trust there.
     *
     * @param defaultUrl the sink of loggers without a URL
     * @param caBundle a ConfigMap in the service's namespace; null for Java's default certificate authorities
     * @param caCertFile the key of the ConfigMap whose value contains the certificates
     * @param tlsSkipVerify whether the certificate of the sink is not verified
     */
    public record Logger(String defaultUrl, @Nullable String caBundle, String caCertFile, boolean tlsSkipVerify) {
        static Logger read(FieldReader fields) {
            return new Logger(
                    orElse(fields.text("defaultUrl"), "http://default-broker"),
                    "".equals(fields.text("caBundle")) ? null : fields.text("caBundle"),
                    orElse(fields.text("caCertFile"), "service-ca.crt"),
                    fields.flag("tlsSkipVerify", false));
        }
    }

    /** The defaults of a service's request batcher. */
    public record Batcher(int maxBatchSize, int maxLatencyMillis) {
        static Batcher read(FieldReader fields) {
            return new Batcher(count(fields, "maxBatchSize", 32), count(fields, "maxLatency", 5000));
        }
    }

    /** The router of graphs, with regular expressions for the request headers that it propagates to the steps. */
    public record Router(List<String> headersToPropagate) {
        /** The patterns; what is not a regular expression is left out, as KServe's router leaves it out. */
        public List<HeaderPattern> patterns() {
            return headersToPropagate.stream()
                    .map(HeaderPattern::of)
                    .filter(Objects::nonNull)
                    .toList();
        }

        /** A sentence for each text in {@code headers.propagate} that is not a regular expression. */
        public List<String> warnings() {
            return headersToPropagate.stream()
                    .filter(one -> HeaderPattern.of(one) == null)
                    .map(one -> "router.headers.propagate has \"" + ValidationErrors.clip(one)
                            + "\", which is not a regular expression and has no effect; correct it in the ConfigMap "
                            + CONFIG_MAP)
                    .toList();
        }
    }

    /**
     * Where credentials are found.
     *
     * @param storageSpecSecretName the secret with the entries that {@code storage.key} refers to
     * @param storageSecretNameAnnotation the annotation that names another secret
     * @param gcsCredentialFileName the key of the Google Cloud credentials in a secret
     * @param s3 KServe's settings for S3 by name, such as {@code s3Endpoint}
     */
    public record Credentials(
            String storageSpecSecretName,
            String storageSecretNameAnnotation,
            String gcsCredentialFileName,
            Map<String, String> s3) {
        static Credentials read(FieldReader fields) {
            return new Credentials(
                    orElse(fields.text("storageSpecSecretName"), "storage-config"),
                    orElse(fields.text("storageSecretNameAnnotation"), "serving.kserve.io/storageSecretName"),
                    orElse(fields.object("gcs").text("gcsCredentialFileName"), "gcloud-application-credentials.json"),
                    fields.map("s3"));
        }
    }

    /** Stabilization windows: the seconds for which a scaling decision must hold before it is applied. */
    public record Autoscaler(int scaleUpStabilizationWindowSeconds, int scaleDownStabilizationWindowSeconds) {
        static Autoscaler read(FieldReader fields) {
            return new Autoscaler(
                    count(fields, "scaleUpStabilizationWindowSeconds", 0),
                    count(fields, "scaleDownStabilizationWindowSeconds", 300));
        }
    }

    /** The download of models. */
    public record StorageInitializer(
            Container.Resources resources, @Nullable String caBundleConfigMapName, boolean enableModelcar) {
        static StorageInitializer read(FieldReader fields) {
            String bundle = fields.text("caBundleConfigMapName", "");
            return new StorageInitializer(
                    InferenceServiceConfig.resources(fields, "1", "1Gi", "100m", "100Mi"),
                    bundle.isEmpty() ? null : bundle,
                    fields.flag("enableModelcar", true));
        }
    }

    /** Scraping of metrics. */
    public record MetricsAggregator(boolean enableMetricAggregation, boolean enablePrometheusScraping) {
        static MetricsAggregator read(FieldReader fields) {
            return new MetricsAggregator(
                    fields.tree().path("enableMetricAggregation").asBoolean(false),
                    fields.tree().path("enablePrometheusScraping").asBoolean(false));
        }
    }

    /** The image of an explainer. */
    public record Explainer(String image, String defaultImageVersion) {
        static Explainer read(FieldReader fields) {
            return new Explainer(
                    orElse(fields.text("image"), "kserve/art-explainer"),
                    orElse(fields.text("defaultImageVersion"), "latest"));
        }
    }

    private static Container.Resources resources(
            FieldReader fields, String cpuLimit, String memoryLimit, String cpuRequest, String memoryRequest) {
        Map<String, String> limits = new LinkedHashMap<>();
        Map<String, String> requests = new LinkedHashMap<>();
        quantity(fields, "cpuLimit", cpuLimit, "cpu", limits);
        quantity(fields, "memoryLimit", memoryLimit, "memory", limits);
        quantity(fields, "cpuRequest", cpuRequest, "cpu", requests);
        quantity(fields, "memoryRequest", memoryRequest, "memory", requests);
        return new Container.Resources(Collections.unmodifiableMap(limits), Collections.unmodifiableMap(requests));
    }

    /** Reads a default quantity; an empty text stands for none, as in KServe. */
    private static void quantity(
            FieldReader fields, String name, String orElse, String resource, Map<String, String> into) {
        String found = fields.scalar(name);
        if (found == null) {
            into.put(resource, orElse);
            return;
        }
        if (found.isEmpty()) {
            return;
        }
        try {
            Quantity.parse(found);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(fields.at(name) + ": " + e.describe());
        }
        into.put(resource, found);
    }

    private static String orElse(@Nullable String text, String otherwise) {
        return text == null || text.isEmpty() ? otherwise : text;
    }

    private static int count(FieldReader fields, String name, int orElse) {
        String text = fields.scalar(name);
        if (text == null || text.isEmpty()) {
            return orElse;
        }
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(
                    fields.at(name) + ": expected an integer, found \"" + ValidationErrors.clip(text) + "\"");
        }
    }
}
