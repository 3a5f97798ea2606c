// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import io.nereid.control.api.ObjectMeta;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ServingEngine;
import io.nereid.control.api.ValidationErrors;
import java.util.Map;
import java.util.regex.Pattern;

/** Validates the syntax of names, labels, annotations and finalizers by Kubernetes' rules. Stateless. */
final class ObjectMetaValidator {
    /** Names of services and graphs. Host names are derived from them, so they must be RFC 1035 labels. */
    private static final Pattern SERVICE_NAME = Pattern.compile("[a-z]([-a-z0-9]*[a-z0-9])?");

    private static final Pattern DNS_LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?");
    private static final Pattern DNS_SUBDOMAIN =
            Pattern.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
    private static final Pattern QUALIFIED = Pattern.compile("[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?");

    /**
     * Components append a suffix to the name, such as {@code name-predictor}, and a label of a host has at most 63
     * characters.
     */
    private static final int LONGEST_SERVICE = 63 - "-predictor".length();

    private static final int ANNOTATIONS_BYTES = 256 * 1024;

    private ObjectMetaValidator() {}

    static void check(ResourceKind kind, ObjectMeta meta, ValidationErrors problems) {
        String name = meta.name();
        if (name.isEmpty()) {
            problems.add("metadata.name", "missing; it must be given");
        } else if (kind.equals(ResourceKinds.INFERENCE_SERVICE) || kind.equals(ResourceKinds.INFERENCE_GRAPH)) {
            serviceName("metadata.name", name, problems);
            if (name.length() > LONGEST_SERVICE && SERVICE_NAME.matcher(name).matches()) {
                problems.add(
                        "metadata.name",
                        "\"" + ValidationErrors.clip(name) + "\" has " + name.length() + " characters; "
                                + LONGEST_SERVICE + " at most, because host names are derived from it");
            }
        } else if (kind.equals(ResourceKinds.NAMESPACE)) {
            dnsLabel("metadata.name", name, problems);
            engine(meta, problems);
        } else if (name.length() > 253 || !DNS_SUBDOMAIN.matcher(name).matches()) {
            problems.add(
                    "metadata.name",
                    "\"" + ValidationErrors.clip(name)
                            + "\" must consist of lower case letters, digits, '-' or '.', begin and"
                            + " end with a letter or digit, and have 253 characters at most");
        }
        if (kind.namespaced()) {
            dnsLabel("metadata.namespace", meta.namespace(), problems);
        }
        labels("metadata.labels", meta.labels(), problems);
        annotations("metadata.annotations", meta.annotations(), problems);
        for (String finalizer : meta.finalizers()) {
            qualified("metadata.finalizers", finalizer, problems);
        }
    }

    /** Validates the annotation that chooses the engine of models. */
    static void engine(ObjectMeta meta, ValidationErrors problems) {
        String value = meta.annotation(ServingEngine.ANNOTATION);
        if (value != null && ServingEngine.of(value) == null) {
            problems.add("metadata.annotations." + ServingEngine.ANNOTATION, ServingEngine.unknown(value));
        }
    }

    static void serviceName(String path, String name, ValidationErrors problems) {
        if (!SERVICE_NAME.matcher(name).matches()) {
            problems.add(
                    path,
                    "\"" + ValidationErrors.clip(name)
                            + "\" must consist of lower case letters, digits or '-', begin with a"
                            + " letter and end with a letter or digit");
        }
    }

    static void labels(String path, Map<String, String> labels, ValidationErrors problems) {
        labels.forEach((key, value) -> {
            qualified(path, key, problems);
            if (!value.isEmpty()
                    && (value.length() > 63 || !QUALIFIED.matcher(value).matches())) {
                problems.add(
                        path + "." + ValidationErrors.clip(key),
                        "\"" + ValidationErrors.clip(value)
                                + "\" must consist of letters, digits, '-', '_' or '.', begin and end"
                                + " with a letter or digit, and have 63 characters at most");
            }
        });
    }

    static void annotations(String path, Map<String, String> annotations, ValidationErrors problems) {
        long size = 0;
        for (Map.Entry<String, String> entry : annotations.entrySet()) {
            qualified(path, entry.getKey(), problems);
            size += (long) entry.getKey().length() + entry.getValue().length();
        }
        if (size > ANNOTATIONS_BYTES) {
            problems.add(path, size + " characters; all annotations together have " + ANNOTATIONS_BYTES + " at most");
        }
    }

    private static void dnsLabel(String path, String name, ValidationErrors problems) {
        if (name.length() > 63 || !DNS_LABEL.matcher(name).matches()) {
            problems.add(
                    path,
                    "\"" + ValidationErrors.clip(name)
                            + "\" must consist of lower case letters, digits or '-', begin and end with"
                            + " a letter or digit, and have 63 characters at most");
        }
    }

    private static void qualified(String path, String key, ValidationErrors problems) {
        int slash = key.indexOf('/');
        String prefix = slash < 0 ? null : key.substring(0, slash);
        String name = key.substring(slash + 1);
        boolean good = name.length() <= 63 && QUALIFIED.matcher(name).matches();
        if (prefix != null) {
            good &= prefix.length() <= 253 && DNS_SUBDOMAIN.matcher(prefix).matches();
        }
        if (!good) {
            problems.add(
                    path,
                    "the key \"" + ValidationErrors.clip(key)
                            + "\" must be a name of letters, digits, '-', '_' or '.', 63 at"
                            + " most, with an optional domain and '/' before it");
        }
    }
}
