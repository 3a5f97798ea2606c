// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import java.util.List;
import java.util.function.Consumer;

/**
 * Options of the webhook. Immutable.
 *
 * @param port the port on all addresses
 * @param configuration the name of the ValidatingWebhookConfiguration, and of the MutatingWebhookConfiguration for pods of
 *     KServe's templates, whose bundles of authorities the leader writes
 * @param conditions throws an exception for a condition of a graph's step that cannot be parsed
 * @param hosts names and addresses of the webhook beside those of its Service, for an API server that calls it by a URL
 */
public record WebhookOptions(int port, String configuration, Consumer<String> conditions, List<String> hosts) {
    /** The name of the Service through which the API server calls the webhook. */
    public static final String SERVICE = "nereid-webhook";

    public WebhookOptions {
        hosts = List.copyOf(hosts);
    }

    /** Options of a webhook that the API server calls by its Service. */
    public WebhookOptions(int port, String configuration, Consumer<String> conditions) {
        this(port, configuration, conditions, List.of());
    }
}
