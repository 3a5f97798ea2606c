// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TensorFlow Serving's gRPC services: PredictionService and ModelService. */
@NullMarked
package io.nereid.protocols.v1.grpc;

import org.jspecify.annotations.NullMarked;
