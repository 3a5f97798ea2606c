// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The settings of KServe's {@code inferenceservice-config}, as values with types. They are written as one tree, {@code {ingress:
 * {ingressDomain: …}, namespaces: {team-a: {ingress: …}}}}, or as KServe's ConfigMap, whose values are JSON in strings. What a
 * namespace says goes before what is said for all, field by field. Immutable.
 *
 * @param inferenceService what containers get that say nothing, and what is not passed on
 * @param ingress how services are reached
 * @param deploy how services are deployed
 * @param logger where requests are logged to
 * @param batcher how requests are joined
 * @param router of graphs
 * @param credentials where credentials are found
 * @param autoscaler stabilization
 * @param storageInitializer for fetching models
 * @param metricsAggregator scraping
 * @param artExplainer the image of the ART explainer
 * @param autoMountServiceAccountToken whether containers see the token of their service account
 * @param gpuResourceTypes further names of GPUs
 * @param tree all settings as they are written, also sections that have no component here
 */
public record ServiceConfig(
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
        ObjectNode tree) {

    /** The name of KServe's ConfigMap. */
    public static final String CONFIG_MAP = "inferenceservice-config";

    private static final String NAMESPACES = "namespaces";

    private static final ObjectMapper JSON = new ObjectMapper();

    /** Everything as KServe has it when nothing is configured; services are in Knative's mode. */
    public static ServiceConfig defaults() {
        return of(new ObjectNode(JsonNodeFactory.instance));
    }

    /**
     * Reads settings: a tree of sections, or a ConfigMap.
     *
     * @throws ServingException INVALID_ARGUMENT with every wrong value, and every unknown field of a tree; those of a ConfigMap,
     *     which may be of another KServe, are passed over here, and told as warnings by {@link Admission}
     */
    public static ServiceConfig read(ObjectNode settings) {
        return of(sections(settings, isConfigMap(settings) ? new ArrayList<>() : null));
    }

    /** What a ConfigMap says that is not known here, a line each; unknown fields of trees are refused. */
    static List<String> unknown(ObjectNode configMap) {
        List<String> unknown = new ArrayList<>();
        sections(configMap, unknown);
        return unknown;
    }

    /**
     * These settings, with others before them.
     *
     * @param settings as for {@link #read}
     * @throws ServingException as {@link #read}
     */
    public ServiceConfig with(ObjectNode settings) {
        ObjectNode all = tree.deepCopy();
        merge(all, sections(settings, isConfigMap(settings) ? new ArrayList<>() : null));
        return of(all);
    }

    /** The settings of a namespace. */
    public ServiceConfig forNamespace(String namespace) {
        JsonNode own = tree.path(NAMESPACES).get(namespace);
        return own instanceof ObjectNode settings ? with(settings) : this;
    }

    private static ServiceConfig of(ObjectNode tree) {
        Fields all = Fields.of(tree);
        return new ServiceConfig(
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
                tree);
    }

    private static boolean isConfigMap(ObjectNode settings) {
        return "ConfigMap".equals(settings.path("kind").textValue());
    }

    private static ObjectNode sections(ObjectNode settings, @Nullable List<String> unknown) {
        if (!isConfigMap(settings)) {
            ObjectNode all = settings.deepCopy();
            ServiceDefaults.prune(all);
            ConfigSchemas.check(all, unknown);
            return all;
        }
        ObjectNode all = new ObjectNode(JsonNodeFactory.instance);
        List<String> problems = new ArrayList<>();
        for (Map.Entry<String, String> entry : Fields.of(settings).map("data").entrySet()) {
            if (entry.getKey().startsWith("_")) {
                continue; // KServe's ConfigMap explains itself under _example
            }
            try {
                all.set(entry.getKey(), JSON.readTree(entry.getValue()));
            } catch (JsonProcessingException e) {
                String problem = e.getOriginalMessage();
                int details = problem.indexOf(" (start marker");
                problems.add("data." + entry.getKey() + ": no JSON: "
                        + (details < 0 ? problem : problem.substring(0, details)));
            }
        }
        if (!problems.isEmpty()) {
            throw ServingException.invalidArgument(String.join("\n", problems));
        }
        ServiceDefaults.prune(all);
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
     * What services get.
     *
     * @param defaultResources for containers of one's own that say none
     * @param annotationDisallowedList annotations that are not passed on
     * @param labelDisallowedList labels that are not passed on
     */
    public record InferenceServices(
            Container.Resources defaultResources,
            List<String> annotationDisallowedList,
            List<String> labelDisallowedList) {
        static InferenceServices read(Fields fields) {
            return new InferenceServices(
                    resources(fields.object("resource"), "1", "2Gi", "1", "2Gi"),
                    fields.texts("serviceAnnotationDisallowedList"),
                    fields.texts("serviceLabelDisallowedList"));
        }
    }

    /**
     * How services are reached.
     *
     * @param domainTemplate of hosts
     * @param additionalDomainTemplates of further hosts, ours
     * @param ingressDomain the last part of hosts; with a port it is that of URLs
     * @param additionalIngressDomains further such parts
     * @param pathTemplate of path prefixes; null for none
     * @param urlScheme {@code http} or {@code https}
     * @param disableIngressCreation whether services have URLs only
     * @param disableHttpRouteTimeout whether routes have no time limit
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
        /** The template of hosts that KServe has. */
        public static final String DOMAIN_TEMPLATE = "{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}";

        static Ingress read(Fields fields) {
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
     * How services are deployed.
     *
     * @param defaultDeploymentMode of services that say none
     * @param defaultRollout {@code maxSurge} and {@code maxUnavailable}; empty for none
     */
    public record Deploy(DeploymentMode defaultDeploymentMode, Map<String, String> defaultRollout) {
        static Deploy read(Fields fields) {
            String mode = orElse(fields.text("defaultDeploymentMode"), "Knative");
            DeploymentMode known = DeploymentMode.of(mode);
            if (known == null) {
                throw ServingException.invalidArgument(fields.at("defaultDeploymentMode") + ": \"" + mode
                        + "\" is no deployment mode; expected Knative or Standard");
            }
            return new Deploy(known, fields.object("deploymentRolloutStrategy").quantities("defaultRollout"));
        }
    }

    /** KServe's ways to deploy a service. */
    public enum DeploymentMode {
        /** With revisions, shares of traffic and scaling by requests; formerly {@code Serverless}. */
        KNATIVE("Knative", "Serverless"),
        /** With a fixed or HPA-scaled number of replicas; formerly {@code RawDeployment}. */
        STANDARD("Standard", "RawDeployment"),
        /** Many models in a process. */
        MODEL_MESH("ModelMesh", "ModelMesh");

        private final String text;
        private final String former;

        DeploymentMode(String text, String former) {
            this.text = text;
            this.former = former;
        }

        /** As resources have it. */
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

    /**
     * Where requests are logged to that say no URL, and whom its https trusts.
     *
     * @param caBundle a ConfigMap in the service's namespace; null for the authorities that Java trusts
     * @param caCertFile the entry of it with certificates
     * @param tlsSkipVerify whether nothing is checked
     */
    public record Logger(String defaultUrl, @Nullable String caBundle, String caCertFile, boolean tlsSkipVerify) {
        static Logger read(Fields fields) {
            return new Logger(
                    orElse(fields.text("defaultUrl"), "http://default-broker"),
                    "".equals(fields.text("caBundle")) ? null : fields.text("caBundle"),
                    orElse(fields.text("caCertFile"), "service-ca.crt"),
                    fields.flag("tlsSkipVerify", false));
        }
    }

    /** How requests are joined when a service only says that they are. */
    public record Batcher(int maxBatchSize, int maxLatencyMillis) {
        static Batcher read(Fields fields) {
            return new Batcher(count(fields, "maxBatchSize", 32), count(fields, "maxLatency", 5000));
        }
    }

    /** The router of graphs; regular expressions of the headers that it passes on. */
    public record Router(List<String> headersToPropagate) {}

    /**
     * Where credentials are found.
     *
     * @param storageSpecSecretName the secret whose entries {@code storage.key} names
     * @param storageSecretNameAnnotation the annotation that names another one
     * @param gcsCredentialFileName a key of secrets
     * @param s3 KServe's settings for S3 by their names, such as {@code s3Endpoint}
     */
    public record Credentials(
            String storageSpecSecretName,
            String storageSecretNameAnnotation,
            String gcsCredentialFileName,
            Map<String, String> s3) {
        static Credentials read(Fields fields) {
            return new Credentials(
                    orElse(fields.text("storageSpecSecretName"), "storage-config"),
                    orElse(fields.text("storageSecretNameAnnotation"), "serving.kserve.io/storageSecretName"),
                    orElse(fields.object("gcs").text("gcsCredentialFileName"), "gcloud-application-credentials.json"),
                    fields.map("s3"));
        }
    }

    /** Seconds that a wish to scale must last. */
    public record Autoscaler(int scaleUpStabilizationWindowSeconds, int scaleDownStabilizationWindowSeconds) {
        static Autoscaler read(Fields fields) {
            return new Autoscaler(
                    count(fields, "scaleUpStabilizationWindowSeconds", 0),
                    count(fields, "scaleDownStabilizationWindowSeconds", 300));
        }
    }

    /** How models are fetched. */
    public record StorageInitializer(
            Container.Resources resources, @Nullable String caBundleConfigMapName, boolean enableModelcar) {
        static StorageInitializer read(Fields fields) {
            String bundle = fields.text("caBundleConfigMapName", "");
            return new StorageInitializer(
                    ServiceConfig.resources(fields, "1", "1Gi", "100m", "100Mi"),
                    bundle.isEmpty() ? null : bundle,
                    fields.flag("enableModelcar", true));
        }
    }

    /** Scraping. */
    public record MetricsAggregator(boolean enableMetricAggregation, boolean enablePrometheusScraping) {
        static MetricsAggregator read(Fields fields) {
            return new MetricsAggregator(
                    fields.tree().path("enableMetricAggregation").asBoolean(false),
                    fields.tree().path("enablePrometheusScraping").asBoolean(false));
        }
    }

    /** An explainer's image. */
    public record Explainer(String image, String defaultImageVersion) {
        static Explainer read(Fields fields) {
            return new Explainer(
                    orElse(fields.text("image"), "kserve/art-explainer"),
                    orElse(fields.text("defaultImageVersion"), "latest"));
        }
    }

    private static Container.Resources resources(
            Fields fields, String cpuLimit, String memoryLimit, String cpuRequest, String memoryRequest) {
        return new Container.Resources(
                Map.of(
                        "cpu", quantity(fields, "cpuLimit", cpuLimit),
                        "memory", quantity(fields, "memoryLimit", memoryLimit)),
                Map.of(
                        "cpu", quantity(fields, "cpuRequest", cpuRequest),
                        "memory", quantity(fields, "memoryRequest", memoryRequest)));
    }

    private static String quantity(Fields fields, String name, String orElse) {
        String found = fields.scalar(name);
        if (found == null || found.isEmpty()) {
            return orElse;
        }
        try {
            Quantity.parse(found);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(fields.at(name) + ": " + e.describe());
        }
        return found;
    }

    private static String orElse(@Nullable String text, String otherwise) {
        return text == null || text.isEmpty() ? otherwise : text;
    }

    private static int count(Fields fields, String name, int orElse) {
        String text = fields.scalar(name);
        if (text == null || text.isEmpty()) {
            return orElse;
        }
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw ServingException.invalidArgument(
                    fields.at(name) + ": expected an integer, found \"" + Schema.clip(text) + "\"");
        }
    }
}
