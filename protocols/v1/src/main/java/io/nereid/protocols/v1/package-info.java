// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow Serving's REST API, of which KServe's V1 protocol is a subset. */
@NullMarked
package io.nereid.protocols.v1;

import org.jspecify.annotations.NullMarked;
