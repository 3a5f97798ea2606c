// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What REST and gRPC share: options, model lookup, metrics, and outputs of classification and regression. */
@NullMarked
package io.nereid.protocols.v1.common;

import org.jspecify.annotations.NullMarked;
