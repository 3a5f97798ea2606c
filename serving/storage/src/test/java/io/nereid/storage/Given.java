// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.storage.request.ProgressListener;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageOptions;
import io.nereid.storage.request.StorageRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Shared fixtures of the tests of stores. Stateless. */
public final class Given {
    private Given() {}

    public static StorageOptions options(Path directory) {
        return StorageOptions.defaults(directory.resolve("cache"))
                .withQuota(1L << 30, 0)
                .withRetries(3, Duration.ofSeconds(2), Duration.ofSeconds(5));
    }

    public static Storage storage(Path directory) {
        return new Storage(options(directory), Clock.system());
    }

    public static StorageLease fetch(Storage storage, String uri) {
        return fetch(storage, uri, Map.of());
    }

    public static StorageLease fetch(Storage storage, String uri, Map<String, String> credentials) {
        return get(storage.fetch(StorageRequest.of(uri, credentials), ProgressListener.none()));
    }

    public static StorageLease get(CompletionStage<StorageLease> stage) {
        try {
            return stage.toCompletableFuture().get(60, TimeUnit.SECONDS);
        } catch (ExecutionException | CompletionException e) {
            if (e.getCause() instanceof ServingException failure) {
                throw failure;
            }
            throw new AssertionError(e);
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    /** Paths and contents below a directory. */
    public static Map<String, String> files(Path root) throws IOException {
        Map<String, String> files = new TreeMap<>();
        try (var found = Files.walk(root)) {
            for (Path path : found.filter(Files::isRegularFile).toList()) {
                files.put(
                        root.relativize(path).toString(),
                        Files.readString(path, java.nio.charset.StandardCharsets.ISO_8859_1));
            }
        }
        return files;
    }

    public static byte[] random(int size, long seed) {
        byte[] bytes = new byte[size];
        new java.util.Random(seed).nextBytes(bytes);
        return bytes;
    }
}
