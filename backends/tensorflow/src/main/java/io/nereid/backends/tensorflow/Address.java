// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import org.bytedeco.javacpp.Pointer;

/** A place in memory, or a number that travels as one, as the binding wants it. It owns nothing. Confined to one thread. */
@SuppressWarnings("serial")
final class Address extends Pointer {
    Address(long address) {
        this.address = address;
    }

    /** This object, standing for another place. */
    Address at(long newAddress) {
        address = newAddress;
        return this;
    }
}
