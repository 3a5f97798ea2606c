// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Tokenises text with the Hugging Face tokenizer in a {@code tokenizer.json}: {@code TEXT} BYTES [1] to
 * {@code input_ids}, {@code attention_mask} and {@code token_type_ids} INT64 [tokens], with the rows of a batch padded
 * to the longest. A second input is the second text of a pair. Model parameters:
 *
 * <ul>
 *   <li>{@code max_length}: the maximum number of tokens in a row; by default the file's maximum, if it has one
 *   <li>{@code truncation}: {@code true}, {@code false}, {@code longest_first}, {@code only_first} or
 *       {@code only_second}; by default true if there is a maximum
 *   <li>{@code padding}: {@code longest} (the default), {@code max_length} or {@code false}
 *   <li>{@code pad_to_multiple_of}: rounds the padded length up, so that fewer different lengths occur
 *   <li>{@code pad_id}: the id of the padding token, if the file does not define one
 *   <li>{@code add_special_tokens}: {@code true} (the default) or {@code false}
 * </ul>
 *
 * <p>In a model configuration:
 *
 * <pre>{@code
 * backend: "tokenizer"
 * parameters { key: "max_length" value { string_value: "512" } }
 * }</pre>
 *
 * <p>Thread-safe; the native library is loaded on first use, once in a process. Nothing is downloaded.
 */
public final class TokenizerBackend implements Backend {
    static final String NAME = "tokenizer";
    private static final String FILE = "tokenizer.json";

    /** Creates the backend. It loads native code only when a model is loaded or its availability is checked. */
    public TokenizerBackend() {}

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<String> platforms() {
        return List.of(NAME);
    }

    @Override
    public List<String> defaultFiles() {
        return List.of(FILE);
    }

    /**
     * Decides by the file's name, because a tokenizer's content does not differ from other JSON in its first bytes. Beside
     * the weights of a model of Hugging Face's transformers, it is a part of that model, which is not served as its tokenizer
     * alone unless the configuration says so.
     */
    @Override
    public boolean recognises(Path file) {
        return String.valueOf(file.getFileName()).endsWith(FILE) && !isPartOfModel(file);
    }

    private static boolean isPartOfModel(Path file) {
        Path directory = file.toAbsolutePath().getParent();
        if (directory == null || !Files.exists(directory.resolve("config.json"))) {
            return false;
        }
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(f -> String.valueOf(f.getFileName()))
                    .anyMatch(name -> name.endsWith(".safetensors")
                            || (name.startsWith("pytorch_model") && name.endsWith(".bin")));
        } catch (IOException e) {
            return false;
        }
    }

    @Override
    public @Nullable String unavailableReason() {
        return NativeTokenizer.start();
    }

    @Override
    public Optional<Set<String>> settingNames() {
        return Optional.of(Set.of("default-max-batch-size"));
    }

    @Override
    public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
        TokenizerSettings settings = TokenizerSettings.read(config);
        ModelConfig complete = TokenizerConfig.complete(config, context);
        String json = read(source, config);
        String reason = unavailableReason();
        if (reason != null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    reason,
                    "the library needs Linux with glibc 2.34 or newer on x86-64 or arm64, or macOS on arm64");
        }
        NativeTokenizer tokenizer =
                NativeTokenizer.open(config.name(), config.modelFile().isEmpty() ? FILE : config.modelFile(), json);
        boolean loaded = false;
        try {
            PaddingStrategy padding =
                    settings.applyTo(config.name(), tokenizer, complete.inputs().size() == 2);
            TokenizerModel model = new TokenizerModel(complete, tokenizer, padding, json.length());
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                tokenizer.close();
            }
        }
    }

    private static String read(ModelLocation source, ModelConfig config) {
        String name = config.modelFile().isEmpty() ? FILE : config.modelFile();
        Path directory = source.versionDirectory().normalize();
        Path file = directory.resolve(name).normalize();
        if (!file.startsWith(directory)) {
            throw ServingException.invalidArgument(
                    "model file '" + name + "' lies outside the version's directory",
                    "name a file inside " + directory);
        }
        if (!Files.isRegularFile(file)) {
            throw ServingException.invalidArgument(
                    "unable to find '" + file + "' for model '" + config.name() + "'",
                    "put the tokenizer's tokenizer.json there");
        }
        try {
            return Files.readString(file);
        } catch (CharacterCodingException e) {
            throw ServingException.invalidArgument(
                    "model file '" + file + "' cannot be loaded: it is not text in UTF-8",
                    "put the tokenizer's tokenizer.json there");
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read model file '" + file + "': " + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
    }
}
