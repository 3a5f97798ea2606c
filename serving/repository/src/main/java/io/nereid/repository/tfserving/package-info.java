// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow Serving's configuration files in protobuf's text format: batching parameters, monitoring and TLS. */
@NullMarked
package io.nereid.repository.tfserving;

import org.jspecify.annotations.NullMarked;
