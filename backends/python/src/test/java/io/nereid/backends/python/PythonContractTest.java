// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.BackendContract;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;

class PythonContractTest extends BackendContract {
    @BeforeAll
    static void python() {
        Interpreter.assumePython();
    }

    /** Uses the tests' interpreter instead of the one in the contract's context. */
    private static final class Chosen implements Backend {
        private final PythonBackend backend = new PythonBackend();

        @Override
        public String name() {
            return backend.name();
        }

        @Override
        public List<String> platforms() {
            return backend.platforms();
        }

        @Override
        public List<String> defaultFiles() {
            return backend.defaultFiles();
        }

        @Override
        public @Nullable String unavailableReason() {
            return backend.unavailableReason();
        }

        @Override
        public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            Map<String, String> settings = new HashMap<>(context.settings());
            settings.put("python", Interpreter.path());
            return backend.load(
                    source,
                    config,
                    new BackendContext(context.cores(), context.scratch(), settings, context.autoComplete()));
        }
    }

    @Override
    protected Backend backend() {
        return new Chosen();
    }

    @Override
    protected ModelLocation model(Path directory) {
        return Fixtures.copied("plain", directory);
    }

    @Override
    protected ModelLocation invalidModel(Path directory) {
        return Fixtures.written("broken", "class TritonPythonModel:\n    def execute(self, requests)\n", directory);
    }

    /** A damaged Python file may be another valid program, whose runs may fail in any way. */
    @Override
    protected boolean survivesDamage() {
        return false;
    }

    @Override
    protected List<Tensor> inputs(int seed) {
        Tensor tensor = Tensor.allocate("IN", DataType.INT32, Shape.of(4));
        ByteBuffer bytes = tensor.buffer();
        for (int i = 0; i < 4; i++) {
            bytes.putInt(seed * 31 + i);
        }
        return List.of(tensor);
    }
}
