// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.manifest;

import io.nereid.base.ServingException;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * What an installation consists of. Immutable.
 *
 * @param namespace the namespace of the operator
 * @param image the image of operator, gateway and storage initializer
 * @param watchNamespaces the namespaces whose resources are served; empty for all. With some there are Roles only, and
 *     no objects that belong to the cluster except definitions and namespace
 * @param replicas the number of operators, of which one is the leader
 * @param gateways the bounds of the number of gateways
 * @param deploymentMode the mode of services that do not say theirs: {@code Standard} or {@code Knative}
 * @param ingressDomain the domain of the services' hosts
 * @param ingressClass the class of Ingresses; empty for the cluster's default
 * @param parts which parts are in
 */
public record ManifestOptions(
        String namespace,
        String image,
        List<String> watchNamespaces,
        int replicas,
        Gateways gateways,
        String deploymentMode,
        String ingressDomain,
        String ingressClass,
        Set<Part> parts) {
    private static final Pattern DNS_LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");
    private static final Pattern IMAGE = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}");
    private static final Pattern DOMAIN = Pattern.compile("[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?");

    /** A part that an installation can go without. */
    public enum Part {
        /** The namespace itself. */
        NAMESPACE,
        /** The CustomResourceDefinitions. */
        DEFINITIONS,
        /** The validating webhook. */
        WEBHOOK,
        /** The ConfigMap {@code inferenceservice-config}. */
        CONFIG,
        /** The built-in runtimes and the storage container. */
        RUNTIMES,
        /** The NetworkPolicies. */
        NETWORK_POLICIES,
        /** The gateway. */
        GATEWAY,
        /** The PriorityClass; without it pods have the cluster's default priority. */
        PRIORITY_CLASS,
        /** PodMonitors, for clusters with the Prometheus operator. */
        POD_MONITORS
    }

    /** The parts of an installation that says nothing else: all but those that need something else in the cluster. */
    public static final Set<Part> DEFAULT_PARTS = Set.copyOf(EnumSet.complementOf(EnumSet.of(Part.POD_MONITORS)));

    /**
     * The number of gateways, which follows their CPU time between the bounds. With equal bounds there is no autoscaler.
     *
     * @param least 1 to 100
     * @param most at least the same
     */
    public record Gateways(int least, int most) {
        /** Two to ten. */
        public static final Gateways DEFAULT = new Gateways(2, 10);

        /**
         * Checks the bounds.
         *
         * @throws ServingException INVALID_ARGUMENT with the values and what was expected
         */
        public Gateways {
            if (least < 1 || most < least || most > 100) {
                throw ServingException.invalidArgument("the number of gateways is " + least + " to " + most
                        + " (expected: at least 1, at most 100, and the maximum not below the minimum)");
            }
        }
    }

    /** The installation that {@code nereid operator manifests --image IMAGE} prints. */
    public static ManifestOptions of(String image) {
        return new ManifestOptions(
                "nereid", image, List.of(), 2, Gateways.DEFAULT, "Standard", "example.com", "", DEFAULT_PARTS);
    }

    /**
     * Checks the values, since they become parts of names and of arguments.
     *
     * @throws ServingException INVALID_ARGUMENT with the value and what was expected
     */
    public ManifestOptions {
        label("namespace", namespace);
        watchNamespaces.forEach(one -> label("namespace to watch", one));
        watchNamespaces = List.copyOf(new TreeSet<>(watchNamespaces));
        parts = Set.copyOf(parts);
        if (!IMAGE.matcher(image).matches()) {
            throw ServingException.invalidArgument(
                    "the image is '" + image + "' (expected: a reference such as registry.example.com/nereid:1.0)");
        }
        if (replicas < 1 || replicas > 10) {
            throw ServingException.invalidArgument("the number of replicas is " + replicas + " (expected: 1 to 10)");
        }
        if (!deploymentMode.equals("Standard") && !deploymentMode.equals("Knative")) {
            throw ServingException.invalidArgument(
                    "the deployment mode is '" + deploymentMode + "' (expected: Standard or Knative)");
        }
        if (!DOMAIN.matcher(ingressDomain).matches()) {
            throw ServingException.invalidArgument(
                    "the domain is '" + ingressDomain + "' (expected: lower case letters, digits, '-' and '.')");
        }
        if (!ingressClass.isEmpty() && !DOMAIN.matcher(ingressClass).matches()) {
            throw ServingException.invalidArgument("the class of Ingresses is '" + ingressClass
                    + "' (expected: lower case letters, digits, '-' and '.')");
        }
    }

    private static void label(String what, String name) {
        if (!DNS_LABEL.matcher(name).matches()) {
            throw ServingException.invalidArgument("the " + what + " is '" + name
                    + "' (expected: lower case letters, digits and '-', up to 63 characters)");
        }
    }

    /** Whether there is a PriorityClass, which belongs to the cluster. */
    boolean hasPriorityClass() {
        return has(Part.PRIORITY_CLASS) && wholeCluster();
    }

    boolean has(Part part) {
        return parts.contains(part);
    }

    /** Whether all namespaces are served, so that the operator needs rights on the whole cluster. */
    boolean wholeCluster() {
        return watchNamespaces.isEmpty();
    }

    /** The name of objects of the cluster, of which there is one for each installation. */
    String clusterName() {
        return namespace.equals("nereid") ? "nereid" : "nereid-" + namespace;
    }
}
