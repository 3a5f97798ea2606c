// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.format;

import io.nereid.backend.ModelLocation;
import io.nereid.backends.trees.forest.ParsedModel;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonReader;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Finds the file of a model, recognises its format, and reads it. Stateless. */
public final class TreeFile {
    private static final String SAVE_XGBOOST =
            "save it as JSON or UBJ with booster.save_model(\"model.json\") or \"model.ubj\"";
    private static final String SAVE_LIGHTGBM = "save it with booster.save_model(\"model.txt\")";

    /** The number of leading bytes by which a format is recognised. */
    private static final int HEAD = 4096;

    private TreeFile() {}

    /** Whether a file looks like a model of a backend, by its first bytes. */
    public static boolean recognises(Path file, String backend) {
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
        // Only a .json file can belong to another backend; others are XGBoost's, which reports invalid content.
        return !lightgbm
                && (!String.valueOf(file.getFileName()).endsWith(".json")
                        || new String(head, StandardCharsets.ISO_8859_1).contains("\"learner\""));
    }

    /**
     * Finds the model file in a version directory.
     *
     * @param defaults default file names
     * @throws ServingException INVALID_ARGUMENT when no such file exists, or several
     */
    public static Path find(ModelLocation source, ModelConfig config, List<String> defaults) {
        Path directory = source.versionDirectory().normalize();
        List<String> names = config.modelFile().isEmpty() ? defaults : List.of(config.modelFile());
        List<Path> found = new ArrayList<>();
        for (String name : names) {
            Path file = directory.resolve(name).normalize();
            if (!file.startsWith(directory)) {
                throw ServingException.invalidArgument(
                        "model file '" + name + "' is outside the version directory",
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
                    "several files exist for model '" + config.name() + "': " + found,
                    "keep one of them, or name it in default_model_filename");
        }
        return found.get(0);
    }

    /**
     * Reads the model of a file.
     *
     * @param backend the backend that loads it
     * @param covers whether to read the covers of nodes, which SHAP values need
     * @throws ServingException INVALID_ARGUMENT for a file that is not a supported model of the backend
     */
    public static ParsedModel read(Path file, String backend, boolean covers) {
        byte[] bytes;
        int length;
        try {
            long size = Files.size(file);
            if (size > Integer.MAX_VALUE - 64) {
                throw invalid(file, "it has " + size + " bytes (expected: < 2 GiB)", "make the model smaller");
            }
            length = (int) size;
            bytes = new byte[length + JsonReader.SLACK];
            try (InputStream in = Files.newInputStream(file)) {
                int got = in.readNBytes(bytes, 0, length);
                if (got != length) {
                    throw invalid(file, "it changed while it was read", "load it again when it is completely written");
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

    /** Reads the model in the first {@code length} bytes, which {@link JsonReader#SLACK} more bytes follow. */
    public static ParsedModel read(Path file, byte[] bytes, int length, String backend, boolean covers) {
        boolean xgboost = backend.equals(ParsedModel.XGBOOST);
        String remedy = xgboost ? SAVE_XGBOOST : SAVE_LIGHTGBM;
        // Both libraries write .bst files, so the content decides.
        boolean either = String.valueOf(file.getFileName()).endsWith(".bst");
        int first = 0;
        while (first < length && first < 64 && bytes[first] <= ' ' && bytes[first] >= 0) {
            first++;
        }
        if (first == length) {
            throw invalid(file, "it is empty", remedy);
        }
        if (LightgbmReader.recognises(bytes, length)) {
            if (xgboost && !either) {
                throw invalid(file, "it is a LightGBM model", "set backend: \"lightgbm\", or rename it to model.txt");
            }
            return described(file, SAVE_LIGHTGBM, () -> LightgbmReader.read(bytes, length, covers));
        }
        if (bytes[first] != '{') {
            throw invalid(file, foreign(bytes, length, xgboost), remedy);
        }
        if (!xgboost && !either) {
            throw invalid(
                    file,
                    "it is JSON or UBJ, not LightGBM's text format",
                    "for a model of XGBoost set backend: \"xgboost\", else " + SAVE_LIGHTGBM);
        }
        DocumentReader document = binary(bytes, first, length)
                ? new UbjDocumentReader(bytes, length)
                : new JsonDocumentReader(bytes, length);
        return described(file, SAVE_XGBOOST, () -> XgboostReader.read(document, covers));
    }

    /** Whether a document that begins with a brace is UBJ: a length follows instead of a quotation mark. */
    private static boolean binary(byte[] bytes, int first, int length) {
        int at = first + 1;
        return at < length && "iUIlL$#N".indexOf(bytes[at]) >= 0;
    }

    private static String foreign(byte[] bytes, int length, boolean xgboost) {
        if (length >= 2 && (bytes[0] & 0xff) == 0x80 && bytes[1] <= 5 && bytes[1] > 1) {
            return "it is a Python pickle, which the backend 'sklearn' serves under the name model.pkl";
        }
        if (length >= 2 && bytes[0] == 0x1f && (bytes[1] & 0xff) == 0x8b) {
            return "it is compressed";
        }
        if (xgboost) {
            return "it is neither JSON nor UBJ; the binary format of XGBoost before 3.1 is not supported";
        }
        return "it is not LightGBM's text format, which begins with a line 'tree'";
    }

    /** Reads a document. */
    private interface Reading {
        ParsedModel read();
    }

    private static ParsedModel described(Path file, String remedy, Reading reading) {
        try {
            return reading.read();
        } catch (ServingException e) {
            String own = e.remedy();
            throw invalid(file, e.getMessage(), own == null ? "it may be damaged: " + remedy + " again" : own);
        }
    }

    private static ServingException invalid(Path file, String why, String remedy) {
        return ServingException.invalidArgument("model file '" + file + "' cannot be loaded: " + why, remedy);
    }
}
