// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The local control plane: reconciles InferenceServices on this machine, without a cluster. It plans each service and
 * runs its revisions as models in the engine, components of the server process or child processes, with routes and
 * autoscaling.
 */
@NullMarked
package io.nereid.control.local;

import org.jspecify.annotations.NullMarked;
