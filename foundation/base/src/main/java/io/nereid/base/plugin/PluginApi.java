// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.plugin;

import io.nereid.base.ApiVersion;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.ServiceConfigurationError;
import java.util.jar.JarFile;
import java.util.jar.Manifest;
import org.jspecify.annotations.Nullable;

/**
 * Compares the version of the API that a jar was built for with that of this server: before its classes are loaded by
 * the jar's manifest, and afterwards by the errors of linking them. Has no state.
 */
public final class PluginApi {
    private static final String OURS = "io.nereid.";

    private PluginApi() {}

    /**
     * Rejects a jar that says in its manifest that it was built for a version of the API that this server does not
     * support.
     *
     * @return whether the jar says for which version it was built
     * @throws ServingException FAILED_PRECONDITION for an unsupported version, INVALID_ARGUMENT for one that is not a
     *     version
     */
    public static boolean check(Path jar) {
        String text = version(jar);
        if (text == null) {
            return false;
        }
        ApiVersion built;
        try {
            built = ApiVersion.parse(text);
        } catch (ServingException e) {
            throw ServingException.invalidArgument(
                    "the manifest of " + jar + " is invalid: " + ApiVersion.MANIFEST_ATTRIBUTE + " " + e.getMessage(),
                    "build the jar again with the version of the API that it is compiled against");
        }
        if (!ApiVersion.CURRENT.supports(built)) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    jar + " was built for version " + built + " of Nereid's plugin API (expected: " + expected() + ")",
                    remedy());
        }
        return true;
    }

    /** The attribute of a jar's manifest; null without one, and for a file that is not a jar. */
    private static @Nullable String version(Path jar) {
        try (JarFile file = new JarFile(jar.toFile(), false)) {
            Manifest manifest = file.getManifest();
            return manifest == null ? null : manifest.getMainAttributes().getValue(ApiVersion.MANIFEST_ATTRIBUTE);
        } catch (IOException e) {
            return null;
        }
    }

    private static String expected() {
        ApiVersion current = ApiVersion.CURRENT;
        return current.minor() == 0 ? current.toString() : current.major() + ".0 to " + current;
    }

    private static String remedy() {
        return "compile it against version " + ApiVersion.CURRENT
                + " of the API, or use the release of the server that it was built for";
    }

    /**
     * Explains an error of linking or creating the classes of a jar, if its reason is that the jar was compiled against
     * another version of the API; else returns null.
     *
     * @param what what the jar provides, such as {@code plugin 'tensorflow'}
     */
    public static @Nullable ServingException mismatch(String what, Throwable error) {
        String reason = reason(error);
        return reason == null
                ? null
                : ServingException.wrap(
                        ErrorCode.FAILED_PRECONDITION,
                        what + " was compiled against another version of Nereid's plugin API than " + ApiVersion.CURRENT
                                + ": " + reason,
                        remedy(),
                        error);
    }

    private static @Nullable String reason(Throwable error) {
        Throwable e = error;
        while (e.getCause() != null
                && (e instanceof ServiceConfigurationError
                        || e instanceof ExceptionInInitializerError
                        || e instanceof ReflectiveOperationException)) {
            e = e.getCause();
        }
        String text = String.valueOf(e.getMessage());
        if (e instanceof NoClassDefFoundError || e instanceof ClassNotFoundException) {
            String name = text.replace('/', '.');
            return name.startsWith(OURS) ? "it uses the class '" + name + "', which does not exist" : null;
        }
        if (e instanceof AbstractMethodError && calledByServer(e)) {
            return text.replace('/', '.');
        }
        if (!(e instanceof IncompatibleClassChangeError) || !text.contains(OURS)) {
            return null;
        }
        if (e instanceof NoSuchMethodError) {
            return "it calls the method " + text + ", which does not exist";
        }
        if (e instanceof NoSuchFieldError) {
            return "it uses the field " + text + ", which does not exist";
        }
        return text;
    }

    /**
     * Whether the server called the method that the jar lacks. Newer JVMs do not name the interface in the message, and
     * report the missing method itself as the place of the error.
     */
    private static boolean calledByServer(Throwable e) {
        return Arrays.stream(e.getStackTrace())
                .limit(2)
                .anyMatch(frame -> frame.getClassName().startsWith(OURS));
    }
}
