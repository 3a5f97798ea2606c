// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A process that serves the model of one InferenceService, such as the container of a pod. */
@NullMarked
package io.nereid.app.modelserver;

import org.jspecify.annotations.NullMarked;
