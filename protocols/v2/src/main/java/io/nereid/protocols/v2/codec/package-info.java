// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Reading requests and writing responses of V2 in JSON and protobuf.
 */
@NullMarked
package io.nereid.protocols.v2.codec;

import org.jspecify.annotations.NullMarked;
