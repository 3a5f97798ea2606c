// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Serves MLflow model directories by delegating to the backend of the model's flavor. */
@NullMarked
package io.nereid.backends.mlflow;

import org.jspecify.annotations.NullMarked;
