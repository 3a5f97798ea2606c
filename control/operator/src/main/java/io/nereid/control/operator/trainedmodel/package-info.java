// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TrainedModels in a cluster: the ConfigMaps from which servers of many models load them. */
@NullMarked
package io.nereid.control.operator.trainedmodel;

import org.jspecify.annotations.NullMarked;
