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
 * One of LightGBM's classes for scikit-learn, as MLflow saves it in a file of skops: an archive of JSON and arrays, in which
 * the booster stands as its own text. Nothing in the file is run. Confined to one thread.
 */
final class LightgbmWrapper {
    /** What the booster's text is laid out as. */
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

    private LightgbmWrapper(Path file) {
        this.file = file.toString();
    }

    /**
     * What was in a file.
     *
     * @param booster its text
     * @param best iterations up to the best one, which predictions use; 0 for all
     */
    record Content(String booster, int best) {}

    /**
     * Reads a file.
     *
     * @param classifier whether it holds a classifier, of which the classes are looked at
     * @throws ServingException INVALID_ARGUMENT when it is something else
     */
    static Content read(Path file, boolean classifier) {
        LightgbmWrapper wrapper = new LightgbmWrapper(file);
        try (ZipFile archive = new ZipFile(file.toFile())) {
            byte[] schema = wrapper.entry(archive, "schema.json");
            wrapper.reader.reset(schema, 0, schema.length - JsonReader.SLACK);
            wrapper.attributes(wrapper::attribute);
            if (!wrapper.booster.startsWith("tree\n")) {
                throw wrapper.wrong("holds no booster that was fitted");
            }
            if (classifier) {
                wrapper.checkClasses(archive);
            }
        } catch (IOException e) {
            throw wrapper.wrong("cannot be read as a file of skops: " + e.getMessage());
        }
        int best = wrapper.best.matches("[0-9]{1,9}") ? Integer.parseInt(wrapper.best) : 0;
        return new Content(wrapper.booster, best);
    }

    /** The bytes of an entry, with what the reader wants after them. */
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

    /** The attributes of an object that stands next, each in its turn. */
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

    /** A field of the object that stands next, or nothing. */
    private String text(String wanted) {
        String[] found = {""};
        fields(name -> {
            if (name.equals(wanted)) {
                found[0] = reader.readString();
            } else {
                reader.skipValue();
            }
        });
        return found[0];
    }

    /** The text that a document of JSON consists of. */
    private static String string(String json) {
        byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
        JsonReader inner = new JsonReader();
        inner.reset(Arrays.copyOf(bytes, bytes.length + JsonReader.SLACK), 0, bytes.length);
        return inner.readString();
    }

    /** Answers are places among the classes, which must be the classes. */
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
            throw wrong("holds a classifier whose classes are not the whole numbers from 0 on");
        }
    }

    private ServingException wrong(String what) {
        return ServingException.invalidArgument(
                "model file '" + file + "' " + what,
                "log the booster inside it: mlflow.lightgbm.log_model(model.booster_, …)");
    }

    /**
     * A booster's text in a directory of its own.
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
                // It lies in this process's own directory, which goes when the process does.
            }
        }
    }

    /** A model from a directory that goes with it. As the model. */
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
