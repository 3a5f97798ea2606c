// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Workloads that run inside the server process: models in the engine, explainers, graphs and Java transformers. */
@NullMarked
package io.nereid.control.local.inprocess;

import org.jspecify.annotations.NullMarked;
