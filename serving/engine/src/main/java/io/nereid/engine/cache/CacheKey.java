// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * The canonical bytes of a request: the load of the version, the requested outputs with their numbers of classes, the
 * parameters, and the inputs by name with type, shape and bytes. Requests with equal bytes have equal responses. The
 * bytes of the inputs are not copied, so a key is valid only as long as its request holds them. Immutable.
 */
final class CacheKey {
    private static final Comparator<Tensor> BY_NAME = Comparator.comparing(Tensor::name);

    /** The key without the bytes of the inputs. */
    private final byte[] head;

    private final Tensor[] inputs;
    private final long size;
    final long high;
    final long low;

    private CacheKey(byte[] head, Tensor[] inputs, Hash128 hash) {
        this.head = head;
        this.inputs = inputs;
        long bytes = head.length;
        Hash128.State state = hash.begin();
        state.add(ByteBuffer.wrap(head));
        for (Tensor t : inputs) {
            bytes += t.byteLength();
            state.add(t.buffer());
        }
        this.size = bytes;
        this.high = state.high();
        this.low = state.low();
    }

    /** The common prefix of all keys of one load of a version. */
    static byte[] prefix(String model, long version, String fingerprint) {
        ByteWriter out = new ByteWriter(64);
        out.putText(model);
        out.putLong(version);
        out.putText(fingerprint);
        return out.toArray();
    }

    /** The key of a validated request. */
    static CacheKey of(byte[] prefix, InferenceRequest request, Hash128 hash) {
        List<Tensor> given = request.inputs();
        Tensor[] inputs = given.toArray(new Tensor[0]);
        if (inputs.length > 1) {
            Arrays.sort(inputs, BY_NAME);
        }
        ByteWriter out = new ByteWriter(prefix.length + 32 + 64 * inputs.length);
        out.putBytes(prefix);
        out.putInt(request.outputs().size());
        for (RequestedOutput wanted : request.outputs()) {
            out.putText(wanted.name());
            out.putInt(wanted.classes());
        }
        out.putParameters(request.parameters());
        out.putInt(inputs.length);
        for (Tensor t : inputs) {
            Shape shape = t.shape();
            out.putText(t.name());
            out.putByte(t.dataType().ordinal());
            out.putInt(shape.rank());
            for (int i = 0; i < shape.rank(); i++) {
                out.putLong(shape.dim(i));
            }
            out.putInt(t.byteLength());
        }
        return new CacheKey(out.toArray(), inputs, hash);
    }

    /** The length of the key in bytes. */
    long size() {
        return size;
    }

    /** Copies the key to a new region, which the caller owns. */
    MemoryRegion copy() {
        MemoryRegion region = MemoryRegion.allocate((int) size);
        region.setBytes(0, head, 0, head.length);
        int at = head.length;
        for (Tensor t : inputs) {
            region.setBytes(at, t.region(), t.offset(), t.byteLength());
            at += t.byteLength();
        }
        return region;
    }

    /** Whether {@code region} contains exactly this key. */
    boolean matches(MemoryRegion region) {
        if (region.size() != size || region.buffer(0, head.length).mismatch(ByteBuffer.wrap(head)) >= 0) {
            return false;
        }
        int at = head.length;
        for (Tensor t : inputs) {
            if (region.buffer(at, t.byteLength()).mismatch(t.buffer()) >= 0) {
                return false;
            }
            at += t.byteLength();
        }
        return true;
    }

    /** A collision-resistant digest, by which alone an external store may identify the key. */
    byte[] digest() {
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            sha.update(head);
            for (Tensor t : inputs) {
                sha.update(t.buffer());
            }
            return sha.digest();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }
}
