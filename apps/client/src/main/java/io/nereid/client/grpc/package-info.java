// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** V2 over gRPC: grpc-java's channel, with messages that are written and read without generated classes. */
@NullMarked
package io.nereid.client.grpc;

import org.jspecify.annotations.NullMarked;
