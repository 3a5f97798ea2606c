// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.json.FloatStyle;

/**
 * What an operator may choose about the protocol. Immutable.
 *
 * @param serverName what server metadata calls this server
 * @param serverVersion its version
 * @param maxTensorBytes the largest tensor, in bytes, that a request may give as JSON or as typed contents; a short text
 *     can stand for a large tensor, so this limit is apart from that on bodies
 * @param floatStyle how FP32, FP16 and BF16 values are printed in JSON
 * @param offloadBytes bytes of JSON or of typed contents beyond which work is handed to the codec pool
 */
public record V2Options(
        String serverName, String serverVersion, long maxTensorBytes, FloatStyle floatStyle, int offloadBytes) {
    /** The usual choices for a server that takes bodies of up to {@code maxBodyBytes}. */
    public static V2Options defaults(String serverVersion, long maxBodyBytes) {
        return new V2Options("nereid", serverVersion, Math.max(maxBodyBytes, 1 << 20), FloatStyle.WIDENED, 64 << 10);
    }
}
