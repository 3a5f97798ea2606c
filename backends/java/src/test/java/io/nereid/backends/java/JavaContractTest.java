// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.Backend;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.ServableId;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class JavaContractTest extends BackendContract {
    /** The file is code: a model whose damaged bytes still run may lose a tensor that it has allocated itself. */
    @Override
    protected boolean runsDamagedFiles() {
        return false;
    }

    @Override
    protected Backend backend() {
        return new JavaBackend();
    }

    @Override
    protected ModelLocation model(Path directory) {
        Path jar = directory.resolve("doubler/1/model.jar");
        if (!Files.exists(jar)) {
            try {
                Files.createDirectories(directory.resolve("doubler/1"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            Jars.jar(jar, Map.of("com.example.Doubler", Jars.DOUBLER), List.of("com.example.Doubler"));
        }
        return new ModelLocation(new ServableId("doubler", 1), directory.resolve("doubler"), jar.getParent());
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        try {
            Path version = Files.createDirectories(directory.resolve("broken/1"));
            Files.writeString(version.resolve("model.jar"), "PK, or so it begins");
            return new ModelLocation(new ServableId("broken", 1), directory.resolve("broken"), version);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    protected Map<String, byte[]> rejectedContents() {
        Path jars = directory.resolve("refused/jars");
        Path good = jar(jars.resolve("good.jar"), "com.example.Doubler");
        try {
            return Map.of(
                    "for a Java of the future",
                    Jars.forJava(good, 99),
                    "a jar without a model",
                    Files.readAllBytes(
                            Jars.jar(jars.resolve("none.jar"), Map.of("com.example.Doubler", Jars.DOUBLER), List.of())),
                    "a jar that promises a class it does not have",
                    Files.readAllBytes(jar(jars.resolve("gone.jar"), "com.example.Gone")));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path jar(Path target, String service) {
        try {
            Files.createDirectories(target.getParent());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return Jars.jar(target, Map.of("com.example.Doubler", Jars.DOUBLER), List.of(service));
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Tensor x = Tensor.allocate("x", DataType.FP32, Shape.of(5));
        for (int i = 0; i < 5; i++) {
            x.buffer().putFloat(4 * i, seed + i);
        }
        return List.of(x);
    }
}
