// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage;

import io.nereid.base.Clock;
import io.nereid.storage.request.StorageLease;
import io.nereid.storage.request.StorageRequest;
import java.io.PrintStream;
import java.nio.file.Path;

/** A process that fetches one URI into the cache below a directory and prints its progress. */
final class Child {
    private Child() {}

    public static void main(String[] args) {
        PrintStream out = System.out;
        try (Storage storage = new Storage(Given.options(Path.of(args[0])), Clock.system());
                StorageLease stored = Given.get(storage.fetch(StorageRequest.of(args[1]), step -> {
                    out.println("bytes " + step.bytes());
                    out.flush();
                }))) {
            out.println("done " + stored.bytes());
        }
    }

    static Process start(Path directory, String uri, String... options) throws java.io.IOException {
        java.util.List<String> command = new java.util.ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(java.util.List.of(options));
        command.addAll(java.util.List.of(
                "-cp", System.getProperty("java.class.path"), Child.class.getName(), directory.toString(), uri));
        return new ProcessBuilder(command).redirectErrorStream(true).start();
    }
}
