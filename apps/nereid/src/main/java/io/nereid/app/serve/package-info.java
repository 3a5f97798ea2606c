// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The serve command: the flags of Nereid, Triton and TensorFlow Serving, and the server that they configure. */
@NullMarked
package io.nereid.app.serve;

import org.jspecify.annotations.NullMarked;
