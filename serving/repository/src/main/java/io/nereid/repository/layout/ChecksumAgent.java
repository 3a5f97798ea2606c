// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.TextFiles;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Triton's repository agent {@code checksum}: its parameters {@code MD5:<file>} and {@code SHA256:<file>}, relative to
 * the model's directory, are the expected checksums of files. Reads whole files. Immutable.
 */
public final class ChecksumAgent {
    private static final String NAME = "checksum";
    private static final Map<String, String> ALGORITHMS = Map.of("MD5", "MD5", "SHA256", "SHA-256");
    private static final int BUFFER = 1 << 16;

    private ChecksumAgent() {}

    /** Returns the model, with an error for the first file whose checksum does not match. */
    public static StoredModel verified(StoredModel model) {
        for (Object agent : list(
                map(model.config().document().get("model_repository_agents")).get("agents"))) {
            String name = String.valueOf(map(agent).get("name"));
            if (!name.equals(NAME)) {
                return model.withError(
                        "unknown repository agent " + ProblemCollector.quote(name) + " for model '"
                                + model.entry().name() + "'",
                        "this server has the agent 'checksum' only");
            }
            for (Map.Entry<?, ?> e : map(map(agent).get("parameters")).entrySet()) {
                StoredModel checked = verified(model, String.valueOf(e.getKey()), String.valueOf(e.getValue()));
                if (checked != model) {
                    return checked;
                }
            }
        }
        return model;
    }

    private static StoredModel verified(StoredModel model, String key, String expected) {
        int colon = key.indexOf(':');
        String algorithm = colon < 0 ? null : ALGORITHMS.get(key.substring(0, colon));
        if (algorithm == null) {
            return model.withError(
                    "agent 'checksum' does not know the parameter " + ProblemCollector.quote(key),
                    "expected 'MD5:<file>' or 'SHA256:<file>'");
        }
        String name = key.substring(colon + 1);
        try {
            Path file = TextFiles.inside(model.entry().directory(), name);
            String sum = sum(file, algorithm);
            if (sum.equals(expected.strip().toLowerCase(Locale.ROOT))) {
                return model;
            }
            return model.withError(
                    "Mismatched " + key.substring(0, colon) + " hash for file " + ProblemCollector.quote(name)
                            + ": it is " + sum + ", expected " + ProblemCollector.quote(expected),
                    "copy the file again, or correct the sum");
        } catch (ServingException e) {
            return model.withError("agent 'checksum': " + e.getMessage(), e.remedy());
        } catch (IOException e) {
            return model.withError(
                    "agent 'checksum': cannot read file " + ProblemCollector.quote(name) + ": " + TextFiles.reason(e),
                    "make it readable for the server");
        }
    }

    private static String sum(Path file, String algorithm) throws IOException {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance(algorithm);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has " + algorithm, e);
        }
        byte[] buffer = new byte[BUFFER];
        try (InputStream in = Files.newInputStream(file)) {
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                digest.update(buffer, 0, n);
            }
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static Map<?, ?> map(@Nullable Object value) {
        return value instanceof Map<?, ?> m ? m : Map.of();
    }

    private static List<?> list(@Nullable Object value) {
        return value instanceof List<?> l ? l : List.of();
    }
}
