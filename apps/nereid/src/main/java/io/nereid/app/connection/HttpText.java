// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.connection;

/**
 * A response with a text as its body. Immutable.
 *
 * @param status the HTTP status
 * @param body the body, read as UTF-8; may be empty
 */
public record HttpText(int status, String body) {}
