// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Resources over HTTP after the conventions of Kubernetes. */
@NullMarked
package io.nereid.control.apiserver;

import org.jspecify.annotations.NullMarked;
