// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.InputFile;
import io.nereid.fuzz.StoredZip;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The weights of a folder: a safetensors file, its header alone, a file of torch.save, or the pickle in one, which a mutation of the
 * zip itself would rarely reach. Confined to one thread.
 */
public final class CheckpointTarget implements FuzzTarget {
    /** What the bytes of an input are. */
    public enum Form {
        SAFETENSORS,
        HEADER,
        TORCH,
        PICKLE
    }

    private static final String HEADER_SEED =
            "{\"__metadata__\":{\"format\":\"pt\"},\"a.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";
    /** {@code OrderedDict(a=_rebuild_tensor_v2(storage, 0, (2,), (1,), False, OrderedDict()))}. */
    private static final String PICKLE_SEED =
            "\u0080\u0002ccollections\nOrderedDict\nq\u0000)Rq\u0001(X\u0001\u0000\u0000\u0000aq\u0002"
                    + "ctorch._utils\n_rebuild_tensor_v2\nq\u0003((X\u0007\u0000\u0000\u0000storageq\u0004ctorch\nFloatStorage\nq\u0005"
                    + "X\u0001\u0000\u0000\u00000q\u0006X\u0003\u0000\u0000\u0000cpuq\u0007K\u0002tq\u0008QK\u0000K\u0002\u0085K\u0001\u0085\u0089"
                    + "h\u0000)RtRu.";

    private final Form form;
    private final InputFile file;

    public CheckpointTarget(Form form) {
        this.form = form;
        this.file = new InputFile(form == Form.TORCH ? "pytorch_model.bin" : "model.safetensors");
    }

    @Override
    public void read(byte[] input) throws IOException {
        if (form == Form.PICKLE) {
            new StateDictionary(input).read();
            return;
        }
        file.with(form == Form.HEADER ? safetensors(input) : input);
        for (WeightTensor tensor : Checkpoint.open(file.folder()).all()) {
            if (tensor.offset() < 0 || tensor.bytes() < 0) {
                throw new IllegalStateException("a tensor outside its file: " + tensor);
            }
        }
    }

    private static byte[] safetensors(byte[] header) {
        return ByteBuffer.allocate(8 + header.length + 8)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(header.length)
                .put(header)
                .array();
    }

    @Override
    public List<byte[]> seeds() {
        byte[] header = HEADER_SEED.getBytes(StandardCharsets.UTF_8);
        return switch (form) {
            case HEADER -> List.of(header);
            case SAFETENSORS -> List.of(safetensors(header));
            case PICKLE -> List.of(PICKLE_SEED.getBytes(StandardCharsets.ISO_8859_1));
            case TORCH -> List.of(archive());
        };
    }

    private static byte[] archive() {
        try {
            return new StoredZip()
                    .with("m/data.pkl", PICKLE_SEED.getBytes(StandardCharsets.ISO_8859_1))
                    .with("m/data/0", new byte[8])
                    .bytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
