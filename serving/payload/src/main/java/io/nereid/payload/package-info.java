// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The payload logger: sends requests and responses as CloudEvents to HTTP receivers, directories and object stores,
 * like KServe's inference logger.
 */
@NullMarked
package io.nereid.payload;

import org.jspecify.annotations.NullMarked;
