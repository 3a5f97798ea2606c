// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Reads messages that are encoded with FlatBuffers and come from an untrusted sender. */
@NullMarked
package io.nereid.base.flatbuffers;

import org.jspecify.annotations.NullMarked;
