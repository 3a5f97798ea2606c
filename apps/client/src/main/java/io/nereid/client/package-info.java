// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/**
 * A client for servers of Open Inference V2 over REST and gRPC, and of V1: {@link io.nereid.client.NereidClient}. It works with
 * any server of these protocols.
 */
@NullMarked
package io.nereid.client;

import org.jspecify.annotations.NullMarked;
