// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.junit;

import io.nereid.base.ServingException;
import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import io.nereid.embedded.server.EmbeddedServer;
import io.nereid.spi.management.ModelStatus;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;

/** What {@link NereidTest} does: one {@link Nereid} for the class and the classes nested in it. Thread-safe. */
final class NereidExtension implements BeforeAllCallback, AfterAllCallback, ParameterResolver {
    private static final Namespace NAMESPACE = Namespace.create(NereidExtension.class);
    private static final Pattern PROPERTY = Pattern.compile("\\$\\{([^}]+)}");
    private static final Set<Class<?>> TYPES = Set.of(Nereid.class, Model.class, EmbeddedServer.class);

    /** The models of a class. */
    private record Running(Nereid nereid, @Nullable EmbeddedServer server) {
        void close() {
            if (server != null) {
                server.close();
            }
            nereid.close();
        }
    }

    NereidExtension() {}

    @Override
    public void beforeAll(ExtensionContext context) {
        NereidTest settings = context.getRequiredTestClass().getAnnotation(NereidTest.class);
        if (settings == null) {
            // A nested class, which has the models of the outer one.
            return;
        }
        Nereid.Builder builder = Nereid.builder();
        for (String repository : settings.repositories()) {
            builder.repository(path(repository));
        }
        for (String model : settings.models()) {
            int equals = model.indexOf('=');
            if (equals < 1) {
                throw new ExtensionConfigurationException("models of @NereidTest has '" + model
                        + "' (expected: NAME=PATH, such as \"iris=src/test/models/iris.onnx\")");
            }
            builder.model(model.substring(0, equals), path(model.substring(equals + 1)));
        }
        Nereid nereid = builder.build();
        try {
            EmbeddedServer server = settings.server()
                    ? EmbeddedServer.builder(nereid).listen("127.0.0.1", 0).start()
                    : null;
            context.getStore(NAMESPACE).put(Running.class, new Running(nereid, server));
        } catch (RuntimeException e) {
            nereid.close();
            throw e;
        }
    }

    /** A path with the values of the system properties that it names, such as {@code ${models}/iris}. */
    private static Path path(String text) {
        Matcher property = PROPERTY.matcher(text);
        StringBuilder path = new StringBuilder();
        while (property.find()) {
            String value = System.getProperty(property.group(1));
            if (value == null) {
                throw new ExtensionConfigurationException("the path '" + text
                        + "' of @NereidTest names the system property '" + property.group(1) + "', which is not set");
            }
            property.appendReplacement(path, Matcher.quoteReplacement(value));
        }
        return Path.of(property.appendTail(path).toString());
    }

    @Override
    public void afterAll(ExtensionContext context) {
        if (context.getRequiredTestClass().isAnnotationPresent(NereidTest.class)) {
            Running running = context.getStore(NAMESPACE).remove(Running.class, Running.class);
            if (running != null) {
                running.close();
            }
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return TYPES.contains(parameter.getParameter().getType());
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        Running running = context.getStore(NAMESPACE).get(Running.class, Running.class);
        if (running == null) {
            throw new ParameterResolutionException("there are no models before the first test of the class");
        }
        Class<?> type = parameter.getParameter().getType();
        if (type == Nereid.class) {
            return running.nereid;
        }
        if (type == EmbeddedServer.class) {
            if (running.server == null) {
                throw new ParameterResolutionException("there is no server; set @NereidTest(server = true)");
            }
            return running.server;
        }
        try {
            return running.nereid.model(parameter
                    .findAnnotation(ModelName.class)
                    .map(ModelName::value)
                    .orElseGet(() -> only(running.nereid)));
        } catch (ServingException e) {
            throw new ParameterResolutionException(e.getMessage(), e);
        }
    }

    private static String only(Nereid nereid) {
        List<String> names = nereid.models().stream().map(ModelStatus::model).toList();
        if (names.size() != 1) {
            throw new ParameterResolutionException("the models are " + String.join(", ", names)
                    + "; say which one by @ModelName(\"" + (names.isEmpty() ? "name" : names.get(0)) + "\")");
        }
        return names.get(0);
    }
}
