// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The command of the Kubernetes operator. */
@NullMarked
package io.nereid.app.operator;

import org.jspecify.annotations.NullMarked;
