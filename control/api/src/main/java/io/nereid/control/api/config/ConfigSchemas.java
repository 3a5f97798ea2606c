// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.config;

import static io.nereid.control.api.schema.StructuralSchema.FLAG;
import static io.nereid.control.api.schema.StructuralSchema.INT;
import static io.nereid.control.api.schema.StructuralSchema.INT_OR_TEXT;
import static io.nereid.control.api.schema.StructuralSchema.TEXT;
import static io.nereid.control.api.schema.StructuralSchema.TEXTS;
import static io.nereid.control.api.schema.StructuralSchema.TEXT_LIST;
import static io.nereid.control.api.schema.StructuralSchema.map;
import static io.nereid.control.api.schema.StructuralSchema.object;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.api.schema.StructuralSchema;
import io.nereid.control.api.schema.StructuralSchema.Shape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The structural schemas of the sections of {@code inferenceservice-config}. Immutable. */
final class ConfigSchemas {
    private static final Shape RESOURCES =
            object().with(INT_OR_TEXT, "cpuLimit", "memoryLimit", "cpuRequest", "memoryRequest");

    private static final Shape IMAGE =
            RESOURCES.with(TEXT, "image", "imagePullPolicy").with(TEXT_LIST, "imagePullSecrets");

    private static final Shape STORAGE =
            object().with(TEXT, "path", "key", "serviceAccountName").with(TEXTS, "parameters");

    private static final Shape SECTIONS = object().with(
                    object().with(object().with(TEXT, "image", "defaultImageVersion"), "art"), "explainers")
            .with(
                    object().with(RESOURCES, "resource")
                            .with(TEXT_LIST, "serviceAnnotationDisallowedList", "serviceLabelDisallowedList"),
                    "inferenceService")
            .with(
                    IMAGE.with(
                                    TEXT,
                                    "caBundleConfigMapName",
                                    "caBundleVolumeMountPath",
                                    "cpuModelcar",
                                    "memoryModelcar",
                                    "ociModelMode")
                            .with(FLAG, "enableModelcar", "enableDirectPvcVolumeMount", "enableOciModelSupport")
                            .with(INT, "uidModelcar")
                            .with(new StructuralSchema.Either(FLAG, TEXT_LIST), "ociInsecureRegistry"),
                    "storageInitializer")
            .with(
                    object().with(TEXT, "storageSpecSecretName", "storageSecretNameAnnotation")
                            .with(object().with(TEXT, "gcsCredentialFileName"), "gcs")
                            .with(
                                    object().with(
                                                    TEXT,
                                                    "s3AccessKeyIDName",
                                                    "s3SecretAccessKeyName",
                                                    "s3Endpoint",
                                                    "s3UseHttps",
                                                    "s3Region",
                                                    "s3VerifySSL",
                                                    "s3UseVirtualBucket",
                                                    "s3UseAccelerate",
                                                    "s3UseAnonymousCredential",
                                                    "s3CABundleConfigMap",
                                                    "s3CABundle"),
                                    "s3"),
                    "credentials")
            .with(
                    object().with(
                                    TEXT,
                                    "kserveIngressGateway",
                                    "ingressGateway",
                                    "knativeLocalGatewayService",
                                    "localGateway",
                                    "localGatewayService",
                                    "ingressDomain",
                                    "ingressClassName",
                                    "domainTemplate",
                                    "pathTemplate",
                                    "urlScheme")
                            .with(TEXT_LIST, "additionalIngressDomains", "additionalDomainTemplates")
                            .with(
                                    FLAG,
                                    "enableGatewayApi",
                                    "disableIstioVirtualHost",
                                    "disableIngressCreation",
                                    "disableHTTPRouteTimeout"),
                    "ingress")
            .with(
                    IMAGE.with(TEXT, "defaultUrl", "caBundle", "caCertFile", "marshallerUrl", "batchInterval")
                            .with(INT_OR_TEXT, "batchSize")
                            .with(FLAG, "tlsSkipVerify")
                            .with(STORAGE, "storage"),
                    "logger")
            .with(IMAGE.with(INT_OR_TEXT, "maxBatchSize", "maxLatency"), "batcher")
            .with(IMAGE, "agent")
            .with(IMAGE.with(object().with(TEXT_LIST, "propagate"), "headers"), "router")
            .with(
                    object().with(TEXT, "defaultDeploymentMode")
                            .with(
                                    object().with(
                                                    object().with(INT_OR_TEXT, "maxSurge", "maxUnavailable"),
                                                    "defaultRollout"),
                                    "deploymentRolloutStrategy"),
                    "deploy")
            .with(
                    object().with(
                                    new StructuralSchema.Either(FLAG, TEXT),
                                    "enableMetricAggregation",
                                    "enablePrometheusScraping"),
                    "metricsAggregator")
            .with(
                    object().with(FLAG, "enabled", "disableVolumeManagement")
                            .with(TEXT, "jobNamespace", "defaultJobImage")
                            .with(INT, "fsGroup", "jobTTLSecondsAfterFinished", "reconcilationFrequencyInSecs"),
                    "localModel")
            .with(object().with(FLAG, "autoMountServiceAccountToken"), "security")
            .with(object().with(FLAG, "serviceClusterIPNone"), "service")
            .with(object().with(TEXT_LIST, "customGPUResourceTypeList"), "multiNode")
            .with(object().with(TEXT, "servingEngine", "image", "gpuImage", "knative"), "nereid")
            .with(
                    object().with(TEXT, "scrapeInterval", "metricReceiverEndpoint", "metricScalerEndpoint")
                            .with(RESOURCES, "resource", "resources"),
                    "opentelemetryCollector")
            .with(
                    object().with(
                                    INT_OR_TEXT,
                                    "scaleUpStabilizationWindowSeconds",
                                    "scaleDownStabilizationWindowSeconds"),
                    "autoscaler");

    private static final Shape ALL = SECTIONS.with(map(SECTIONS), "namespaces");

    private ConfigSchemas() {}

    /** The sections and their keys as an OpenAPI schema. */
    static ObjectNode openApi() {
        return SECTIONS.openApi();
    }

    /**
     * Checks settings against the schema.
     *
     * @param unknown receives a line for each unknown field; null to reject unknown fields as well
     * @throws ServingException INVALID_ARGUMENT for values of a wrong type
     */
    static void check(ObjectNode settings, @Nullable List<String> unknown) {
        ValidationErrors problems = new ValidationErrors();
        ALL.check(settings, "", problems);
        if (unknown != null && !problems.misshapen()) {
            unknown.addAll(problems.lines());
            return;
        }
        if (!problems.lines().isEmpty()) {
            throw ServingException.invalidArgument(String.join("\n", problems.lines()));
        }
    }
}
