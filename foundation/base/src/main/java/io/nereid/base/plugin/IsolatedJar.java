// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.plugin;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipFile;

/**
 * A user's jar in a class loader of its own, which reads a copy of the jar so that the original may be replaced while
 * its classes are in use. The classes of the jar see the JDK, the jar itself and the packages that the server exposes
 * to them, and nothing else of the server, so that their libraries cannot conflict with the server's. Immutable;
 * thread-safe until {@link #close}.
 */
public final class IsolatedJar implements AutoCloseable {
    /**
     * Terms for error messages.
     *
     * @param noun what the jar provides, such as {@code model}
     * @param setting the setting that names the class, such as {@code the parameter 'class'}
     * @param exposed description of what is exposed to the jar
     */
    public record Terms(String noun, String setting, String exposed) {}

    private final Path jar;
    private final Path copy;
    private final URLClassLoader classLoader;
    private final Terms words;

    private IsolatedJar(Path jar, Path copy, URLClassLoader loader, Terms words) {
        this.jar = jar;
        this.copy = copy;
        this.classLoader = loader;
        this.words = words;
    }

    /**
     * Copies and opens a jar.
     *
     * @param scratch the directory for the copy; created when missing
     * @param shown prefixes of the class names that are exposed to the jar, such as {@code io.nereid.tensor.}
     * @param from the class loader of the exposed classes
     * @throws ServingException INVALID_ARGUMENT when the file is not a jar, FAILED_PRECONDITION when it was built for
     *     another version of the API or cannot be copied
     */
    public static IsolatedJar open(Path jar, Path scratch, List<String> shown, ClassLoader from, Terms words) {
        try (ZipFile readable = new ZipFile(jar.toFile())) {
            readable.size();
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read " + jar + ": " + e.getMessage(),
                    "put a complete jar there",
                    e);
        }
        PluginApi.check(jar);
        try {
            Files.createDirectories(scratch);
            Path copy = Files.createTempFile(scratch, words.noun + "-", ".jar");
            Files.copy(jar, copy, StandardCopyOption.REPLACE_EXISTING);
            URLClassLoader loader = new URLClassLoader(
                    "nereid-" + words.noun, urls(copy), new Shown("nereid-" + words.noun + "-interfaces", shown, from));
            return new IsolatedJar(jar, copy, loader, words);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION, "cannot copy " + jar + " to " + scratch + ": " + e.getMessage(), e);
        }
    }

    private static URL[] urls(Path file) throws MalformedURLException {
        return new URL[] {file.toUri().toURL()};
    }

    /** The class loader of the jar's classes. */
    public ClassLoader classLoader() {
        return classLoader;
    }

    /**
     * Creates an object of the named class, or of the only class that the jar registers as a service.
     *
     * @param name the class name; empty for the only registered one
     * @param types the interfaces of which the class must implement at least one
     * @throws ServingException INVALID_ARGUMENT when the jar has no such class
     * @throws ReflectiveOperationException what the constructor throws, as {@link InvocationTargetException}
     */
    public Object newInstance(String name, Class<?>... types) throws ReflectiveOperationException {
        return name.isEmpty() ? only(types) : named(name, types);
    }

    private Object named(String name, Class<?>... types) throws ReflectiveOperationException {
        Class<?> type;
        try {
            type = Class.forName(name, true, classLoader);
        } catch (ClassNotFoundException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "there is no class '" + name + "' in " + jar,
                    "correct " + words.setting,
                    e);
        }
        if (Stream.of(types).noneMatch(t -> t.isAssignableFrom(type))) {
            throw ServingException.invalidArgument(
                    "class '" + name + "' in " + jar + " is not a " + words.noun,
                    "let it implement " + names("", types));
        }
        try {
            return type.getConstructor().newInstance();
        } catch (NoSuchMethodException | IllegalAccessException | InstantiationException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "class '" + name + "' in " + jar + " cannot be instantiated as a " + words.noun,
                    "let it be public, not abstract, and have a public constructor without arguments",
                    e);
        }
    }

    private Object only(Class<?>... types) {
        List<Object> found = new ArrayList<>();
        for (Class<?> type : types) {
            ServiceLoader.load(type, classLoader).forEach(found::add);
        }
        if (found.isEmpty()) {
            throw ServingException.invalidArgument(
                    jar + " offers no " + words.noun,
                    "name the class in " + names("META-INF/services/", types) + " or in " + words.setting);
        }
        if (found.size() > 1) {
            throw ServingException.invalidArgument(
                    jar + " offers more than one " + words.noun + ": "
                            + found.get(0).getClass().getName() + " and "
                            + found.get(1).getClass().getName(),
                    "name the one that is meant in " + words.setting);
        }
        return found.get(0);
    }

    private static String names(String before, Class<?>... types) {
        return Stream.of(types).map(t -> before + t.getName()).collect(Collectors.joining(" or "));
    }

    /**
     * Describes a failure to load or create a class of the jar, with the step that fixes it.
     *
     * @param what what the class was needed for, such as {@code model 'm'}
     * @param types as for {@link #newInstance}
     */
    public ServingException failure(String what, Throwable e, Class<?>... types) {
        ServingException mismatch = PluginApi.mismatch(what + " in " + jar, e);
        if (mismatch != null) {
            return mismatch;
        }
        Throwable cause = innermost(e);
        return ServingException.wrap(
                ErrorCode.INVALID_ARGUMENT,
                "cannot load " + what + " from " + jar + ": " + reason(e, cause),
                remedy(e, cause, types),
                e);
    }

    /** Unwraps what a constructor or a static initialiser threw. */
    private static Throwable innermost(Throwable e) {
        Throwable cause = e.getCause();
        boolean shell = e instanceof InvocationTargetException
                || e instanceof ExceptionInInitializerError
                || e instanceof ServiceConfigurationError;
        return shell && cause != null ? innermost(cause) : e;
    }

    private static String reason(Throwable e, Throwable cause) {
        if (cause instanceof NoSuchMethodException || cause instanceof IllegalAccessException) {
            return text(e);
        }
        if (cause instanceof NoClassDefFoundError || cause instanceof ClassNotFoundException) {
            return "it needs class '" + text(cause).replace('/', '.') + "', which is not in it";
        }
        return text(cause);
    }

    private String remedy(Throwable e, Throwable cause, Class<?>... types) {
        if (cause instanceof UnsupportedClassVersionError) {
            return "compile it for Java " + Runtime.version().feature() + " or older (javac --release "
                    + Runtime.version().feature() + "), or run the server with a newer Java";
        }
        if (cause instanceof NoClassDefFoundError || cause instanceof ClassNotFoundException) {
            return "put the libraries that the " + words.noun + " needs into its jar; of the server it sees "
                    + words.exposed;
        }
        if (cause instanceof ClassFormatError || cause instanceof VerifyError) {
            return "the jar is damaged; build it again";
        }
        if (e instanceof ServiceConfigurationError) {
            return "let " + names("META-INF/services/", types)
                    + " name public classes of the jar that implement it and have a public constructor without"
                    + " arguments";
        }
        return "check the class and what it needs; it sees the JDK, its jar and Nereid's " + words.noun + " interfaces";
    }

    private static String text(Throwable e) {
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }

    /** Closes the class loader and deletes the copy. The classes must no longer be in use. */
    @Override
    public void close() {
        try {
            classLoader.close();
            Files.deleteIfExists(copy);
        } catch (IOException e) {
            throw ServingException.internal("cannot close " + copy, e);
        }
    }

    /** Exposes the JDK and the selected classes of the server. */
    private static final class Shown extends ClassLoader {
        private final List<String> shown;
        private final ClassLoader from;

        Shown(String name, List<String> shown, ClassLoader from) {
            super(name, ClassLoader.getPlatformClassLoader());
            this.shown = shown;
            this.from = from;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (shown.stream().anyMatch(name::startsWith)) {
                return Class.forName(name, false, from);
            }
            throw new ClassNotFoundException(name);
        }
    }
}
