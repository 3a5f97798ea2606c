// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.rest;

import java.net.http.HttpHeaders;

/**
 * A response of status 200 to 299. Immutable.
 *
 * @param status the status
 * @param headers its headers
 * @param body the body
 */
record HttpAnswer(int status, HttpHeaders headers, byte[] body) {}
