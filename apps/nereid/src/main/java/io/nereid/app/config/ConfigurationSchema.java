// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.config;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Stream;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The JSON schema (draft 2020-12) of the configuration file, made of the options of a command. Stateless. */
final class ConfigurationSchema {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    private ConfigurationSchema() {}

    static ObjectNode of(CommandSpec serve) {
        ObjectNode schema = NODES.objectNode()
                .put("$schema", "https://json-schema.org/draft/2020-12/schema")
                .put("title", "The configuration file of nereid serve")
                .put("type", "object")
                .put("additionalProperties", false);
        ObjectNode properties = schema.putObject("properties");
        properties.set(
                "models",
                listOrOne(NODES.objectNode().put("type", "string"))
                        .put("description", "Model repositories, models or model files."));
        for (OptionSpec option : serve.options()) {
            if (option.hidden() || !ServeConfiguration.isInFile(option)) {
                continue;
            }
            ObjectNode value = type(option);
            ObjectNode property = option.isMultiValue() ? listOrOne(value) : value;
            property.put("description", description(option));
            if (option.defaultValue() != null && !option.isMultiValue()) {
                putDefault(property, option);
            }
            for (String name : option.names()) {
                properties.set(name.replaceFirst("^-+", ""), property.deepCopy());
            }
        }
        return schema;
    }

    private static ObjectNode listOrOne(ObjectNode value) {
        ObjectNode either = NODES.objectNode();
        ArrayNode forms = either.putArray("anyOf");
        forms.add(value);
        forms.addObject().put("type", "array").set("items", value.deepCopy());
        return either;
    }

    /** The values of an option; texts may be written without quotes, and then are numbers or truth values in YAML. */
    private static ObjectNode type(OptionSpec option) {
        ObjectNode type = NODES.objectNode();
        Class<?> java = option.isMultiValue() ? option.auxiliaryTypes()[0] : option.type();
        if (java == Boolean.class || java == boolean.class) {
            return type.put("type", "boolean");
        }
        if (java == Integer.class || java == int.class || java == Long.class || java == long.class) {
            return type.put("type", "integer");
        }
        if (java.isEnum()) {
            ArrayNode values = type.putArray("enum");
            // The program takes them in either case; its help has them in lower case.
            Arrays.stream(java.getEnumConstants())
                    .map(Object::toString)
                    .flatMap(constant -> Stream.of(constant.toLowerCase(Locale.ROOT), constant))
                    .distinct()
                    .forEach(values::add);
            return type;
        }
        type.putArray("type").add("string").add("number").add("boolean");
        return type;
    }

    private static void putDefault(ObjectNode property, OptionSpec option) {
        String value = option.defaultValue();
        switch (property.path("type").asText()) {
            case "integer" -> property.put("default", Long.parseLong(value));
            case "boolean" -> property.put("default", Boolean.parseBoolean(value));
            default -> property.put("default", value);
        }
    }

    private static String description(OptionSpec option) {
        String text = String.join(" ", option.description());
        String value = option.defaultValue() == null ? "none" : option.defaultValue();
        return Ansi.OFF.string(text.replace("${DEFAULT-VALUE}", value));
    }
}
