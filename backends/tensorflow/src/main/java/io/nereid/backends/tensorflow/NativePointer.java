// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import org.bytedeco.javacpp.Pointer;

/**
 * A native address (or a number that is passed as a pointer) in the form that JavaCPP's binding takes. It does not own
 * the memory and never frees it. Confined to one thread.
 */
@SuppressWarnings("serial")
final class NativePointer extends Pointer {
    NativePointer(long address) {
        this.address = address;
    }

    /** Moves this pointer to another address and returns it, so that loops need only one object. */
    NativePointer at(long newAddress) {
        address = newAddress;
        return this;
    }
}
