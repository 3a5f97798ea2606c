// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.ServingException;

/**
 * Where the answers to one request go: any number of {@link #next}, the last of them with {@code last} true, or a
 * {@link #fail}; nothing after that. A last response without outputs carries no answer: it only says that the model, a
 * decoupled one, is done. Called on any thread, one call at a time; must not block.
 */
public interface ResponseSink {
    /** One response, which the sink now owns. */
    void next(InferenceResponse response, boolean last);

    /** The request came to nothing. */
    void fail(ServingException e);
}
