// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import static org.assertj.core.api.Assertions.assertThat;

import com.microsoft.ml.lightgbm.lightgbmlib;
import io.github.metarank.lightgbm4j.LGBMBooster;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import ml.dmlc.xgboost4j.java.XGBoostError;
import org.junit.jupiter.api.Assumptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the native libraries run here: they need libgomp, and a platform that their jars support. A test that needs
 * one is skipped with a message; with {@code -Dnereid.oracles=required} it fails. Loaded once, immutable after that.
 */
final class NativeLibraries {
    private static final Logger LOG = LoggerFactory.getLogger(NativeLibraries.class);
    private static final String XGBOOST;
    private static final String LIGHTGBM;

    static {
        // The libraries are unpacked under fixed names, so other users must not be able to write there.
        String temporary = System.getProperty("java.io.tmpdir");
        try {
            Path own = Files.createTempDirectory(
                    Files.createDirectories(Path.of("target").toAbsolutePath()), "native");
            System.setProperty("java.io.tmpdir", own.toString());
            XGBOOST = missing(() -> new NativeXgboost(References.model("xgboost", "old-count")).close());
            LIGHTGBM = missing(() -> {
                LGBMBooster.loadNative();
                // loadNative ignores a missing library; the first call then fails.
                lightgbmlib.delete_intp(lightgbmlib.new_intp());
            });
            // A loaded library stays in memory, so its file can be deleted.
            try (Stream<Path> files = Files.list(own)) {
                for (Path file : files.toList()) {
                    Files.delete(file);
                }
            }
            Files.delete(own);
        } catch (IOException e) {
            throw new ExceptionInInitializerError(e);
        } finally {
            System.setProperty("java.io.tmpdir", temporary);
        }
    }

    private NativeLibraries() {}

    /** Loads a library. */
    @FunctionalInterface
    private interface Loading {
        void run() throws IOException, XGBoostError;
    }

    private static String missing(Loading loading) {
        try {
            loading.run();
            return "";
        } catch (IOException | XGBoostError | LinkageError e) {
            return e.toString();
        }
    }

    static void needXgboost() {
        need("XGBoost4J", XGBOOST);
    }

    static void needLightgbm() {
        need("lightgbm4j", LIGHTGBM);
    }

    private static void need(String library, String missing) {
        if (!missing.isEmpty()) {
            String message = "NOT TESTED: " + library + " does not run here (is libgomp installed?): " + missing;
            LOG.warn(message);
            assertThat(System.getProperty("nereid.oracles", "")).as(message).isNotEqualTo("required");
            Assumptions.abort(message);
        }
    }
}
