// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.spi.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Finds and reads a model's file. Stateless. */
final class TreeFile {
    private static final String SAVE_XGBOOST =
            "save it as JSON or UBJ with booster.save_model(\"model.json\") or \"model.ubj\"";
    private static final String SAVE_LIGHTGBM = "save it with booster.save_model(\"model.txt\")";

    /** Bytes by which a file is recognised. */
    private static final int HEAD = 4096;

    private TreeFile() {}

    /** Whether a file begins as those of a backend do. */
    static boolean recognises(Path file, String backend) {
        byte[] head;
        try (InputStream in = Files.newInputStream(file)) {
            head = in.readNBytes(HEAD);
        } catch (IOException e) {
            return false;
        }
        boolean lightgbm = LightgbmReader.recognises(head, head.length);
        if (!backend.equals(ParsedModel.XGBOOST)) {
            return lightgbm;
        }
        // Files of other endings than JSON's are XGBoost's whatever they hold, which it tells about.
        return !lightgbm
                && (!String.valueOf(file.getFileName()).endsWith(".json")
                        || new String(head, StandardCharsets.ISO_8859_1).contains("\"learner\""));
    }

    /**
     * The model's file in a version's directory.
     *
     * @param defaults names of files, the first that is there is meant
     * @throws ServingException INVALID_ARGUMENT when there is no such file
     */
    static Path find(ModelLocation source, ModelConfig config, List<String> defaults) {
        Path directory = source.versionDirectory().normalize();
        List<String> names = config.modelFile().isEmpty() ? defaults : List.of(config.modelFile());
        List<Path> found = new ArrayList<>();
        for (String name : names) {
            Path file = directory.resolve(name).normalize();
            if (!file.startsWith(directory)) {
                throw ServingException.invalidArgument(
                        "model file '" + name + "' lies outside the version's directory",
                        "name a file inside " + directory);
            }
            if (Files.isRegularFile(file)) {
                found.add(file);
            }
        }
        if (found.isEmpty()) {
            throw ServingException.invalidArgument(
                    "unable to find '" + directory.resolve(names.get(0)) + "' for model '" + config.name() + "'",
                    "put " + String.join(", or ", names) + " there, or name the file in default_model_filename");
        }
        if (found.size() > 1) {
            throw ServingException.invalidArgument(
                    "there are several files for model '" + config.name() + "': " + found,
                    "leave one of them, or name it in default_model_filename");
        }
        return found.get(0);
    }

    /**
     * The model in a file.
     *
     * @param backend the backend that is asked for
     * @param covers whether to read how much of the training data came by each node
     * @throws ServingException INVALID_ARGUMENT for a file that cannot be served
     */
    static ParsedModel read(Path file, String backend, boolean covers) {
        byte[] bytes;
        int length;
        try {
            long size = Files.size(file);
            if (size > Integer.MAX_VALUE - 64) {
                throw refused(file, "it has " + size + " bytes (expected: < 2 GiB)", "make the model smaller");
            }
            length = (int) size;
            bytes = new byte[length + JsonReader.SLACK];
            try (InputStream in = Files.newInputStream(file)) {
                int got = in.readNBytes(bytes, 0, length);
                if (got != length) {
                    throw refused(file, "it changes while it is read", "load it again when it is written");
                }
            }
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read model file '" + file + "': " + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
        return read(file, bytes, length, backend, covers);
    }

    /** The model in the first {@code length} bytes, behind which there are {@link JsonReader#SLACK} more. */
    static ParsedModel read(Path file, byte[] bytes, int length, String backend, boolean covers) {
        boolean xgboost = backend.equals(ParsedModel.XGBOOST);
        String remedy = xgboost ? SAVE_XGBOOST : SAVE_LIGHTGBM;
        // Both write .bst, and what it is stands in it.
        boolean either = String.valueOf(file.getFileName()).endsWith(".bst");
        int first = 0;
        while (first < length && first < 64 && bytes[first] <= ' ' && bytes[first] >= 0) {
            first++;
        }
        if (first == length) {
            throw refused(file, "it is empty", remedy);
        }
        if (LightgbmReader.recognises(bytes, length)) {
            if (xgboost && !either) {
                throw refused(file, "it is LightGBM's", "set backend: \"lightgbm\", or call it model.txt");
            }
            return described(file, SAVE_LIGHTGBM, () -> LightgbmReader.read(bytes, length, covers));
        }
        if (bytes[first] != '{') {
            throw refused(file, foreign(bytes, length, xgboost), remedy);
        }
        if (!xgboost && !either) {
            throw refused(
                    file,
                    "it is JSON or UBJ, but the text that LightGBM saves is needed",
                    "for a model of XGBoost set backend: \"xgboost\", else " + SAVE_LIGHTGBM);
        }
        Document document =
                binary(bytes, first, length) ? new UbjDocument(bytes, length) : new JsonDocument(bytes, length);
        return described(file, SAVE_XGBOOST, () -> XgboostReader.read(document, covers));
    }

    /** Whether a document that begins with a brace goes on as UBJ: a length instead of a quotation mark. */
    private static boolean binary(byte[] bytes, int first, int length) {
        int at = first + 1;
        return at < length && "iUIlL$#N".indexOf(bytes[at]) >= 0;
    }

    private static String foreign(byte[] bytes, int length, boolean xgboost) {
        if (length >= 2 && (bytes[0] & 0xff) == 0x80 && bytes[1] <= 5 && bytes[1] > 1) {
            return "it is a Python pickle";
        }
        if (length >= 2 && bytes[0] == 0x1f && (bytes[1] & 0xff) == 0x8b) {
            return "it is compressed";
        }
        if (xgboost) {
            return "it is neither JSON nor UBJ; the binary format of XGBoost before 3.1 is not served";
        }
        return "it is not the text that LightGBM saves, which begins with a line 'tree'";
    }

    /** What reads a document. */
    private interface Reading {
        ParsedModel read();
    }

    private static ParsedModel described(Path file, String remedy, Reading reading) {
        try {
            return reading.read();
        } catch (ServingException e) {
            String own = e.remedy();
            throw refused(file, e.getMessage(), own == null ? "it may be damaged: " + remedy + " again" : own);
        }
    }

    private static ServingException refused(Path file, String why, String remedy) {
        return ServingException.invalidArgument("model file '" + file + "' cannot be loaded: " + why, remedy);
    }
}
