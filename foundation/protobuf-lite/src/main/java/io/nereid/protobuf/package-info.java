// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The protobuf wire format: a hand-written reader and writer for the request path, without generated classes and
 * without copies.
 */
@NullMarked
package io.nereid.protobuf;

import org.jspecify.annotations.NullMarked;
