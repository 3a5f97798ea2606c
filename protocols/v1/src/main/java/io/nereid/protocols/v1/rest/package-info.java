// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow Serving's REST API, with KServe's V1 paths and CloudEvents. */
@NullMarked
package io.nereid.protocols.v1.rest;

import org.jspecify.annotations.NullMarked;
