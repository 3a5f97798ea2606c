// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import java.util.List;

/**
 * How the outputs of one request are to be written. Immutable.
 *
 * @param listed whether the request lists its outputs
 * @param binaryNames of the listed ones, those wanted as bytes
 * @param binary whether outputs of a request that lists none are wanted as bytes
 * @param emptyFinalResponse whether a stream wants a message of its own at the end of the request
 */
record OutputForm(boolean listed, List<String> binaryNames, boolean binary, boolean emptyFinalResponse) {
    static final OutputForm JSON = new OutputForm(false, List.of(), false, false);
    static final OutputForm BINARY = new OutputForm(false, List.of(), true, false);

    boolean isBinary(String output) {
        return listed ? binaryNames.contains(output) : binary;
    }
}
