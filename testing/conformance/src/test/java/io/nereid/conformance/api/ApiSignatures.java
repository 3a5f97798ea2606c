// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.conformance.api;

import io.nereid.base.Experimental;
import java.lang.reflect.AnnotatedArrayType;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.AnnotatedParameterizedType;
import java.lang.reflect.AnnotatedType;
import java.lang.reflect.AnnotatedTypeVariable;
import java.lang.reflect.AnnotatedWildcardType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.TypeVariable;
import java.lang.reflect.WildcardType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The public and protected signatures of classes as sorted lines of text, which {@link ApiComparison} compares. A line
 * is {@code key | properties}: the key identifies what callers and implementations are compiled against, with types as
 * in the source and nullness; the properties may change one by one. Has no state.
 *
 * <pre>{@code
 * type io.nereid.tensor.Tensor | class final implements:java.lang.AutoCloseable public
 * method io.nereid.tensor.Tensor.find(java.util.List<io.nereid.tensor.Tensor>,java.lang.String) io.nereid.tensor.@Nullable Tensor | public static
 * }</pre>
 */
final class ApiSignatures {
    private ApiSignatures() {}

    /** The lines of some classes and of their public and protected member classes: properties by key. */
    static Map<String, Set<String>> of(Collection<Class<?>> classes) {
        Map<String, Set<String>> lines = new TreeMap<>();
        classes.forEach(c -> add(c, lines));
        return lines;
    }

    private static void add(Class<?> type, Map<String, Set<String>> lines) {
        if (!visible(type.getModifiers())) {
            return;
        }
        lines.put("type " + type.getTypeName() + variables(type.getTypeParameters()), properties(type));
        boolean inherited = extensible(type);
        for (Constructor<?> c : type.getDeclaredConstructors()) {
            if (!c.isSynthetic() && reachable(c.getModifiers(), inherited)) {
                lines.put("constructor " + type.getTypeName() + parameters(c), properties(c, type));
            }
        }
        for (Method m : type.getDeclaredMethods()) {
            if (!m.isSynthetic() && reachable(m.getModifiers(), inherited) && !ofEveryEnum(m)) {
                String name = type.getTypeName() + '.' + m.getName();
                Set<String> properties = properties(m, type);
                if (m.isDefault()) {
                    properties.add("default");
                }
                lines.put(
                        "method " + name + variables(m.getTypeParameters()) + parameters(m) + ' '
                                + text(m.getAnnotatedReturnType()),
                        properties);
            }
        }
        for (Field f : type.getDeclaredFields()) {
            if (!f.isSynthetic() && reachable(f.getModifiers(), inherited)) {
                lines.put(
                        "field " + type.getTypeName() + '.' + f.getName() + ' ' + text(f.getAnnotatedType())
                                + constant(f),
                        properties(f, type));
            }
        }
        for (Class<?> member : type.getDeclaredClasses()) {
            add(member, lines);
        }
    }

    private static boolean visible(int modifiers) {
        return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
    }

    /** Protected members matter only where another module can extend the class. */
    private static boolean reachable(int modifiers, boolean extensible) {
        return Modifier.isPublic(modifiers) || (extensible && Modifier.isProtected(modifiers));
    }

    private static boolean extensible(Class<?> type) {
        return !Modifier.isFinal(type.getModifiers())
                && Arrays.stream(type.getDeclaredConstructors()).anyMatch(c -> visible(c.getModifiers()));
    }

    /** The two methods that the compiler adds to an enum. */
    private static boolean ofEveryEnum(Method m) {
        return m.getDeclaringClass().isEnum()
                && (m.getName().equals("values") && m.getParameterCount() == 0
                        || m.getName().equals("valueOf") && m.getParameterCount() == 1);
    }

    private static Set<String> properties(Class<?> type) {
        Set<String> properties = new TreeSet<>();
        properties.add(
                type.isAnnotation()
                        ? "annotation"
                        : type.isInterface()
                                ? "interface"
                                : type.isEnum() ? "enum" : type.isRecord() ? "record" : "class");
        modifiers(type.getModifiers() & ~(type.isInterface() ? Modifier.ABSTRACT : 0), properties);
        if (type.isInterface() || type.isRecord() || type.isEnum()) {
            properties.remove("static");
        }
        if (type.isSealed()) {
            properties.add("sealed");
        }
        AnnotatedType superclass = type.getAnnotatedSuperclass();
        if (superclass != null && !type.isEnum() && !type.isRecord() && superclass.getType() != Object.class) {
            properties.add("extends:" + text(superclass));
        }
        for (AnnotatedType each : type.getAnnotatedInterfaces()) {
            properties.add("implements:" + text(each));
        }
        if (experimental(type)) {
            properties.add("experimental");
        }
        return properties;
    }

    private static Set<String> properties(java.lang.reflect.Member member, Class<?> owner) {
        Set<String> properties = new TreeSet<>();
        int modifiers = member.getModifiers();
        if (member instanceof Method && Modifier.isFinal(owner.getModifiers())) {
            modifiers &= ~Modifier.FINAL;
        }
        modifiers(
                modifiers
                        & (Modifier.PUBLIC | Modifier.PROTECTED | Modifier.STATIC | Modifier.FINAL | Modifier.ABSTRACT),
                properties);
        if (member instanceof Executable e) {
            for (AnnotatedType thrown : e.getAnnotatedExceptionTypes()) {
                properties.add("throws:" + text(thrown));
            }
        }
        if (((AnnotatedElement) member).isAnnotationPresent(Experimental.class) || experimental(owner)) {
            properties.add("experimental");
        }
        return properties;
    }

    private static void modifiers(int modifiers, Set<String> properties) {
        String text = Modifier.toString(modifiers & ~(Modifier.INTERFACE | Modifier.STRICT));
        if (!text.isEmpty()) {
            properties.addAll(List.of(text.split(" ")));
        }
    }

    private static boolean experimental(Class<?> type) {
        for (Class<?> c = type; c != null; c = c.getEnclosingClass()) {
            if (c.isAnnotationPresent(Experimental.class)) {
                return true;
            }
        }
        return type.getPackage().isAnnotationPresent(Experimental.class);
    }

    private static String constant(Field field) {
        boolean inlined = Modifier.isStatic(field.getModifiers())
                && Modifier.isFinal(field.getModifiers())
                && (field.getType().isPrimitive() || field.getType() == String.class);
        try {
            return inlined && field.trySetAccessible()
                    ? " = " + String.valueOf(field.get(null)).replace('\n', ' ')
                    : "";
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String parameters(Executable e) {
        AnnotatedType[] types = types(e);
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < types.length; i++) {
            String text = text(types[i]);
            texts.add(e.isVarArgs() && i == types.length - 1 ? text.substring(0, text.length() - 2) + "..." : text);
        }
        return '(' + String.join(",", texts) + ')';
    }

    /**
     * The types of the parameters; those of a record's compact constructor from its components: compilers since JDK 21 mark such
     * parameters as implicit, and reflection leaves out the type arguments of these.
     */
    private static AnnotatedType[] types(Executable e) {
        Class<?> type = e.getDeclaringClass();
        if (e instanceof Constructor<?> && type.isRecord()) {
            RecordComponent[] components = type.getRecordComponents();
            if (Arrays.equals(
                    e.getParameterTypes(),
                    Arrays.stream(components).map(RecordComponent::getType).toArray())) {
                return Arrays.stream(components)
                        .map(RecordComponent::getAnnotatedType)
                        .toArray(AnnotatedType[]::new);
            }
        }
        return e.getAnnotatedParameterTypes();
    }

    private static String variables(TypeVariable<?>[] variables) {
        if (variables.length == 0) {
            return "";
        }
        return Arrays.stream(variables)
                .map(v -> v.getName()
                        + Arrays.stream(v.getAnnotatedBounds())
                                .map(ApiSignatures::text)
                                .filter(t -> !t.equals("java.lang.Object"))
                                .collect(Collectors.collectingAndThen(
                                        Collectors.joining("&"), b -> b.isEmpty() ? "" : " extends " + b)))
                .collect(Collectors.joining(",", "<", ">"));
    }

    /** A type as in the source, with its nullness. */
    private static String text(AnnotatedType type) {
        String mark = type.isAnnotationPresent(Nullable.class) ? "@Nullable " : "";
        if (type instanceof AnnotatedArrayType array) {
            return text(array.getAnnotatedGenericComponentType()) + (mark.isEmpty() ? "" : " @Nullable ") + "[]";
        }
        if (type instanceof AnnotatedParameterizedType parameterized) {
            Class<?> raw = (Class<?>) ((java.lang.reflect.ParameterizedType) parameterized.getType()).getRawType();
            return mark
                    + raw.getTypeName()
                    + Arrays.stream(parameterized.getAnnotatedActualTypeArguments())
                            .map(ApiSignatures::text)
                            .collect(Collectors.joining(",", "<", ">"));
        }
        if (type instanceof AnnotatedWildcardType wildcard) {
            return wildcard(wildcard);
        }
        if (type instanceof AnnotatedTypeVariable variable) {
            return mark + ((TypeVariable<?>) variable.getType()).getName();
        }
        return mark + type.getType().getTypeName();
    }

    private static String wildcard(AnnotatedWildcardType wildcard) {
        if (((WildcardType) wildcard.getType()).getLowerBounds().length > 0) {
            return "? super " + text(wildcard.getAnnotatedLowerBounds()[0]);
        }
        AnnotatedType[] upper = wildcard.getAnnotatedUpperBounds();
        return upper.length == 0 || upper[0].getType() == Object.class ? "?" : "? extends " + text(upper[0]);
    }
}
