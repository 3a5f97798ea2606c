// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The GPUs of a server: the options about them, their start and their metrics. */
@NullMarked
package io.nereid.app.device;

import org.jspecify.annotations.NullMarked;
