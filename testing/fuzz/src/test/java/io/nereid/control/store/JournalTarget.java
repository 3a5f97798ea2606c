// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import io.nereid.fuzz.FuzzTarget;
import io.nereid.fuzz.FuzzTargets;
import io.nereid.fuzz.InputFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * A journal of the resource store. An even first byte: the rest is the payload of a record, for which the checksum is made; odd: the
 * rest is the file. What a journal is read as is the same after it has been opened once, which truncates its end. Confined to one
 * thread.
 */
public final class JournalTarget implements FuzzTarget {
    private final InputFile file = new InputFile("journal-0000000000000000000");

    @Override
    public void read(byte[] input) throws IOException {
        if (input.length == 0) {
            return;
        }
        byte[] rest = Arrays.copyOfRange(input, 1, input.length);
        byte[] bytes = (input[0] & 1) != 0 ? rest : journal(rest);
        clear();
        file.with(bytes);
        List<ChangeRecord> first = open();
        List<ChangeRecord> again = open();
        if (!first.equals(again)) {
            throw new AssertionError("opened again, the journal has other changes: " + again + ", first " + first);
        }
    }

    /** Deletes what the log before has made. */
    private void clear() throws IOException {
        try (Stream<Path> all = Files.list(file.folder())) {
            for (Path path : all.toList()) {
                Files.delete(path);
            }
        }
    }

    private List<ChangeRecord> open() throws IOException {
        List<ChangeRecord> changes = new ArrayList<>();
        WriteAheadLog log = new WriteAheadLog(file.folder(), UNSYNCED, 1 << 20);
        try {
            log.open(changes::add, changes::add);
        } finally {
            log.close();
        }
        return changes;
    }

    /** As the real files, without waiting for the disk. */
    private static final StoreFiles UNSYNCED = new StoreFiles() {
        @Override
        public void write(java.nio.channels.FileChannel file, java.nio.ByteBuffer bytes, long at) throws IOException {
            StoreFiles.REAL.write(file, bytes, at);
        }

        @Override
        public void force(java.nio.channels.FileChannel file) {}
    };

    private static byte[] journal(byte[] payload) {
        byte[] header = new byte[RecordFormat.HEADER];
        RecordFormat.header().get(header);
        java.nio.ByteBuffer record = RecordFormat.record(payload, payload.length);
        byte[] bytes = Arrays.copyOf(header, header.length + record.remaining());
        record.get(bytes, header.length, record.remaining());
        return bytes;
    }

    @Override
    public List<byte[]> seeds() {
        List<byte[]> seeds = new ArrayList<>();
        for (byte[] payload : FuzzTargets.texts(
                "[{\"v\":1,\"k\":\"A\",\"g\":\"\",\"p\":\"secrets\",\"s\":\"default\",\"n\":\"a\",\"r\":{\"kind\":\"Secret\"}}]",
                "[{\"v\":1,\"k\":\"A\",\"g\":\"g\",\"p\":\"p\",\"s\":\"s\",\"n\":\"n\",\"r\":{}},"
                        + "{\"v\":2,\"k\":\"D\",\"g\":\"g\",\"p\":\"p\",\"s\":\"s\",\"n\":\"n\",\"r\":{}}]")) {
            byte[] plain = new byte[payload.length + 1];
            System.arraycopy(payload, 0, plain, 1, payload.length);
            seeds.add(plain);
            byte[] file = journal(payload);
            byte[] raw = new byte[file.length + 1];
            raw[0] = 1;
            System.arraycopy(file, 0, raw, 1, file.length);
            seeds.add(raw);
        }
        return seeds;
    }
}
