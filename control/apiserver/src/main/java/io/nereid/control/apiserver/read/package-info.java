// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Reading resources: get, list and watch, label and field selectors, tables. */
@NullMarked
package io.nereid.control.apiserver.read;

import org.jspecify.annotations.NullMarked;
