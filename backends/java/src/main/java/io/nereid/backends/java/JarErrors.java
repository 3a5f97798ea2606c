// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.base.Code;
import io.nereid.base.ServingException;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Path;
import java.util.ServiceConfigurationError;

/** Says what is wrong with a jar in words for those who made it. Stateless. */
final class JarErrors {
    private JarErrors() {}

    /** A model could not be loaded from its jar, for a reason that a class of it gave. */
    static ServingException loading(String model, Path jar, Throwable e) {
        Throwable cause = innermost(e);
        return ServingException.wrap(
                Code.INVALID_ARGUMENT,
                "cannot load model '" + model + "' from " + jar + ": " + reason(e, cause),
                remedy(e, cause),
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

    private static String remedy(Throwable e, Throwable cause) {
        if (cause instanceof UnsupportedClassVersionError) {
            return "compile it for Java " + Runtime.version().feature() + " or older (javac --release "
                    + Runtime.version().feature() + "), or run the server with a newer Java";
        }
        if (cause instanceof NoClassDefFoundError || cause instanceof ClassNotFoundException) {
            return "put the libraries that the model needs into its jar; of the server it sees the packages io.nereid.base, "
                    + "tensor, spi and backend and the interface JavaModel";
        }
        if (cause instanceof ClassFormatError || cause instanceof VerifyError) {
            return "the jar is damaged; build it again";
        }
        if (e instanceof ServiceConfigurationError) {
            return "let META-INF/services/" + JavaModel.class.getName()
                    + " name public classes of the jar that implement it and have a public constructor without arguments";
        }
        return "check the class and what it needs; it sees the JDK, its jar and Nereid's model interfaces";
    }

    private static String text(Throwable e) {
        return e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
    }
}
