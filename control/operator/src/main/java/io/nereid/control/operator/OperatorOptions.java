// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator;

import io.nereid.control.operator.upgrade.UpgradeOptions;
import io.nereid.control.operator.webhook.WebhookOptions;
import java.nio.file.Path;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Options of the operator. Immutable.
 *
 * @param namespace the operator's own namespace: of its lease, its secret, and the ConfigMap {@code
 *     inferenceservice-config} for all namespaces
 * @param watchNamespaces the namespaces whose services it carries out; empty for all
 * @param identity the name of this replica, different from those of the others; the pod's name
 * @param healthPort the port of probes and metrics; 0 for any free one
 * @param builtInResources the directory with the runtimes that the leader creates; null for none
 * @param webhook the validating webhook; null for none
 * @param upgrades how new pod templates reach services that run
 */
public record OperatorOptions(
        String namespace,
        Set<String> watchNamespaces,
        String identity,
        int healthPort,
        @Nullable Path builtInResources,
        @Nullable WebhookOptions webhook,
        UpgradeOptions upgrades) {
    /** Options with the default of upgrades, for a program without a version. */
    public OperatorOptions(
            String namespace,
            Set<String> watchNamespaces,
            String identity,
            int healthPort,
            @Nullable Path builtInResources,
            @Nullable WebhookOptions webhook) {
        this(
                namespace,
                watchNamespaces,
                identity,
                healthPort,
                builtInResources,
                webhook,
                new UpgradeOptions("", UpgradeOptions.DEFAULT_BUDGET));
    }

    public OperatorOptions {
        watchNamespaces = Set.copyOf(watchNamespaces);
    }
}
