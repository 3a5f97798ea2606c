// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The validating webhook: the admission of one machine, asked by the API server of a cluster. */
@NullMarked
package io.nereid.control.operator.webhook;

import org.jspecify.annotations.NullMarked;
