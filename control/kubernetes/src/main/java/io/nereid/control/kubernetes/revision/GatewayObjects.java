// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.revision;

import io.nereid.control.api.AccessAnnotation;

/**
 * Names in the objects by which the operator configures the gateways. The operator writes two kinds of Services,
 * and Kubernetes makes EndpointSlices of the second kind; the gateways watch all three. Stateless.
 *
 * <ul>
 *   <li>For each InferenceService and InferenceGraph a Service of its name, with the label {@link #ROUTE} and the
 *       annotation {@link #ROUTE}, a {@link io.nereid.control.core.Route} as JSON.
 *   <li>For each revision a headless Service {@link #privateService}, with the label {@link #REVISION_LABEL} and the
 *       annotation {@link #REVISION}, {@link RevisionSettings} as JSON. Its selector is the same label of the pods. Its
 *       ports are named {@link #HTTP_PORT} and {@link #GRPC_PORT}.
 * </ul>
 */
public final class GatewayObjects {
    /** The label of Services with a route, whose value is {@code true}, and the annotation with the route. */
    public static final String ROUTE = "nereid.io/route";

    /** The annotation with the settings of a revision. */
    public static final String REVISION = "nereid.io/revision";

    /**
     * The annotation of an InferenceService or InferenceGraph, and of its Service with the route, which says whether
     * callers need a token of the cluster.
     */
    public static final String ENABLE_AUTH = AccessAnnotation.NAME;

    /** The label with the name of a revision, of its pods, its Service and the EndpointSlices of that. */
    public static final String REVISION_LABEL = "serving.knative.dev/revision";

    /** The label with the name of the InferenceService. */
    public static final String SERVICE_LABEL = "serving.kserve.io/inferenceservice";

    /** The label of an EndpointSlice with the name of its Service, set by Kubernetes. */
    public static final String SLICE_SERVICE = "kubernetes.io/service-name";

    /** The name of the port for HTTP. */
    public static final String HTTP_PORT = "http";

    /** The name of the port for gRPC. */
    public static final String GRPC_PORT = "grpc";

    /** The name of the port of a gateway's Service at which it reports its load. */
    public static final String STATISTICS_PORT = "stats";

    /**
     * The annotation of an EndpointSlice that the operator writes: a text that is different for other pods. Gateways report
     * which one they follow, under the name of the slice after {@link #SLICE_PREFIX}.
     */
    public static final String TABLE = "nereid.io/placement-table";

    /** What comes before the name of an EndpointSlice where gateways report what they follow; no service has a slash. */
    public static final String SLICE_PREFIX = "endpointslices/";

    private GatewayObjects() {}

    /** The name of the headless Service of a revision. */
    public static String privateService(String revision) {
        return revision + "-private";
    }
}
