// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Pods of components: their template, and what KServe's pod webhook adds to it. */
@NullMarked
package io.nereid.control.kubernetes.pod;

import org.jspecify.annotations.NullMarked;
