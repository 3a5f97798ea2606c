// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json.number;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Little-endian access to byte arrays through VarHandles, which compile to single machine instructions. Stateless. */
public final class LittleEndian {
    private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private LittleEndian() {}

    public static short getShort(byte[] b, int at) {
        return (short) SHORT.get(b, at);
    }

    public static int getInt(byte[] b, int at) {
        return (int) INT.get(b, at);
    }

    public static long getLong(byte[] b, int at) {
        return (long) LONG.get(b, at);
    }

    public static void putShort(byte[] b, int at, short v) {
        SHORT.set(b, at, v);
    }

    public static void putInt(byte[] b, int at, int v) {
        INT.set(b, at, v);
    }

    public static void putLong(byte[] b, int at, long v) {
        LONG.set(b, at, v);
    }
}
