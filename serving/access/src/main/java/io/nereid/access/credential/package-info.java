// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Who a caller is, and the proofs of it: API keys and JSON Web Tokens. */
@NullMarked
package io.nereid.access.credential;

import org.jspecify.annotations.NullMarked;
