// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What the operator writes about revisions and routes for the gateways of a cluster, and how they read it. */
@NullMarked
package io.nereid.control.kubernetes.revision;

import org.jspecify.annotations.NullMarked;
