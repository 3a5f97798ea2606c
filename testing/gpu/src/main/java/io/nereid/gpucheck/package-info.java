// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The check of a machine with a GPU: a backend for it, a server with this backend, and what it must show. */
@NullMarked
package io.nereid.gpucheck;

import org.jspecify.annotations.NullMarked;
