// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.operator;

import io.nereid.app.text.DurationConverter;
import io.nereid.base.Units;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/**
 * The options by which a gateway reviews its callers. It names no type of the operator: commands are loaded without its
 * libraries.
 */
final class KubernetesAuthOptions {
    @Option(
            names = "--kubernetes-auth",
            paramLabel = "MODE",
            defaultValue = "annotated",
            description = "Which services are called with tokens of the cluster, which the API server reviews: off, "
                    + "annotated (those with security.opendatahub.io/enable-auth: \"true\"), or all (but those with "
                    + "\"false\") (default: ${DEFAULT-VALUE}).")
    private String mode = "annotated";

    @Option(
            names = "--kubernetes-audiences",
            paramLabel = "NAME",
            split = ",",
            description = "The audiences of tokens, of which one is enough (default: the API server's own).")
    private List<String> audiences = new ArrayList<>();

    @Option(
            converter = DurationConverter.class,
            names = "--kubernetes-auth-cache",
            paramLabel = "TIME",
            defaultValue = "30s",
            description = "How long an answer of the API server about a caller is used, refusals for at most 10 s "
                    + "(default: ${DEFAULT-VALUE}).")
    private String cache = "30s";

    String mode() {
        return mode;
    }

    List<String> audiences() {
        return audiences.stream().map(String::strip).toList();
    }

    Duration cache() {
        return Units.duration(cache);
    }
}
