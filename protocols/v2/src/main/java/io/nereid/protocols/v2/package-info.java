// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The Open Inference Protocol, version 2, over REST and gRPC, with the extensions that its clients use. */
@NullMarked
package io.nereid.protocols.v2;

import org.jspecify.annotations.NullMarked;
