// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;

/**
 * Reads core resources in Kubernetes' protobuf format, which {@code kubectl create secret} and similar commands send:
 * four magic bytes, then an envelope with kind, version and the serialized resource. Stateless.
 */
final class KubernetesProtobuf {
    /** The content type. */
    static final String TYPE = "application/vnd.kubernetes.protobuf";

    private static final byte[] MAGIC = {'k', '8', 's', 0};
    private static final int BYTES = 2;
    private static final int VARINT = 0;

    /** How a protobuf field is converted to JSON. */
    private enum Form {
        TEXT,
        NUMBER,
        FLAG,
        TEXTS,
        TEXT_MAP,
        BYTE_MAP,
        OBJECT,
        OBJECTS,
        /** Set by the server, therefore skipped. */
        IGNORED
    }

    private record Field(String name, Form form, Map<Integer, Field> fields) {
        static Field of(String name, Form form) {
            return new Field(name, form, Map.of());
        }
    }

    private static final Map<Integer, Field> REFERENCE = Map.of(
            1, Field.of("kind", Form.TEXT),
            2, Field.of("namespace", Form.TEXT),
            3, Field.of("name", Form.TEXT),
            4, Field.of("uid", Form.TEXT),
            5, Field.of("apiVersion", Form.TEXT),
            6, Field.of("resourceVersion", Form.TEXT),
            7, Field.of("fieldPath", Form.TEXT));
    private static final Map<Integer, Field> METADATA = Map.ofEntries(
            Map.entry(1, Field.of("name", Form.TEXT)),
            Map.entry(2, Field.of("generateName", Form.TEXT)),
            Map.entry(3, Field.of("namespace", Form.TEXT)),
            Map.entry(4, Field.of("selfLink", Form.IGNORED)),
            Map.entry(5, Field.of("uid", Form.TEXT)),
            Map.entry(6, Field.of("resourceVersion", Form.TEXT)),
            Map.entry(7, Field.of("generation", Form.IGNORED)),
            Map.entry(8, Field.of("creationTimestamp", Form.IGNORED)),
            Map.entry(9, Field.of("deletionTimestamp", Form.IGNORED)),
            Map.entry(10, Field.of("deletionGracePeriodSeconds", Form.IGNORED)),
            Map.entry(11, Field.of("labels", Form.TEXT_MAP)),
            Map.entry(12, Field.of("annotations", Form.TEXT_MAP)),
            Map.entry(14, Field.of("finalizers", Form.TEXTS)),
            Map.entry(17, Field.of("managedFields", Form.IGNORED)));
    private static final Field META = new Field("metadata", Form.OBJECT, METADATA);
    /** What a caller wants to do, in the reviews of its rights. Selectors of fields and labels decide nothing here. */
    private static final Map<Integer, Field> ATTRIBUTES = Map.of(
            1, Field.of("namespace", Form.TEXT),
            2, Field.of("verb", Form.TEXT),
            3, Field.of("group", Form.TEXT),
            4, Field.of("version", Form.TEXT),
            5, Field.of("resource", Form.TEXT),
            6, Field.of("subresource", Form.TEXT),
            7, Field.of("name", Form.TEXT),
            8, Field.of("fieldSelector", Form.IGNORED),
            9, Field.of("labelSelector", Form.IGNORED));

    private static Field spec(Map<Integer, Field> fields) {
        return new Field("spec", Form.OBJECT, fields);
    }

    private static final Map<String, Map<Integer, Field>> KINDS = Map.of(
            "SelfSubjectAccessReview",
            Map.of(
                    1,
                    META,
                    2,
                    spec(Map.of(
                            1,
                            new Field("resourceAttributes", Form.OBJECT, ATTRIBUTES),
                            2,
                            new Field(
                                    "nonResourceAttributes",
                                    Form.OBJECT,
                                    Map.of(1, Field.of("path", Form.TEXT), 2, Field.of("verb", Form.TEXT))))),
                    3,
                    Field.of("status", Form.IGNORED)),
            "SelfSubjectRulesReview",
            Map.of(1, META, 2, spec(Map.of(1, Field.of("namespace", Form.TEXT))), 3, Field.of("status", Form.IGNORED)),
            "SelfSubjectReview",
            Map.of(1, META, 2, Field.of("status", Form.IGNORED)),
            "Secret",
            Map.of(
                    1, META,
                    2, Field.of("data", Form.BYTE_MAP),
                    3, Field.of("type", Form.TEXT),
                    4, Field.of("stringData", Form.TEXT_MAP),
                    5, Field.of("immutable", Form.FLAG)),
            "ConfigMap",
            Map.of(
                    1, META,
                    2, Field.of("data", Form.TEXT_MAP),
                    3, Field.of("binaryData", Form.BYTE_MAP),
                    4, Field.of("immutable", Form.FLAG)),
            "Namespace",
            Map.of(
                    1, META,
                    2, Field.of("spec", Form.IGNORED),
                    3, Field.of("status", Form.IGNORED)),
            "ServiceAccount",
            Map.of(
                    1,
                    META,
                    2,
                    new Field("secrets", Form.OBJECTS, REFERENCE),
                    3,
                    new Field("imagePullSecrets", Form.OBJECTS, Map.of(1, Field.of("name", Form.TEXT))),
                    4,
                    Field.of("automountServiceAccountToken", Form.FLAG)),
            "DeleteOptions",
            Map.of(
                    1, Field.of("gracePeriodSeconds", Form.NUMBER),
                    2,
                            new Field(
                                    "preconditions",
                                    Form.OBJECT,
                                    Map.of(
                                            1, Field.of("uid", Form.TEXT),
                                            2, Field.of("resourceVersion", Form.TEXT))),
                    3, Field.of("orphanDependents", Form.FLAG),
                    4, Field.of("propagationPolicy", Form.TEXT),
                    5, Field.of("dryRun", Form.TEXTS)));

    private KubernetesProtobuf() {}

    /**
     * Reads a resource.
     *
     * @throws ServingException INVALID_ARGUMENT for malformed bytes, and for unsupported kinds and fields. Unknown
     *     fields are rejected and not skipped, because skipping would silently lose data
     */
    static ObjectNode read(byte[] bytes) {
        if (bytes.length < MAGIC.length || !Arrays.equals(bytes, 0, MAGIC.length, MAGIC, 0, MAGIC.length)) {
            throw ServingException.invalidArgument("the body is not a resource in Kubernetes' protobuf format");
        }
        try {
            Map<Integer, Field> envelope = Map.of(
                    1,
                    new Field(
                            "type",
                            Form.OBJECT,
                            Map.of(1, Field.of("apiVersion", Form.TEXT), 2, Field.of("kind", Form.TEXT))),
                    3,
                    Field.of("encoding", Form.TEXT),
                    4,
                    Field.of("contentType", Form.TEXT));
            ByteBuffer in = ByteBuffer.wrap(bytes, MAGIC.length, bytes.length - MAGIC.length)
                    .slice()
                    .order(ByteOrder.LITTLE_ENDIAN);
            ByteBuffer raw = ByteBuffer.allocate(0);
            ObjectNode head = ApiResponse.JSON.createObjectNode();
            while (in.hasRemaining()) {
                long tag = varint(in);
                if (tag == (2 << 3 | BYTES)) {
                    raw = slice(in);
                } else {
                    field(envelope, tag, in, head);
                }
            }
            String kind = head.path("type").path("kind").asText("");
            Map<Integer, Field> fields = KINDS.get(kind);
            if (fields == null) {
                throw ServingException.invalidArgument(
                        "a " + kind + " is not supported in Kubernetes' protobuf format", "send it as JSON or YAML");
            }
            ObjectNode resource = ApiResponse.JSON.createObjectNode();
            resource.setAll((ObjectNode) head.path("type"));
            message(fields, raw, resource);
            return resource;
        } catch (java.nio.BufferUnderflowException | IllegalArgumentException e) {
            throw ServingException.invalidArgument("the body is truncated or malformed");
        }
    }

    private static void message(Map<Integer, Field> fields, ByteBuffer in, ObjectNode out) {
        while (in.hasRemaining()) {
            field(fields, varint(in), in, out);
        }
    }

    private static void field(Map<Integer, Field> fields, long tag, ByteBuffer in, ObjectNode out) {
        int wire = (int) (tag & 7);
        int number = (int) (tag >>> 3);
        Field field = fields.get(number);
        if (wire == VARINT) {
            long value = varint(in);
            if (field != null && field.form == Form.FLAG) {
                out.put(field.name, value != 0);
            } else if (field != null && field.form == Form.NUMBER) {
                out.put(field.name, value);
            } else if (field == null || field.form != Form.IGNORED) {
                throw unknown(number);
            }
            return;
        }
        if (wire != BYTES || field == null) {
            throw unknown(number);
        }
        ByteBuffer value = slice(in);
        switch (field.form) {
            case TEXT -> {
                if (value.hasRemaining()) {
                    out.put(field.name, text(value));
                }
            }
            case TEXTS -> out.withArray(field.name).add(text(value));
            case TEXT_MAP, BYTE_MAP -> entry(field, value, out.withObject("/" + field.name));
            case OBJECT -> message(field.fields, value, out.withObject("/" + field.name));
            case OBJECTS -> {
                ArrayNode list = out.withArray(field.name);
                message(field.fields, value, list.addObject());
            }
            case IGNORED -> {}
            case NUMBER, FLAG -> throw unknown(number);
        }
    }

    private static void entry(Field field, ByteBuffer in, ObjectNode out) {
        String key = "";
        byte[] value = {};
        while (in.hasRemaining()) {
            long tag = varint(in);
            ByteBuffer part = slice(in);
            if (tag >>> 3 == 1) {
                key = text(part);
            } else {
                value = new byte[part.remaining()];
                part.get(value);
            }
        }
        if (field.form == Form.BYTE_MAP) {
            out.put(key, Base64.getEncoder().encodeToString(value));
        } else {
            out.put(key, new String(value, StandardCharsets.UTF_8));
        }
    }

    private static ServingException unknown(int number) {
        return ServingException.invalidArgument(
                "the protobuf format has a field with the number " + number + " that is not supported",
                "send the resource as JSON or YAML");
    }

    private static String text(ByteBuffer value) {
        return StandardCharsets.UTF_8.decode(value).toString();
    }

    private static ByteBuffer slice(ByteBuffer in) {
        long length = varint(in);
        if (length < 0 || length > in.remaining()) {
            throw new java.nio.BufferUnderflowException();
        }
        ByteBuffer slice = in.slice(in.position(), (int) length);
        in.position(in.position() + (int) length);
        return slice;
    }

    private static long varint(ByteBuffer in) {
        long value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            byte b = in.get();
            value |= (long) (b & 0x7f) << shift;
            if (b >= 0) {
                return value;
            }
        }
        throw new IllegalArgumentException();
    }
}
