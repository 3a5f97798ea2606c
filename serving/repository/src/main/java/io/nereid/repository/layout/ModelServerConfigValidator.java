// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.base.ServingException;
import io.nereid.repository.config.ModelNames;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.LoggingConfig;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Validates each model of a list. Immutable. */
final class ModelServerConfigValidator {
    private static final String FILE = "file:";

    private ModelServerConfigValidator() {}

    static void check(ModelListEntry m) {
        name(m.name());
        if (m.platform().isEmpty()) {
            throw ServingException.invalidArgument(
                    "Illegal setting neither ModelServerConfig::model_type (deprecated) nor"
                            + " ModelServerConfig::model_platform. model name is " + m.name(),
                    "write model_platform: \"tensorflow\", which stands for any model format");
        }
        Path unused = directory(m);
        policy(m.name(), m.versionPolicy());
        m.labels().forEach((label, meaning) -> label(m.name(), label, meaning));
        LoggingConfig logging = m.logging();
        if (logging != null) {
            logging(m.name(), logging);
        }
    }

    private static void name(String name) {
        if (name.isEmpty()) {
            throw ServingException.invalidArgument("a model of the list has no name", "write name: \"…\"");
        }
        if (!ModelNames.valid(name)) {
            throw ServingException.invalidArgument(
                    "invalid model name " + ProblemCollector.quote(name),
                    "a name has no '/' and no '\\\\', does not begin with '.', and has at most 255 characters");
        }
    }

    /** Returns the base path as a local directory; rejects other URI schemes and relative paths. */
    static Path directory(ModelListEntry m) {
        String given = m.basePath();
        String scheme = scheme(given);
        if (scheme != null && !scheme.equals("file")) {
            throw ServingException.invalidArgument(
                    "Model " + m.name() + " has its base path in '" + scheme + "', which this server does not read; got"
                            + " base_path()=" + given,
                    "mount it as a directory, or copy it to one, and give that directory's path");
        }
        String local = scheme == null ? given : "/" + stripSlashes(given.substring(FILE.length()));
        try {
            Path path = Path.of(local);
            if (path.isAbsolute()) {
                return path.normalize();
            }
        } catch (InvalidPathException e) {
            throw ServingException.invalidArgument(
                    "Model " + m.name() + " has the base path " + ProblemCollector.quote(given)
                            + ", which no directory can have",
                    "give the path of a directory");
        }
        throw ServingException.invalidArgument(
                "Expected model " + m.name() + " to have an absolute path or URI; got base_path()=" + given,
                "begin the path with '/'");
    }

    /** The scheme before {@code ://} in lower case; null if the text is not a URI. */
    private static @Nullable String scheme(String path) {
        int end = path.indexOf("://");
        if (end <= 0) {
            return null;
        }
        for (int i = 0; i < end; i++) {
            char c = path.charAt(i);
            boolean letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))) {
                return null;
            }
        }
        return path.substring(0, end).toLowerCase(Locale.ROOT);
    }

    private static String stripSlashes(String path) {
        int start = 0;
        while (start < path.length() && path.charAt(start) == '/') {
            start++;
        }
        return path.substring(start);
    }

    private static void policy(String model, @Nullable VersionPolicy policy) {
        if (policy == null) {
            return;
        }
        if (policy.kind() == VersionPolicy.Kind.SPECIFIC && policy.versions().isEmpty()) {
            throw ServingException.invalidArgument(
                    "the specific version policy of model " + model + " names no version",
                    "write specific { versions: 1 }, or leave the policy out for the latest version");
        }
        if (policy.kind() == VersionPolicy.Kind.LATEST && policy.count() < 1) {
            throw ServingException.invalidArgument(
                    "the latest version policy of model " + model + " asks for " + policy.count()
                            + " versions (expected: at least 1)",
                    null);
        }
        for (long version : policy.versions()) {
            version(model, version, "version policy");
        }
    }

    private static void version(String model, long version, String what) {
        if (version < 0) {
            throw ServingException.invalidArgument(
                    "the " + what + " of model " + model + " names version " + version + " (expected: at least 0)",
                    null);
        }
    }

    private static void label(String model, String label, VersionLabel meaning) {
        String what = "label " + ProblemCollector.quote(label);
        if (label.isEmpty()) {
            throw ServingException.invalidArgument(
                    "model " + model + " has a label without a name", "write key: \"…\"");
        }
        if (meaning.targets().isEmpty()) {
            throw ServingException.invalidArgument(
                    what + " of model " + model + " has no targets", "write targets { version: 1 weight: 1 }");
        }
        for (WeightedVersion share : meaning.targets()) {
            version(model, share.version(), what);
            if (!(share.weight() > 0) || Double.isInfinite(share.weight())) {
                throw ServingException.invalidArgument(
                        what + " of model " + model + " gives version " + share.version() + " the weight "
                                + share.weight() + " (expected: more than 0)",
                        "leave out a version that is not to get requests");
            }
        }
        for (WeightedVersion share : meaning.shadows()) {
            version(model, share.version(), what);
            if (!(share.weight() > 0 && share.weight() <= 1)) {
                throw ServingException.invalidArgument(
                        what + " of model " + model + " shadows version " + share.version() + " with " + share.weight()
                                + " of the requests (expected: more than 0, at most 1)",
                        null);
            }
        }
        unique(model, what, meaning);
    }

    private static void unique(String model, String what, VersionLabel meaning) {
        Map<Long, WeightedVersion> targets = new java.util.HashMap<>();
        for (WeightedVersion share : meaning.targets()) {
            if (targets.put(share.version(), share) != null) {
                throw ServingException.invalidArgument(
                        what + " of model " + model + " names version " + share.version() + " twice",
                        "add the weights");
            }
        }
    }

    private static void logging(String model, LoggingConfig logging) {
        if (!logging.type().isEmpty() && !logging.type().equals("tfrecord")) {
            throw ServingException.invalidArgument(
                    "the logging_config of model " + model + " asks for a log of type "
                            + ProblemCollector.quote(logging.type()) + " (expected: 'tfrecord')",
                    "write type: \"tfrecord\", or leave it out");
        }
        if (!(logging.samplingRate() >= 0 && logging.samplingRate() <= 1)) {
            throw ServingException.invalidArgument(
                    "the logging_config of model " + model + " has a sampling_rate of " + logging.samplingRate()
                            + " (expected: 0 to 1)",
                    "0.01 logs a hundredth of the requests");
        }
        if (logging.samplingRate() > 0 && logging.filePrefix().isEmpty()) {
            throw ServingException.invalidArgument(
                    "the logging_config of model " + model + " has no filename_prefix",
                    "write log_collector_config { filename_prefix: \"/logs/" + model + "\" }");
        }
    }
}
