// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Services that serve many models: which of their TrainedModels they load, and the statuses of those. */
@NullMarked
package io.nereid.control.core.trainedmodel;

import org.jspecify.annotations.NullMarked;
