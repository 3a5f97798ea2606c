// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What reconciliation keeps: recorded events, stored revisions and the runtime catalogs of the namespaces. */
@NullMarked
package io.nereid.control.plane.reconcile;

import org.jspecify.annotations.NullMarked;
