// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.InferenceService;
import io.nereid.control.api.InferenceService.AutoScaling;
import io.nereid.control.api.InferenceService.CanarySpec;
import io.nereid.control.api.InferenceService.ComponentExtensionSpec;
import io.nereid.control.api.InferenceService.Metric;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.config.InferenceServiceConfig.DeploymentMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The fields of a service that have no effect in a cluster, because KServe has none for them in that deployment mode or
 * because nothing in the cluster could carry them out. They are taken, since services with them exist, and named: by
 * admission as warnings, and by the status of the service. Stateless.
 */
public final class FieldsWithoutEffect {
    private static final String STANDARD = " has no effect in the deployment mode Standard";
    private static final String KNATIVE =
            "set the annotation " + InferenceServiceDefaulter.MODE_ANNOTATION + ": Knative";
    private static final List<String> ANNOTATIONS =
            List.of("serving.kserve.io/metrics", "serving.kserve.io/targetUtilizationPercentage");

    private final InferenceService service;
    private final boolean gatewayApi;
    private final boolean timeouts;
    private final List<String> lines = new ArrayList<>();

    private FieldsWithoutEffect(InferenceService service, InferenceServiceConfig config) {
        this.service = service;
        this.gatewayApi = config.tree().path("ingress").path("enableGatewayApi").asBoolean();
        this.timeouts = gatewayApi && !config.ingress().disableHttpRouteTimeout();
    }

    /**
     * A sentence for each such field.
     *
     * @param mode the deployment mode of the service
     * @param config the settings of its namespace
     */
    public static List<String> of(InferenceService service, DeploymentMode mode, InferenceServiceConfig config) {
        FieldsWithoutEffect fields = new FieldsWithoutEffect(service, config);
        fields.everywhere();
        if (mode == DeploymentMode.STANDARD) {
            fields.standard();
        }
        return List.copyOf(fields.lines);
    }

    private void everywhere() {
        common("spec.predictor", service.predictor().extension());
        for (CanarySpec canary : service.canary()) {
            common(path(canary), canary.predictor().extension());
        }
        if (service.transformer() != null) {
            common("spec.transformer", service.transformer().extension());
        }
        if (service.explainer() != null) {
            logger("spec.explainer", service.explainer().extension());
            if (service.explainer().extension().batcher() != null) {
                lines.add(
                        "spec.explainer.batcher has no effect, as in KServe: requests for explanations are not joined");
            }
        }
    }

    private void logger(String path, ComponentExtensionSpec spec) {
        add(
                spec.logger() != null
                        && spec.logger().storage() != null
                        && spec.logger().storage().schemaPath() != null,
                path + ".logger.storage.schemaPath has no effect: it is for ModelMesh");
    }

    private void common(String path, ComponentExtensionSpec spec) {
        logger(path, spec);
        if (spec.batcher() != null && spec.batcher().timeout() != null) {
            lines.add(path + ".batcher.timeout has no effect, as in KServe; set the component's timeout");
        }
    }

    /** The path of a canary's predictor, with the name as its index. */
    static String path(CanarySpec canary) {
        String name = canary.predictor().name();
        return "spec.canary[" + (name == null ? "" : name) + "].predictor";
    }

    private void standard() {
        for (String annotation : ANNOTATIONS) {
            if (service.metadata().annotations().containsKey(annotation)) {
                lines.add("the annotation " + annotation
                        + " has no effect, as in KServe; write scaleMetric and scaleTarget");
            }
        }
        predictor("spec.predictor", service.predictor().extension());
        timeout("spec.predictor", service.predictor().extension());
        for (CanarySpec canary : service.canary()) {
            ComponentExtensionSpec spec = canary.predictor().extension();
            predictor(path(canary), spec);
            if (spec.timeout() != null) {
                lines.add(path(canary) + ".timeout has no effect: the route has the timeout of spec.predictor");
            }
        }
        if (!service.canary().isEmpty() && !gatewayApi) {
            lines.add("spec.canary gets no requests through an Ingress, which cannot divide them; set"
                    + " ingress.enableGatewayApi of inferenceservice-config, or call the canary's own Service");
        }
        if (service.transformer() != null) {
            timeout("spec.transformer", service.transformer().extension());
            component("spec.transformer", service.transformer().extension());
        }
        if (service.explainer() != null) {
            timeout("spec.explainer", service.explainer().extension());
            component("spec.explainer", service.explainer().extension());
        }
    }

    private void predictor(String path, ComponentExtensionSpec spec) {
        if (spec.containerConcurrency() != null && spec.containerConcurrency() > 0) {
            lines.add(path + ".containerConcurrency" + STANDARD + ", as in KServe: the server's own limit holds; "
                    + KNATIVE);
        }
        component(path, spec);
    }

    private void timeout(String path, ComponentExtensionSpec spec) {
        if (spec.timeout() != null && !timeouts) {
            lines.add(path + ".timeout has no effect with an Ingress, or with ingress.disableHTTPRouteTimeout, as in"
                    + " KServe; set ingress.enableGatewayApi of inferenceservice-config, or " + KNATIVE);
        }
    }

    private void component(String path, ComponentExtensionSpec spec) {
        if (spec.canaryTrafficPercent() != null) {
            lines.add(path + ".canaryTrafficPercent" + STANDARD + ", as in KServe; write spec.canary, or " + KNATIVE);
        }
        Map<String, String> annotations = spec.annotations();
        String autoscaler = annotations.getOrDefault(
                ScalingValidator.CLASS_ANNOTATION,
                service.metadata().annotations().getOrDefault(ScalingValidator.CLASS_ANNOTATION, "hpa"));
        switch (autoscaler) {
            case "hpa" -> horizontal(path, spec);
            case "keda" -> keda(path, spec);
            default -> notScaled(path, spec, autoscaler);
        }
    }

    private void horizontal(String path, ComponentExtensionSpec spec) {
        if (spec.minReplicas() != null && spec.minReplicas() == 0) {
            lines.add(path + ".minReplicas: 0" + STANDARD
                    + ", which keeps one replica, as in KServe; to scale to zero, " + KNATIVE);
        }
        if (spec.autoScaling() != null) {
            String why = " has no effect beside autoScaling, which has the metrics";
            add(spec.scaleMetric() != null, path + ".scaleMetric" + why);
            add(spec.scaleTarget() != null, path + ".scaleTarget" + why);
            add(spec.scaleMetricType() != null, path + ".scaleMetricType" + why);
        } else if ("AverageValue".equals(spec.scaleMetricType())) {
            lines.add(path + ".scaleMetricType: AverageValue has no effect, as in KServe: scaleTarget is a percentage;"
                    + " write autoScaling.metrics with a target of the type AverageValue");
        }
    }

    private void keda(String path, ComponentExtensionSpec spec) {
        String why = " has no effect with the autoscaler class keda; write autoScaling.metrics";
        add(spec.scaleTarget() != null, path + ".scaleTarget" + why);
        add(spec.scaleMetricType() != null, path + ".scaleMetricType" + why);
        AutoScaling several = spec.autoScaling();
        if (several == null) {
            return;
        }
        for (int i = 0; i < several.metrics().size(); i++) {
            Metric metric = several.metrics().get(i);
            if (metric.type().equals("Resource") || metric.source() == null) {
                continue;
            }
            boolean external = metric.type().equals("External");
            String at = path + ".autoScaling.metrics[" + i + "]." + (external ? "external" : "podmetric");
            add(
                    metric.averageUtilization() != null || metric.averageValue() != null,
                    at + ".target: averageUtilization and averageValue have no effect, as in KServe: the threshold is"
                            + " target.value");
            add(
                    external
                            && metric.source().hasNonNull("namespace")
                            && !metric.source().path("backend").asText().equals("prometheus"),
                    at + ".metric.namespace has no effect: it is for the backend prometheus");
            add(
                    metric.source().hasNonNull("metricNames")
                            && !metric.source().path("backend").asText().equals("opentelemetry"),
                    at + ".metric.metricNames has no effect: it is for the backend opentelemetry");
        }
    }

    private void notScaled(String path, ComponentExtensionSpec spec, String autoscaler) {
        String why = " has no effect with the autoscaler class " + autoscaler + ", which makes no autoscaler";
        add(spec.maxReplicas() > 0, path + ".maxReplicas" + why);
        add(spec.scaleMetric() != null, path + ".scaleMetric" + why);
        add(spec.scaleTarget() != null, path + ".scaleTarget" + why);
        add(spec.scaleMetricType() != null, path + ".scaleMetricType" + why);
        add(spec.autoScaling() != null, path + ".autoScaling" + why);
        add(autoscaler.equals("external") && spec.minReplicas() != null, path + ".minReplicas" + why);
    }

    private void add(boolean found, String line) {
        if (found) {
            lines.add(line);
        }
    }
}
