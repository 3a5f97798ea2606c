// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ParquetWriterTest {
    @TempDir
    Path directory;

    /** {@code NEREID_TEST_PYTHON}, or {@code python3}. */
    private static String python() {
        String named = System.getenv("NEREID_TEST_PYTHON");
        return named == null || named.isEmpty() ? "python3" : named;
    }

    private static String run(String program, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(python(), "-c", program));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0 ? output : "failed: " + output;
    }

    @Test
    void pyarrowReadsWhatWasWritten() throws Exception {
        boolean there;
        try {
            there = !run("import pyarrow.parquet").startsWith("failed");
        } catch (IOException e) {
            there = false;
        }
        if (!there) {
            System.getLogger(ParquetWriterTest.class.getName())
                    .log(
                            System.Logger.Level.WARNING,
                            "SKIPPED: {0} has no pyarrow; Parquet files were not read",
                            python());
        }
        assumeTrue(there, "no pyarrow");
        List<List<String>> rows = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            List<String> row = new ArrayList<>();
            for (int c = 0; c < 20; c++) {
                row.add(c % 3 == 0 ? "" : "é".repeat(i % 40) + i + "/" + c);
            }
            rows.add(row);
        }
        List<String> columns = new ArrayList<>();
        for (int c = 0; c < 20; c++) {
            columns.add("column_" + c);
        }
        for (int count : new int[] {1, 300, 0}) {
            Path file = Files.write(
                    directory.resolve(count + ".parquet"), ParquetWriter.write(columns, rows.subList(0, count)));
            String seen = run(
                    "import sys, pyarrow.parquet as pq\n"
                            + "t = pq.read_table(sys.argv[1])\n"
                            + "assert all(str(f.type) == 'string' for f in t.schema), t.schema\n"
                            + "print(t.num_rows, t.num_columns, t.column_names[19])\n"
                            + "for r in t.to_pylist():\n"
                            + "    for c in range(20):\n"
                            + "        i = t.column_names.index('column_%d' % c)\n"
                            + "    assert r['column_0'] == '' and r['column_1'].endswith('/1'), r\n"
                            + "print(t.to_pylist()[-1]['column_19'] if t.num_rows else '-')\n",
                    file.toString());
            String last = count == 0 ? "-" : rows.get(count - 1).get(19);
            assertThat(seen).isEqualTo(count + " 20 column_19\n" + last + "\n");
        }
    }

    @Test
    void aSmallTableIsTheseBytes() {
        byte[] file = ParquetWriter.write(List.of("a"), List.of(List.of("xy")));
        assertThat(HexFormat.of().formatHex(file))
                .isEqualTo(
                        // PAR1, the page's header, the page
                        "50415231" + "1500150c150c2c15021500150615060000" + "020000007879"
                                // the footer
                                + "1502192c4806" + "6576656e7473" + "150200" + "150c2500180161250000" + "1602"
                                + "191c191c26081c150c19250006191801611500160216" + "2e162e260800" + "00"
                                + "162e160200" + "2806" + "6e6572656964" + "00"
                                + HexFormat.of().formatHex(new byte[] {(byte) (file.length - 8 - 27)}) + "000000"
                                + "50415231");
    }
}
