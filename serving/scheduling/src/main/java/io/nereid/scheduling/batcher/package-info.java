// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The schedulers of a model: direct, dynamic batcher and sequence batcher. */
@NullMarked
package io.nereid.scheduling.batcher;

import org.jspecify.annotations.NullMarked;
