// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** Makes zip archives of inputs: a change of a whole archive would rarely pass its checksums. Confined to one thread. */
public final class StoredZip {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final ZipOutputStream zip = new ZipOutputStream(out);

    /** Adds an entry that is stored, not compressed. */
    public StoredZip with(String name, byte[] content) throws IOException {
        ZipEntry entry = new ZipEntry(name);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(content.length);
        CRC32 crc = new CRC32();
        crc.update(content);
        entry.setCrc(crc.getValue());
        zip.putNextEntry(entry);
        zip.write(content);
        return this;
    }

    /** The archive, which is then complete. */
    public byte[] bytes() throws IOException {
        zip.close();
        return out.toByteArray();
    }
}
