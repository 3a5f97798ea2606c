// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The scoring protocol of MLflow: {@code /invocations}. */
@NullMarked
package io.nereid.protocols.mlflow;

import org.jspecify.annotations.NullMarked;
