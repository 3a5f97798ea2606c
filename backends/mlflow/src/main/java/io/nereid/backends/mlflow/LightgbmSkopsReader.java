// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ForwardingModel;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * Extracts the booster of a LightGBM scikit-learn class ({@code LGBMClassifier}, {@code LGBMRegressor}, …) from a skops
 * file, in which MLflow saves it: an archive of JSON and arrays, with the booster in its text format. No code in the
 * file is run. Confined to one thread.
 */
final class LightgbmSkopsReader {
    /** The name of the file that the extracted booster is written to. */
    static final String FILE = "model.txt";

    private static final int MOST_BYTES = 1 << 29;
    private static final int MOST_CLASSES = 1 << 16;
    private static final Pattern VECTOR =
            Pattern.compile("'descr':\\s*'<i([48])'.*'shape':\\s*\\(\\s*([0-9]{1,6})\\s*,\\s*\\)", Pattern.DOTALL);

    private final String file;
    private final JsonReader reader = new JsonReader();
    private String booster = "";
    private String best = "";
    private String classes = "";

    private LightgbmSkopsReader(Path file) {
        this.file = file.toString();
    }

    /**
     * The content of a file.
     *
     * @param booster the booster in LightGBM's text format
     * @param best the number of iterations up to the best one, which predictions use; 0 for all
     */
    record Content(String booster, int best) {}

    /**
     * Reads a file.
     *
     * @param classifier whether it must be a classifier, whose classes are validated
     * @throws ServingException INVALID_ARGUMENT when the file has another content
     */
    static Content read(Path file, boolean classifier) {
        LightgbmSkopsReader wrapper = new LightgbmSkopsReader(file);
        try (ZipFile archive = new ZipFile(file.toFile())) {
            byte[] schema = wrapper.entry(archive, "schema.json");
            wrapper.reader.reset(schema, 0, schema.length - JsonReader.SLACK);
            wrapper.attributes(wrapper::attribute);
            if (!wrapper.booster.startsWith("tree\n")) {
                throw wrapper.wrong("does not contain a fitted booster");
            }
            if (classifier) {
                wrapper.checkClasses(archive);
            }
        } catch (IOException e) {
            throw wrapper.wrong("cannot be read as a skops file: " + e.getMessage());
        }
        int best = wrapper.best.matches("[0-9]{1,9}") ? Integer.parseInt(wrapper.best) : 0;
        return new Content(wrapper.booster, best);
    }

    /** The bytes of an entry, followed by the padding that the JSON reader needs. */
    private byte[] entry(ZipFile archive, String name) throws IOException {
        ZipEntry entry = archive.getEntry(name);
        if (entry == null) {
            throw wrong("lacks the entry '" + name + "'");
        }
        try (InputStream in = archive.getInputStream(entry)) {
            byte[] bytes = in.readNBytes(MOST_BYTES + 1);
            if (bytes.length > MOST_BYTES) {
                throw wrong("has an entry '" + name + "' of more than " + MOST_BYTES + " bytes");
            }
            return Arrays.copyOf(bytes, bytes.length + JsonReader.SLACK);
        }
    }

    /** Reads the next value, an object of skops, and passes each attribute to a consumer. */
    private void attributes(Consumer<String> each) {
        fields(outer -> {
            if (!outer.equals("content")) {
                reader.skipValue();
                return;
            }
            fields(inner -> {
                if (inner.equals("content")) {
                    fields(each);
                } else {
                    reader.skipValue();
                }
            });
        });
    }

    private void fields(Consumer<String> each) {
        reader.beginObject();
        while (reader.nextField()) {
            each.accept(reader.key());
        }
    }

    private void attribute(String name) {
        switch (name) {
            case "_Booster" -> attributes(this::boosters);
            case "_classes" -> classes = text("file");
            default -> reader.skipValue();
        }
    }

    private void boosters(String name) {
        switch (name) {
            case "_handle", "handle" -> booster = string(text("content"));
            case "best_iteration" -> best = text("content");
            default -> reader.skipValue();
        }
    }

    /** Reads a field of the next value, an object; empty when it is absent. */
    private String text(String field) {
        String[] found = {""};
        fields(name -> {
            if (name.equals(field)) {
                found[0] = reader.readString();
            } else {
                reader.skipValue();
            }
        });
        return found[0];
    }

    /** Parses a JSON document that is a single string. */
    private static String string(String json) {
        byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
        JsonReader inner = new JsonReader();
        inner.reset(Arrays.copyOf(bytes, bytes.length + JsonReader.SLACK), 0, bytes.length);
        return inner.readString();
    }

    /** Checks that the classes are 0, 1, …: the booster returns class indexes, which then are the labels. */
    private void checkClasses(ZipFile archive) throws IOException {
        byte[] bytes = entry(archive, classes);
        ByteBuffer in =
                ByteBuffer.wrap(bytes, 0, bytes.length - JsonReader.SLACK).order(ByteOrder.LITTLE_ENDIAN);
        boolean asTheyAre = in.remaining() > 10 && in.getLong(0) << 16 == 0x59504d554e93L << 16 && in.get(6) == 1;
        if (asTheyAre) {
            int length = in.getShort(8) & 0xffff;
            Matcher header = VECTOR.matcher(
                    new String(bytes, 10, Math.min(length, in.limit() - 10), StandardCharsets.ISO_8859_1));
            asTheyAre = header.find();
            if (asTheyAre) {
                int width = Integer.parseInt(header.group(1));
                int count = Integer.parseInt(header.group(2));
                asTheyAre = count <= MOST_CLASSES && in.limit() == 10 + length + count * width;
                for (int i = 0; asTheyAre && i < count; i++) {
                    int at = 10 + length + i * width;
                    asTheyAre = (width == 8 ? in.getLong(at) : in.getInt(at)) == i;
                }
            }
        }
        if (!asTheyAre) {
            throw wrong("contains a classifier whose classes are not the integers from 0 on");
        }
    }

    private ServingException wrong(String what) {
        return ServingException.invalidArgument(
                "model file '" + file + "' " + what,
                "log the booster inside it: mlflow.lightgbm.log_model(model.booster_, …)");
    }

    /**
     * Writes a booster's text to a directory of its own.
     *
     * @throws ServingException INTERNAL when it cannot be written
     */
    static Path laidOut(String booster, Path scratch) {
        Path directory = null;
        try {
            directory = Files.createTempDirectory(Files.createDirectories(scratch), "lightgbm-");
            Files.writeString(directory.resolve(FILE), booster);
            return directory;
        } catch (IOException e) {
            delete(directory);
            throw ServingException.of(
                    ErrorCode.INTERNAL, "cannot write a model's booster into " + scratch + ": " + e.getMessage());
        }
    }

    static void delete(@Nullable Path directory) {
        if (directory != null) {
            try {
                Files.deleteIfExists(directory.resolve(FILE));
                Files.deleteIfExists(directory);
            } catch (IOException e) {
                // The directory is inside this process's scratch directory, which is deleted when the process ends.
            }
        }
    }

    /** A model whose temporary directory is deleted when it is closed. Thread-safe, as the model inside is. */
    static final class Laid extends ForwardingModel {
        private final Path directory;

        Laid(BackendModel model, Path directory) {
            super(model);
            this.directory = directory;
        }

        @Override
        public void close() {
            super.close();
            delete(directory);
        }
    }
}
