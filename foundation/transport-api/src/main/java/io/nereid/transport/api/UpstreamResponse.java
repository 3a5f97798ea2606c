// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api;

import io.nereid.tensor.MemoryRegion;
import java.util.List;

/**
 * A complete response. The holder closes the body.
 *
 * @param status the HTTP status
 * @param headers in the order of arrival, names in lower case
 * @param body the body
 */
public record UpstreamResponse(int status, List<UpstreamClient.Header> headers, MemoryRegion body) {}
