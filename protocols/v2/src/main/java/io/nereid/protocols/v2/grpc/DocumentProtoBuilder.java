// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.grpc;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.nereid.protocols.v2.proto.ModelConfiguration;
import io.nereid.spi.config.ModelConfig;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Converts documents (Map, List, String, Long, Double and Boolean by field name) to protobuf messages by their
 * descriptors. Fields that the message does not have are left out. Holds no state.
 */
public final class DocumentProtoBuilder {
    private DocumentProtoBuilder() {}

    /** A model configuration as a message. */
    public static ModelConfiguration.ModelConfig of(ModelConfig config) {
        ModelConfiguration.ModelConfig.Builder message = ModelConfiguration.ModelConfig.newBuilder();
        fill(message, config.document());
        return message.build();
    }

    /** Sets the fields that a document names. */
    private static void fill(Message.Builder message, Map<?, ?> document) {
        Descriptor type = message.getDescriptorForType();
        for (Map.Entry<?, ?> entry : document.entrySet()) {
            FieldDescriptor field = type.findFieldByName(String.valueOf(entry.getKey()));
            Object value = entry.getValue();
            if (field != null && value != null) {
                set(message, field, value);
            }
        }
    }

    private static void set(Message.Builder message, FieldDescriptor field, Object value) {
        if (field.isMapField() && value instanceof Map<?, ?> map) {
            FieldDescriptor keys = field.getMessageType().findFieldByNumber(1);
            FieldDescriptor values = field.getMessageType().findFieldByNumber(2);
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                Message.Builder pair = message.newBuilderForField(field);
                set(pair, keys, String.valueOf(entry.getKey()));
                set(pair, values, entry.getValue());
                message.addRepeatedField(field, pair.build());
            }
        } else if (field.isRepeated() && value instanceof List<?> list) {
            for (Object element : list) {
                Object converted = convert(message, field, element);
                if (converted != null) {
                    message.addRepeatedField(field, converted);
                }
            }
        } else if (!field.isRepeated()) {
            Object converted = convert(message, field, value);
            if (converted != null) {
                message.setField(field, converted);
            }
        }
    }

    private static @Nullable Object convert(Message.Builder parent, FieldDescriptor field, Object value) {
        return switch (field.getJavaType()) {
            case INT -> value instanceof Number n ? (Object) n.intValue() : integer(value, true);
            case LONG -> value instanceof Number n ? (Object) n.longValue() : integer(value, false);
            case FLOAT -> value instanceof Number n ? n.floatValue() : null;
            case DOUBLE -> value instanceof Number n ? n.doubleValue() : null;
            case BOOLEAN -> value instanceof Boolean ? value : null;
            case STRING -> String.valueOf(value);
            case BYTE_STRING -> ByteString.copyFromUtf8(String.valueOf(value));
            case ENUM -> {
                EnumDescriptor type = field.getEnumType();
                yield value instanceof Number n
                        ? type.findValueByNumber(n.intValue())
                        : type.findValueByName(String.valueOf(value));
            }
            case MESSAGE -> {
                if (value instanceof Map<?, ?> map) {
                    Message.Builder inner = parent.newBuilderForField(field);
                    fill(inner, map);
                    yield inner.build();
                }
                yield null;
            }
        };
    }

    /** The key of a map field, which documents hold as text. */
    private static @Nullable Object integer(Object value, boolean small) {
        try {
            long n = Long.parseLong(String.valueOf(value));
            return small ? (Object) (int) n : (Object) n;
        } catch (NumberFormatException e) {
            return null;
        }
    }
}
