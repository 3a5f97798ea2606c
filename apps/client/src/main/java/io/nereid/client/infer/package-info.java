// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** The values of calls: tensors, requests, results, metadata, and the exception of calls that fail. */
@NullMarked
package io.nereid.client.infer;

import org.jspecify.annotations.NullMarked;
