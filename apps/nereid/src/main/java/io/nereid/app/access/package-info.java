// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The commands for credentials: API keys, logins, kubeconfig. */
@NullMarked
package io.nereid.app.access;

import org.jspecify.annotations.NullMarked;
