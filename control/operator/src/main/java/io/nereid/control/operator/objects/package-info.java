// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The objects that belong to services: what is there, and how it becomes what is planned. */
@NullMarked
package io.nereid.control.operator.objects;

import org.jspecify.annotations.NullMarked;
