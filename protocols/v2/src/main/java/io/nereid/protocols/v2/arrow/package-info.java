// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Inference requests and responses of V2's REST route as Apache Arrow IPC streams: a reader and a writer of the format,
 * and the mapping between columns and tensors.
 */
@NullMarked
package io.nereid.protocols.v2.arrow;

import org.jspecify.annotations.NullMarked;
