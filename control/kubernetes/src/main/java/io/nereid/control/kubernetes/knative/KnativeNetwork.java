// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.knative;

import java.util.List;
import java.util.function.Supplier;

/**
 * What the cluster has of the network of Knative's Services. Immutable; the supplier is called while planning.
 *
 * @param virtualServices whether the cluster has Istio's VirtualServices
 * @param domains the domains of Knative's ConfigMap {@code config-domain}; called for services with further domains only
 */
public record KnativeNetwork(boolean virtualServices, Supplier<List<String>> domains) {}
