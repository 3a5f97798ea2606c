// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import ai.djl.huggingface.tokenizers.jni.CharSpan;
import ai.djl.huggingface.tokenizers.jni.TokenizersLibrary;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * A Hugging Face tokenizer in native memory, called through DJL's native binding. DJL's Java classes above the binding
 * are not used, because they need the DJL framework, which sends usage data to its vendor. Thread-safe once it has been
 * configured; closed by its owner after the last use.
 */
public final class NativeTokenizer implements AutoCloseable {
    /** A folder with native libraries as files. */
    static final String PATH_PROPERTY = "nereid.native.path";

    private static final Logger LOG = System.getLogger(NativeTokenizer.class.getName());

    /** Loads the library when it is first looked at, once in a process. */
    private static final class Loaded {
        /** The reason of a failure, or null. */
        static final @Nullable String FAILURE = load();
    }

    private final TokenizersLibrary library = TokenizersLibrary.LIB;
    private final long handle;

    private NativeTokenizer(long handle) {
        this.handle = handle;
    }

    /** The tokens of one row: arrays of the same length. */
    record Tokens(long[] ids, long[] types, long[] mask) {}

    /**
     * The tokens of one row, and where they come from; all arrays and lists have the same length.
     *
     * @param ids the numbers of the tokens
     * @param types 1 for tokens of the second text of a pair, in models that distinguish them, else 0
     * @param tokens the tokens as the vocabulary has them
     * @param words the word of each token, counted in its text; -1 for tokens that mark begin and end
     * @param texts 0 or 1 for the text of a pair that a token is from; -1 for tokens that mark begin and end
     * @param starts the first character of each token in its text, counted in Unicode code points; -1 for tokens that mark begin and
     *     end
     * @param ends the character after each token, likewise
     */
    public record Encoding(
            long[] ids, long[] types, List<String> tokens, long[] words, long[] texts, int[] starts, int[] ends) {}

    /**
     * Loads the native library: the file in the folder that the system property {@code nereid.native.path} names, or the one in
     * the jar, through a temporary file. It is loaded once in a process.
     *
     * @return the reason of a failure, or null
     */
    public static @Nullable String start() {
        return Loaded.FAILURE;
    }

    private static @Nullable String load() {
        String os = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        String name = System.mapLibraryName("tokenizers");
        String entry = "/native/lib/" + (os.startsWith("mac") ? "osx" : os.startsWith("win") ? "win" : "linux") + "-"
                + (arch.equals("amd64") ? "x86_64" : arch) + "/cpu/" + name;
        String folder = System.getProperty(PATH_PROPERTY);
        Path unpacked = folder == null ? null : Path.of(folder, name);
        Path directory = null;
        try (InputStream packed = TokenizersLibrary.class.getResourceAsStream(entry)) {
            if (unpacked != null && Files.isRegularFile(unpacked)) {
                System.load(unpacked.toAbsolutePath().toString());
                return null;
            }
            if (packed == null) {
                return "the tokenizers library does not support this machine (" + os + " on " + arch + ")";
            }
            directory = Files.createTempDirectory("nereid-tokenizers");
            Path file = directory.resolve(name);
            Files.copy(packed, file);
            System.load(file.toString());
            return null;
        } catch (IOException | LinkageError e) {
            return "the tokenizers library cannot be loaded on this machine (" + os + " on " + arch + "): "
                    + e.getMessage();
        } finally {
            if (directory != null) {
                delete(directory.resolve(name));
                delete(directory);
            }
        }
    }

    private static void delete(Path path) {
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            LOG.log(Level.DEBUG, "cannot delete " + path, e);
        }
    }

    /**
     * Opens the tokenizer that a JSON text describes.
     *
     * @throws ServingException INVALID_ARGUMENT when the JSON text is not a valid tokenizer
     */
    public static NativeTokenizer open(String model, String file, String json) {
        try {
            return new NativeTokenizer(TokenizersLibrary.LIB.createTokenizerFromString(json));
        } catch (RuntimeException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "the tokenizer of model '" + model + "' cannot be loaded from '" + file + "': " + e.getMessage(),
                    "put the tokenizer.json that Hugging Face's library wrote there",
                    e);
        }
    }

    Tokens encode(String text, @Nullable String pair, boolean special) {
        long encoding =
                pair == null ? library.encode(handle, text, special) : library.encodeDual(handle, text, pair, special);
        try {
            return new Tokens(
                    library.getTokenIds(encoding), library.getTypeIds(encoding), library.getAttentionMask(encoding));
        } finally {
            library.deleteEncoding(encoding);
        }
    }

    /**
     * Converts a text, or a pair of texts, truncated as configured.
     *
     * @param special whether tokens that mark begin and end are added
     */
    public Encoding encodeWithPlaces(String text, @Nullable String pair, boolean special) {
        long encoding =
                pair == null ? library.encode(handle, text, special) : library.encodeDual(handle, text, pair, special);
        try {
            long[] ids = library.getTokenIds(encoding);
            CharSpan[] spans = library.getTokenCharSpans(encoding);
            int[] starts = new int[ids.length];
            int[] ends = new int[ids.length];
            for (int i = 0; i < ids.length; i++) {
                CharSpan span = spans[i];
                starts[i] = span == null ? -1 : span.getStart();
                ends[i] = span == null ? -1 : span.getEnd();
            }
            return new Encoding(
                    ids,
                    library.getTypeIds(encoding),
                    List.of(library.getTokens(encoding)),
                    library.getWordIds(encoding),
                    library.getSequenceIds(encoding),
                    starts,
                    ends);
        } finally {
            library.deleteEncoding(encoding);
        }
    }

    /** The text of tokens, without those that are special if so wished. */
    public String decode(long[] ids, boolean withoutSpecial) {
        return library.decode(handle, ids, withoutSpecial);
    }

    /** The id of a token of the vocabulary, or -1 when the text is not a single token. */
    public long idOf(String token) {
        long encoding = library.encode(handle, token, false);
        try {
            String[] tokens = library.getTokens(encoding);
            return tokens.length == 1 && tokens[0].equals(token) ? library.getTokenIds(encoding)[0] : -1;
        } finally {
            library.deleteEncoding(encoding);
        }
    }

    /** The maximum number of tokens in a row that the file configures, or -1. */
    public int maxLength() {
        return truncates() ? library.getMaxLength(handle) : -1;
    }

    /** Whether the file, or {@link #truncate}, configures a maximum. */
    public boolean truncates() {
        return !library.getTruncationStrategy(handle).toLowerCase(Locale.ROOT).startsWith("do_not");
    }

    /** Whether the file configures padding. */
    public boolean pads() {
        return !library.getPaddingStrategy(handle).toLowerCase(Locale.ROOT).startsWith("do_not");
    }

    /**
     * Truncates from now on.
     *
     * @param length the maximum number of tokens, with those that mark begin and end
     * @param strategy LONGEST_FIRST, ONLY_FIRST or ONLY_SECOND
     */
    public void truncate(int length, String strategy) {
        library.setTruncation(handle, length, strategy, 0);
    }

    /** Does not truncate from now on. */
    public void neverTruncate() {
        library.disableTruncation(handle);
    }

    void padTo(int length) {
        library.setPadding(handle, length, "MAX_LENGTH", 0);
    }

    /** Does not pad from now on. */
    public void neverPad() {
        library.disablePadding(handle);
    }

    @Override
    public void close() {
        library.deleteTokenizer(handle);
    }
}
