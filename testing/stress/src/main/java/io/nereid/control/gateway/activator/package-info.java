// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The activator of a revision (Knative's activator and queue-proxy): admits, holds and forwards its requests, copies
 * them to mirrors, and counts them.
 */
@NullMarked
package io.nereid.control.gateway.activator;

import org.jspecify.annotations.NullMarked;
