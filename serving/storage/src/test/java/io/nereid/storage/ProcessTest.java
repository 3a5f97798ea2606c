// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.storage.object.TestServer;
import io.nereid.storage.request.StorageLease;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessTest {
    @TempDir
    Path directory;

    @Test
    void whatAKilledProcessHadIsNotBroughtAgain() throws Exception {
        byte[] content = Given.random(40 << 20, 21);
        try (TestServer server = new TestServer()) {
            server.put("/big.bin", content);
            server.handlers.put("/big.bin", exchange -> {
                String range = exchange.getRequestHeaders().getFirst("Range");
                if (range != null && range.startsWith("bytes=33554432-") && server.release.getCount() > 0) {
                    WebTest.await(server.release);
                }
                server.send(exchange, server.objects.get("/big.bin"), Integer.MAX_VALUE);
            });
            Process child = Child.start(directory, server.url() + "/big.bin");
            Path partial = directory.resolve("cache/partial");
            // There is no notification across processes that a line was written, so poll for it.
            CountDownLatch never = new CountDownLatch(1);
            while (written(partial) < 4 && child.isAlive()) {
                assertThat(never.await(20, TimeUnit.MILLISECONDS)).isFalse();
            }
            child.destroyForcibly();
            assertThat(child.waitFor(20, TimeUnit.SECONDS)).isTrue();
            server.release.countDown();
            server.seen.clear();
            try (Storage storage = new Storage(Given.options(directory), Clock.system());
                    StorageLease stored = Given.fetch(storage, server.url() + "/big.bin")) {
                assertThat(Files.readAllBytes(stored.path().resolve("big.bin"))).isEqualTo(content);
            }
            assertThat(server.count("GET", "/big.bin")).isEqualTo(1);
        }
    }

    private static int written(Path partial) throws IOException {
        if (!Files.isDirectory(partial)) {
            return 0;
        }
        try (var found = Files.list(partial)) {
            for (Path download : found.toList()) {
                if (Files.exists(download.resolve("journal"))) {
                    List<String> lines = Files.readAllLines(download.resolve("journal"));
                    return (int)
                            lines.stream().filter(line -> line.endsWith(" .")).count();
                }
            }
        }
        return 0;
    }

    @Test
    void threeHundredMegabytesPassThroughASmallHeap() throws Exception {
        long size = 300L << 20;
        byte[] chunk = Given.random(1 << 20, 22);
        try (TestServer server = new TestServer()) {
            server.handlers.put("/big.bin", exchange -> {
                exchange.getResponseHeaders().set("ETag", "\"fixed\"");
                exchange.getResponseHeaders().set("Accept-Ranges", "bytes");
                if (exchange.getRequestMethod().equals("HEAD")) {
                    exchange.getResponseHeaders().set("Content-Length", String.valueOf(size));
                    exchange.sendResponseHeaders(200, -1);
                    return;
                }
                String[] ends = exchange.getRequestHeaders()
                        .getFirst("Range")
                        .substring(6)
                        .split("-");
                long from = Long.parseLong(ends[0]);
                long to = Long.parseLong(ends[1]) + 1;
                exchange.getResponseHeaders().set("Content-Range", "bytes " + from + "-" + (to - 1) + "/" + size);
                exchange.sendResponseHeaders(206, to - from);
                for (long at = from; at < to; ) {
                    int in = (int) (at % chunk.length);
                    int n = (int) Math.min(chunk.length - in, to - at);
                    exchange.getResponseBody().write(chunk, in, n);
                    at += n;
                }
            });
            Process child = Child.start(directory, server.url() + "/big.bin", "-Xmx64m", "-XX:MaxDirectMemorySize=16m");
            String output = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(child.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(output).contains("done " + size);
        }
    }
}
