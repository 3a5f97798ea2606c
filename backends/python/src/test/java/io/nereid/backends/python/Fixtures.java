// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Objects;

/** The Python models of the test resources. */
final class Fixtures {
    private Fixtures() {}

    static ModelLocation copied(String name, Path directory) {
        try {
            Path from =
                    Path.of(Objects.requireNonNull(Fixtures.class.getResource("/models/" + name + "/1/model.py"), name)
                            .toURI());
            Path version = Files.createDirectories(directory.resolve(name).resolve("1"));
            Files.copy(from, version.resolve("model.py"), StandardCopyOption.REPLACE_EXISTING);
            return new ModelLocation(new ServableId(name, 1), version.getParent(), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    static ModelLocation written(String name, String text, Path directory) {
        try {
            Path version = Files.createDirectories(directory.resolve(name).resolve("1"));
            Files.writeString(version.resolve("model.py"), text);
            return new ModelLocation(new ServableId(name, 1), version.getParent(), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
