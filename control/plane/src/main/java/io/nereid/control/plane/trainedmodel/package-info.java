// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The loop that gives services with many models their TrainedModels. */
@NullMarked
package io.nereid.control.plane.trainedmodel;

import org.jspecify.annotations.NullMarked;
