// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.api.access;

import io.nereid.transport.api.VirtualHosts;
import java.util.function.BiConsumer;

/** The head of a request, as an {@link AccessPolicy} sees it. Valid only during the call. */
public interface RequestHead extends VirtualHosts.Head {
    /** Whether the request is a gRPC call, as the transport serves it; a content type alone does not make it one. */
    boolean grpc();

    /**
     * Whether the first value of a header is exactly this one. Allocates nothing, and takes as long for a wrong value of
     * the same length as for the right one, so that a client cannot find a secret by measuring.
     *
     * @param value a text of ASCII characters
     */
    boolean hasHeader(String lowerCaseName, String value);

    /** Passes every header to {@code each}, names in lower case, in the order of arrival. */
    void headers(BiConsumer<String, String> each);
}
