// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.base.flatbuffers.FlatBuffersTable;
import io.nereid.tensor.MemoryRegion;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Reads an Arrow IPC stream: a schema, then record batches. Nothing is copied, and every position and length is checked,
 * so that the table that results can be used without further checks, but for the offsets of texts. Confined to one thread;
 * used once.
 */
final class ArrowStreamReader {
    private static final int CONTINUATION = -1;
    private static final int SCHEMA = 1;
    private static final int DICTIONARY_BATCH = 2;
    private static final int RECORD_BATCH = 3;

    /** Metadata versions V4 and V5: those of Arrow since 0.8. */
    private static final int V4 = 3;

    private static final int V5 = 4;

    private final MemoryRegion body;
    private final List<List<ColumnChunk>> batches = new ArrayList<>();
    private @Nullable ArrowSchema schema;
    private long rows;
    private int at;

    private ArrowStreamReader(MemoryRegion body) {
        this.body = body;
    }

    /**
     * Reads the stream that a region holds.
     *
     * @throws ServingException INVALID_ARGUMENT when it is damaged, or has what tensors cannot hold
     */
    static ArrowTable read(MemoryRegion body) {
        try {
            return new ArrowStreamReader(body).read();
        } catch (IndexOutOfBoundsException | ArithmeticException e) {
            throw damaged("an offset leads out of it");
        }
    }

    private ArrowTable read() {
        checkStart();
        while (message()) {
            // reads the next one
        }
        if (at != body.size()) {
            throw damaged((body.size() - at) + " bytes follow its end");
        }
        ArrowSchema found = schema;
        if (found == null) {
            throw damaged("it has no schema");
        }
        List<ArrowColumn> columns = new ArrayList<>(found.fields().size());
        for (int i = 0; i < found.fields().size(); i++) {
            List<ColumnChunk> chunks = new ArrayList<>(batches.size());
            for (List<ColumnChunk> batch : batches) {
                chunks.add(batch.get(i));
            }
            columns.add(new ArrowColumn(found.fields().get(i), chunks));
        }
        return new ArrowTable(rows, columns, found.metadata());
    }

    private void checkStart() {
        if (body.size() == 0) {
            throw ServingException.invalidArgument(
                    "the body is empty (expected: an Arrow IPC stream)", "write it with pyarrow.ipc.new_stream");
        }
        byte[] start = new byte[Math.min(6, body.size())];
        body.getBytes(0, start, 0, start.length);
        if (new String(start, java.nio.charset.StandardCharsets.ISO_8859_1).equals("ARROW1")) {
            throw ServingException.invalidArgument(
                    "the body is an Arrow file (expected: an Arrow IPC stream)",
                    "write it with pyarrow.ipc.new_stream, or write_ipc_stream in polars");
        }
    }

    /** Reads the next message; false at the end of the stream. */
    private boolean message() {
        if (at == body.size()) {
            return false;
        }
        int length = nextInt();
        if (length == CONTINUATION) {
            length = nextInt();
        }
        if (length == 0) {
            return false;
        }
        if (length < 0 || length > body.size() - at) {
            throw damaged("the metadata at " + at + " has " + length + " bytes, of which " + (body.size() - at)
                    + " are there");
        }
        FlatBuffersTable message = FlatBuffersTable.root(body.buffer(at, length), ArrowStreamReader::damaged);
        int version = message.shortAt(0, 0);
        if (version != V4 && version != V5) {
            throw ServingException.invalidArgument(
                    "the Arrow stream has metadata version V" + (version + 1) + " (expected: V4 or V5)",
                    "write it with Arrow 1.0 or later");
        }
        at += length;
        long bytes = message.longAt(3, 0);
        if (bytes < 0 || bytes > body.size() - at) {
            throw damaged("a message's body has " + bytes + " bytes, of which " + (body.size() - at) + " are there");
        }
        FlatBuffersTable header = message.table(2);
        if (header == null) {
            throw damaged("a message has no header");
        }
        header(message.byteAt(1, 0), header, (int) bytes);
        at += (int) bytes;
        return true;
    }

    private void header(int kind, FlatBuffersTable header, int bytes) {
        ArrowSchema found = schema;
        switch (kind) {
            case SCHEMA -> {
                if (found != null) {
                    throw damaged("it has a second schema");
                }
                schema = SchemaReader.read(header);
            }
            case RECORD_BATCH -> {
                if (found == null) {
                    throw damaged("a record batch comes before the schema");
                }
                RecordBatchReader batch = new RecordBatchReader(header, body, at, bytes);
                batches.add(batch.read(found));
                rows = Math.addExact(rows, batch.rows());
            }
            case DICTIONARY_BATCH ->
                throw ServingException.invalidArgument(
                        "the Arrow stream has a dictionary batch (expected: record batches only)",
                        "decode the column, with column.dictionary_decode() in pyarrow or cast(pl.String) in polars");
            default ->
                throw ServingException.invalidArgument(
                        "the Arrow stream has a message of kind " + kind + " (expected: a schema and record batches)",
                        "write it with pyarrow.ipc.new_stream");
        }
    }

    private int nextInt() {
        if (body.size() - at < 4) {
            throw damaged("it ends within the length of a message");
        }
        int value = body.getInt(at);
        at += 4;
        return value;
    }

    /** The error for bytes that are not an Arrow stream. */
    static ServingException damaged(String how) {
        return ServingException.invalidArgument(
                "the Arrow stream is damaged: " + how, "send the bytes that pyarrow.ipc.new_stream writes, unchanged");
    }
}
