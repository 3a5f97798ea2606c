// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/** A place in memory that is somebody else's. Confined to the call that it is made for. */
final class Address extends Pointer {
    Address(long value) {
        super((Pointer) null);
        address = value;
    }

    /** The bytes from there on. */
    BytePointer bytes() {
        return new BytePointer(this);
    }
}
