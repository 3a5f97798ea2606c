// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.options;

/** How tensors travel with V2 over REST. */
public enum TensorEncoding {
    /**
     * Binary if the server's metadata lists the extension {@code binary_tensor_data}, else JSON. Requests with FP16 or BF16
     * are always binary, for JSON of these types is refused by most servers.
     */
    AUTO,
    /** As binary tensor data after the JSON. */
    BINARY,
    /** As numbers in the JSON. */
    JSON
}
