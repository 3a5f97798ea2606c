// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Turns plans into the objects of Kubernetes. Objects are Jackson trees, and nothing here speaks to a cluster. */
@NullMarked
package io.nereid.control.kubernetes;

import org.jspecify.annotations.NullMarked;
