// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What the controllers share: the work queue with retries, recorded events, stored revisions and the runtime catalogs
 * of the namespaces.
 */
@NullMarked
package io.nereid.control.local.reconcile;

import org.jspecify.annotations.NullMarked;
