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
 * Whether the native libraries run here: they need libgomp, and a platform that their jars know. A test that needs one says
 * so when it is skipped; with {@code -Dnereid.oracles=required} it fails. Loaded once, immutable after that.
 */
final class NativeLibraries {
    private static final Logger LOG = LoggerFactory.getLogger(NativeLibraries.class);
    private static final String XGBOOST;
    private static final String LIGHTGBM;

    static {
        // They are unpacked under fixed names, so nobody else may write there.
        String temporary = System.getProperty("java.io.tmpdir");
        try {
            Path own = Files.createTempDirectory(
                    Files.createDirectories(Path.of("target").toAbsolutePath()), "native");
            System.setProperty("java.io.tmpdir", own.toString());
            XGBOOST = missing(() -> new NativeXgboost(References.model("xgboost", "old-count")).close());
            LIGHTGBM = missing(() -> {
                LGBMBooster.loadNative();
                // Where that found nothing it says nothing.
                lightgbmlib.delete_intp(lightgbmlib.new_intp());
            });
            // What is loaded stays where it is in memory.
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

    /** What loads a library. */
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
