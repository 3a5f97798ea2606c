// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.manifest;

import io.nereid.base.ServingException;
import io.nereid.base.Units;
import java.time.Duration;
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
 * @param upgradeBudget to how many services at a time a new version brings its pod templates; 0 for none
 * @param gateways the number of gateways, and how they serve
 * @param deploymentMode the mode of services that do not say theirs: {@code Standard} or {@code Knative}; empty for
 *     Knative, which is KServe's default, and for Standard without a gateway
 * @param ingressDomain the domain of the services' hosts
 * @param ingressClass the class of Ingresses; empty for the cluster's default
 * @param parts which parts are in
 */
public record ManifestOptions(
        String namespace,
        String image,
        List<String> watchNamespaces,
        int replicas,
        int upgradeBudget,
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
     * The gateways. Their number follows their CPU time between the bounds; with equal bounds there is no autoscaler.
     *
     * @param least 1 to 100
     * @param most at least the same
     * @param zone their zone
     * @param reviews which callers the API server reviews
     */
    public record Gateways(int least, int most, Zone zone, CallerReviews reviews) {
        /** Two to ten. */
        public static final Gateways DEFAULT = between(2, 10);

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

        /** A number of gateways that serve as they do without options. */
        public static Gateways between(int least, int most) {
            return new Gateways(least, most, Zone.NONE, CallerReviews.DEFAULT);
        }
    }

    /**
     * The zone of the gateways, whose pods they prefer. Immutable.
     *
     * @param name the same for all gateways; empty for none
     * @param fromPodLabel whether each one has that of its pod's label {@value #LABEL}, which Kubernetes sets from 1.35 on
     */
    public record Zone(String name, boolean fromPodLabel) {
        /** The label of nodes, and from Kubernetes 1.35 on of pods. */
        static final String LABEL = "topology.kubernetes.io/zone";

        private static final Pattern VALUE = Pattern.compile("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?");

        /** No zone: all pods alike. */
        public static final Zone NONE = new Zone("", false);

        /**
         * Checks the name.
         *
         * @throws ServingException INVALID_ARGUMENT with what was expected
         */
        public Zone {
            if (!VALUE.matcher(name).matches()) {
                throw ServingException.invalidArgument("the zone of the gateways is '" + name
                        + "' (expected: the value of the label " + LABEL + " of nodes, such as eu-1a)");
            }
            if (fromPodLabel && !name.isEmpty()) {
                throw ServingException.invalidArgument("the zone of the gateways is '" + name
                        + "' and that of each pod's label (expected: one of them)");
            }
        }
    }

    /**
     * Which services are called with tokens of the cluster, which the API server reviews. The reviews are resources of the
     * cluster. Immutable.
     *
     * @param mode {@code off}, {@code annotated} or {@code all}; empty for annotated, and for off in an installation for
     *     named namespaces, which has no rights on the cluster by itself
     * @param audiences the audiences of tokens, of which one is enough; empty for the API server's own
     * @param cache how long an answer is used, such as 30s; empty for the program's default
     */
    public record CallerReviews(String mode, List<String> audiences, String cache) {
        private static final List<String> MODES = List.of("", "off", "annotated", "all");
        private static final Pattern AUDIENCE = Pattern.compile("[!-+\\--~]{1,1024}");
        private static final Duration SHORTEST = Duration.ofSeconds(1);
        private static final Duration LONGEST = Duration.ofMinutes(10);

        /** The program's defaults. */
        public static final CallerReviews DEFAULT = new CallerReviews("", List.of(), "");

        /**
         * Checks the values.
         *
         * @throws ServingException INVALID_ARGUMENT with the value and what was expected
         */
        public CallerReviews {
            audiences = List.copyOf(audiences);
            if (!MODES.contains(mode)) {
                throw ServingException.invalidArgument(
                        "the mode of reviews of callers is '" + mode + "' (expected: off, annotated or all)");
            }
            for (String audience : audiences) {
                if (!AUDIENCE.matcher(audience).matches()) {
                    throw ServingException.invalidArgument("an audience of tokens is '" + audience
                            + "' (expected: a name such as https://models.example, without commas and spaces)");
                }
            }
            if (!cache.isEmpty()) {
                Duration time = Units.duration(cache);
                if (time.compareTo(SHORTEST) < 0 || time.compareTo(LONGEST) > 0) {
                    throw ServingException.invalidArgument(
                            "answers about callers are used for '" + cache + "' (expected: from 1s to 10m)");
                }
            }
        }
    }

    /** The installation that {@code nereid operator manifests --image IMAGE} prints. */
    public static ManifestOptions of(String image) {
        return new ManifestOptions(
                "nereid", image, List.of(), 2, 1, Gateways.DEFAULT, "", "example.com", "", DEFAULT_PARTS);
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
        if (upgradeBudget < 0) {
            throw ServingException.invalidArgument(
                    "the budget of upgrades is " + upgradeBudget + " (expected: a number of services, or 0 for none)");
        }
        if (!List.of("", "Standard", "Knative").contains(deploymentMode)) {
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

    /** Which services are called with tokens of the cluster: {@code off}, {@code annotated} or {@code all}. */
    String reviewMode() {
        String mode = gateways.reviews().mode();
        if (!mode.isEmpty()) {
            return mode;
        }
        return wholeCluster() ? "annotated" : "off";
    }

    /** The mode of services that do not say theirs. */
    String defaultMode() {
        if (!deploymentMode.isEmpty()) {
            return deploymentMode;
        }
        return has(Part.GATEWAY) ? "Knative" : "Standard";
    }

    /** The name of objects of the cluster, of which there is one for each installation. */
    String clusterName() {
        return namespace.equals("nereid") ? "nereid" : "nereid-" + namespace;
    }
}
