// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import io.nereid.control.api.ResourceKind;
import java.util.List;
import java.util.Locale;

/** The kinds of Kubernetes and its extensions that the operator makes or watches. Stateless. */
public final class ClusterKinds {
    public static final ResourceKind SERVICE = kind("", "v1", "Service", "services");
    public static final ResourceKind POD = kind("", "v1", "Pod", "pods");
    public static final ResourceKind PERSISTENT_VOLUME_CLAIM =
            kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
    public static final ResourceKind DEPLOYMENT = kind("apps", "v1", "Deployment", "deployments");
    public static final ResourceKind DAEMON_SET = kind("apps", "v1", "DaemonSet", "daemonsets");
    public static final ResourceKind ENDPOINT_SLICE = kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
    public static final ResourceKind HORIZONTAL_POD_AUTOSCALER =
            kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
    public static final ResourceKind INGRESS = kind("networking.k8s.io", "v1", "Ingress", "ingresses");
    public static final ResourceKind HTTP_ROUTE = kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes");
    public static final ResourceKind SCALED_OBJECT = kind("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects");
    public static final ResourceKind KNATIVE_SERVICE = kind("serving.knative.dev", "v1", "Service", "services");
    public static final ResourceKind VIRTUAL_SERVICE =
            kind("networking.istio.io", "v1beta1", "VirtualService", "virtualservices");
    public static final ResourceKind OPEN_TELEMETRY_COLLECTOR =
            kind("opentelemetry.io", "v1beta1", "OpenTelemetryCollector", "opentelemetrycollectors");
    public static final ResourceKind VALIDATING_WEBHOOK_CONFIGURATION = ofCluster(
            "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
    public static final ResourceKind MUTATING_WEBHOOK_CONFIGURATION =
            ofCluster("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
    public static final ResourceKind NODE = ofCluster("", "Node", "nodes");
    public static final ResourceKind PERSISTENT_VOLUME = ofCluster("", "PersistentVolume", "persistentvolumes");

    private ClusterKinds() {}

    private static ResourceKind ofCluster(String group, String kind, String plural) {
        return new ResourceKind(group, "v1", kind, plural, kind.toLowerCase(Locale.ROOT), List.of(), false, List.of());
    }

    private static ResourceKind kind(String group, String version, String kind, String plural) {
        return new ResourceKind(
                group, version, kind, plural, kind.toLowerCase(Locale.ROOT), List.of(), true, List.of());
    }
}
