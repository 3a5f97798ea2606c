// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/**
 * A native address in the form that JavaCPP's binding takes. It does not own the memory and never frees it. Confined to
 * the call that it is made for.
 */
final class NativePointer extends Pointer {
    NativePointer(long value) {
        super((Pointer) null);
        address = value;
    }

    /** A pointer to the bytes at this address. */
    BytePointer bytes() {
        return new BytePointer(this);
    }
}
