// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.nereid.json.JsonWriter;
import java.util.List;

/**
 * Prints a message as JSON the way clients of this protocol expect: names as in the proto file, single values even at their
 * default, enums by name, integers of 64 bits as numbers, messages and members of a choice only when set. Immutable.
 */
final class MessageJson {
    private MessageJson() {}

    static void write(Message message, JsonWriter json) {
        json.beginObject();
        for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
            if (field.isRepeated()) {
                json.name(field.getName());
                repeated(message, field, json);
            } else if (!field.hasPresence() || message.hasField(field)) {
                json.name(field.getName());
                value(field, message.getField(field), json);
            }
        }
        json.endObject();
    }

    private static void repeated(Message message, FieldDescriptor field, JsonWriter json) {
        List<?> values = (List<?>) message.getField(field);
        if (field.isMapField()) {
            FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
            FieldDescriptor value = field.getMessageType().findFieldByNumber(2);
            json.beginObject();
            for (Object entry : values) {
                Message pair = (Message) entry;
                json.name(String.valueOf(pair.getField(key)));
                value(value, pair.getField(value), json);
            }
            json.endObject();
        } else {
            json.beginArray();
            for (Object value : values) {
                value(field, value, json);
            }
            json.endArray();
        }
    }

    private static void value(FieldDescriptor field, Object value, JsonWriter json) {
        switch (field.getJavaType()) {
            case INT -> json.value(((Integer) value).intValue());
            case LONG -> json.value(((Long) value).longValue());
            case FLOAT -> json.value(((Float) value).floatValue());
            case DOUBLE -> json.value(((Double) value).doubleValue());
            case BOOLEAN -> json.value(((Boolean) value).booleanValue());
            case STRING -> json.value((String) value);
            case ENUM -> json.value(((EnumValueDescriptor) value).getName());
            case MESSAGE -> write((Message) value, json);
            case BYTE_STRING -> json.value(value.toString());
        }
    }
}
