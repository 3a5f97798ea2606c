// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Services of the Knative mode: their revisions as Deployments, and how these are scaled by the gateways' load. */
@NullMarked
package io.nereid.control.operator.revision;

import org.jspecify.annotations.NullMarked;
