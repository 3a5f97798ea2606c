// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The interoperability tests of gRPC against the transport. */
@NullMarked
package io.nereid.interop;

import org.jspecify.annotations.NullMarked;
