// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** HTTP client of the storage: clients per TLS trust, proxies, retries, redirects and error responses. */
@NullMarked
package io.nereid.storage.http;

import org.jspecify.annotations.NullMarked;
