// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import java.util.function.Consumer;

/**
 * Options of the webhook. Immutable.
 *
 * @param port the port on all addresses
 * @param configuration the name of the ValidatingWebhookConfiguration, whose bundle of authorities the leader writes
 * @param conditions throws an exception for a condition of a graph's step that cannot be parsed
 */
public record WebhookOptions(int port, String configuration, Consumer<String> conditions) {
    /** The name of the Service through which the API server calls the webhook. */
    public static final String SERVICE = "nereid-webhook";
}
