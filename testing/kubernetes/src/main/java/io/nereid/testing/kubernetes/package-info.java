// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A real Kubernetes control plane for tests, and nodes for its pods. */
@NullMarked
package io.nereid.testing.kubernetes;

import org.jspecify.annotations.NullMarked;
