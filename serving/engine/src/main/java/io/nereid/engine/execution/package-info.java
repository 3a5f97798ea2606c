// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Running a batch on a model instance: input gathering, padding, output splitting. */
@NullMarked
package io.nereid.engine.execution;

import org.jspecify.annotations.NullMarked;
