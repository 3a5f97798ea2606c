// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The handlers of the gRPC services: inference, management, health and reflection. */
@NullMarked
package io.nereid.protocols.v2.grpc;

import org.jspecify.annotations.NullMarked;
