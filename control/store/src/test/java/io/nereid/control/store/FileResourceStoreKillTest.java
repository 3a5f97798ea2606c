// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.store;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.api.store.ResourceStore;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A writing process is killed at random moments; all acknowledged changes must survive. */
class FileResourceStoreKillTest {
    private static final int ROUNDS = 8;
    private static final int WRITERS = 4;

    @TempDir
    private Path dir;

    @Test
    void everyAcknowledgedChangeSurvivesAKill() throws Exception {
        Random random = new Random(20260101);
        Map<String, String> acknowledged = new HashMap<>();
        long changes = 0;
        for (int round = 0; round < ROUNDS; round++) {
            Process child = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            "-XX:TieredStopAtLevel=1",
                            "-Xshare:auto",
                            "-cp",
                            System.getProperty("java.class.path"),
                            FileResourceStoreKillTest.class.getName(),
                            dir.toString(),
                            Integer.toString(round))
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
            int target = 1 + random.nextInt(400);
            int seen = 0;
            try (BufferedReader lines =
                    new BufferedReader(new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    String[] words = line.split(" ", -1);
                    if (words.length == 3 && words[2].equals(".")) {
                        acknowledged.put(words[0], words[1]);
                        seen++;
                    }
                    if (seen == target) {
                        // The handle, because Process.destroy closes the stream that has more output to read.
                        child.toHandle().destroyForcibly();
                    }
                }
            }
            assertThat(child.waitFor()).isNotZero();
            assertThat(seen).isGreaterThanOrEqualTo(target);
            changes += seen;
            verify(acknowledged, round);
        }
        assertThat(changes).isGreaterThan(ROUNDS);
    }

    /** Each resource has its last acknowledged state, or the next one, whose acknowledgement was lost. */
    private void verify(Map<String, String> acknowledged, int round) {
        try (FileResourceStore store = FileResourceStore.open(dir, Clock.system())) {
            for (Map.Entry<String, String> entry : acknowledged.entrySet()) {
                ObjectNode now = store.get(ResourceStoreContract.key("a", entry.getKey()));
                int expected = Integer.parseInt(entry.getValue());
                int value = now == null ? -1 : now.at("/spec/value").asInt();
                boolean deletedNow = now == null;
                if (expected < 0) {
                    // Acknowledged as deleted; a new resource of the name may have been created since.
                    assertThat(deletedNow || value == -expected + 1)
                            .as("round %d: %s deleted after %d, found %d", round, entry.getKey(), -expected, value)
                            .isTrue();
                } else {
                    assertThat(value == expected || value == expected + 1 || deletedNow && expected % 10 == 9)
                            .as("round %d: %s acknowledged %d, found %d", round, entry.getKey(), expected, value)
                            .isTrue();
                }
                entry.setValue(Integer.toString(deletedNow ? -Math.abs(expected) : value));
            }
        }
    }

    /** The child: increments resources, deletes each at every tenth step, and prints what is acknowledged. */
    public static void main(String[] args) {
        FileResourceStore store =
                FileResourceStore.open(Path.of(args[0]), Clock.system(), StoreFiles.REAL, 100, 30_000);
        PrintStream out =
                new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8);
        for (int w = 0; w < WRITERS; w++) {
            int writer = w;
            Threads.named("writer")
                    .newThread(() -> write(store, out, args[1], writer))
                    .start();
        }
        try {
            Thread.currentThread().join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void write(ResourceStore store, PrintStream out, String round, int writer) {
        String name = "w" + writer + "-r" + round;
        for (int value = 1; ; value++) {
            ObjectNode resource = ResourceStoreContract.resource("a", name, Integer.toString(value));
            String done;
            if (value % 10 == 1) {
                store.create(ResourceStoreContract.SERVICES, resource);
                done = Integer.toString(value);
            } else if (value % 10 == 0) {
                store.delete(ResourceStoreContract.key("a", name), null);
                done = "-" + value;
            } else {
                store.update(ResourceStoreContract.SERVICES, resource, null);
                done = Integer.toString(value);
            }
            out.println(name + " " + done + " .");
        }
    }
}
