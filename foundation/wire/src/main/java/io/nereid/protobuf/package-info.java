// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Protocol buffers as bytes, read and written by hand where every request passes. */
@NullMarked
package io.nereid.protobuf;

import org.jspecify.annotations.NullMarked;
