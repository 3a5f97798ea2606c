// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

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
 * The classes of a jar that somebody else has made, behind a class loader of their own over a copy of the jar, so that the jar
 * may be replaced while they are in use. They see the JDK, their jar and what is shown to them, nothing else of the server.
 * Immutable; thread-safe until it is closed.
 */
public final class IsolatedJar implements AutoCloseable {
    /**
     * How errors name things.
     *
     * @param noun what the jar is to bring, such as {@code model}
     * @param setting where a class is named, such as {@code the parameter 'class'}
     * @param seen what is shown to the jar, in words
     */
    public record Words(String noun, String setting, String seen) {}

    private final Path jar;
    private final Path copy;
    private final URLClassLoader loader;
    private final Words words;

    private IsolatedJar(Path jar, Path copy, URLClassLoader loader, Words words) {
        this.jar = jar;
        this.copy = copy;
        this.loader = loader;
        this.words = words;
    }

    /**
     * Opens a jar.
     *
     * @param scratch a directory for the copy; made when it is missing
     * @param shown beginnings of the names of classes that are shown to it, such as {@code io.nereid.tensor.}
     * @param from where these are
     * @throws ServingException INVALID_ARGUMENT for what is no jar, FAILED_PRECONDITION when it cannot be copied
     */
    public static IsolatedJar open(Path jar, Path scratch, List<String> shown, ClassLoader from, Words words) {
        try (ZipFile readable = new ZipFile(jar.toFile())) {
            readable.size();
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read " + jar + ": " + e.getMessage(),
                    "put a complete jar there",
                    e);
        }
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

    /** The loader of the jar's classes. */
    public ClassLoader loader() {
        return loader;
    }

    /**
     * An object of the class that is named, or of the only one that the jar offers as a service.
     *
     * @param name the class; empty for the only one
     * @param types what it is to be: one of these
     * @throws ServingException INVALID_ARGUMENT when there is no such class
     * @throws ReflectiveOperationException what its constructor throws, as {@link InvocationTargetException}
     */
    public Object make(String name, Class<?>... types) throws ReflectiveOperationException {
        return name.isEmpty() ? only(types) : named(name, types);
    }

    private Object named(String name, Class<?>... types) throws ReflectiveOperationException {
        Class<?> type;
        try {
            type = Class.forName(name, true, loader);
        } catch (ClassNotFoundException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "there is no class '" + name + "' in " + jar,
                    "correct " + words.setting,
                    e);
        }
        if (Stream.of(types).noneMatch(t -> t.isAssignableFrom(type))) {
            throw ServingException.invalidArgument(
                    "class '" + name + "' in " + jar + " is no " + words.noun, "let it implement " + names("", types));
        }
        try {
            return type.getConstructor().newInstance();
        } catch (NoSuchMethodException | IllegalAccessException | InstantiationException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "class '" + name + "' in " + jar + " cannot be made a " + words.noun + " of",
                    "let it be public, not abstract, and have a public constructor without arguments",
                    e);
        }
    }

    private Object only(Class<?>... types) {
        List<Object> found = new ArrayList<>();
        for (Class<?> type : types) {
            ServiceLoader.load(type, loader).forEach(found::add);
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
     * What to say when a class of the jar could not be had, for a reason that the class gave.
     *
     * @param what what was to be made of it, such as {@code model 'm'}
     * @param types as of {@link #make}
     */
    public ServingException failure(String what, Throwable e, Class<?>... types) {
        Throwable cause = innermost(e);
        return ServingException.wrap(
                ErrorCode.INVALID_ARGUMENT,
                "cannot load " + what + " from " + jar + ": " + reason(e, cause),
                remedy(e, cause, types),
                e);
    }

    /** What a constructor or an initialiser threw, rather than that it threw. */
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
                    + words.seen;
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

    /** Lets go of the classes and deletes the copy; none of them may be in use any more. */
    @Override
    public void close() {
        try {
            loader.close();
            Files.deleteIfExists(copy);
        } catch (IOException e) {
            throw ServingException.internal("cannot close " + copy, e);
        }
    }

    /** Shows a jar the JDK and the classes that it needs, nothing else of the server. */
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
