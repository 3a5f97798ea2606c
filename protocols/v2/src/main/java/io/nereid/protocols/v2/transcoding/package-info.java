// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Transcoding between V2 over REST and V2 over gRPC, for upstream servers that offer only one of them. */
@NullMarked
package io.nereid.protocols.v2.transcoding;

import org.jspecify.annotations.NullMarked;
