// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Model directories of MLflow, handed over to the backend of the format inside. */
@NullMarked
package io.nereid.backends.mlflow;

import org.jspecify.annotations.NullMarked;
