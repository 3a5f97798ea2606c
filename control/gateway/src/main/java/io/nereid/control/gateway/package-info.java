// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The gateway (Knative's activator and ingress in one): finds the service of a request by host, path or port, splits
 * the traffic over its revisions, and holds requests while a revision has no replica.
 */
@NullMarked
package io.nereid.control.gateway;

import org.jspecify.annotations.NullMarked;
