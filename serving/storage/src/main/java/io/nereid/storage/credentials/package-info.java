// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Credentials of cloud providers: AWS keys and signatures, instance metadata, and cached tokens. */
@NullMarked
package io.nereid.storage.credentials;

import org.jspecify.annotations.NullMarked;
