// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The certificate of the webhook: made and renewed by the leader in a Secret, which all replicas read. */
@NullMarked
package io.nereid.control.operator.certificate;

import org.jspecify.annotations.NullMarked;
