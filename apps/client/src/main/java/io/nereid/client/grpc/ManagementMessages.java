// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.grpc;

import io.nereid.client.infer.ModelMetadataResponse;
import io.nereid.client.infer.ModelStatisticsResponse;
import io.nereid.client.infer.RepositoryModel;
import io.nereid.client.infer.ServerMetadata;
import io.nereid.protobuf.ProtobufWriter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The messages about servers and models. Stateless. */
final class ManagementMessages {
    private static final String[] DURATIONS = {
        "success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss"
    };

    private ManagementMessages() {}

    /** A message whose fields 1 and 2 are name and version. */
    static ProtobufWriter model(String name, String version) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(1, name);
        out.textField(2, version);
        return out;
    }

    /** Whether field 1 is true. */
    static boolean isTrue(byte[] bytes) {
        Message message = new Message(bytes);
        boolean[] value = {false};
        message.fields(field -> {
            if (field == 1) {
                value[0] = message.number() != 0;
            }
        });
        return value[0];
    }

    static ServerMetadata serverMetadata(byte[] bytes) {
        Message message = new Message(bytes);
        String[] texts = {"", ""};
        List<String> extensions = new ArrayList<>();
        message.fields(field -> {
            switch (field) {
                case 1, 2 -> texts[field - 1] = message.text();
                case 3 -> extensions.add(message.text());
                default -> {}
            }
        });
        return new ServerMetadata(texts[0], texts[1], extensions);
    }

    static ModelMetadataResponse modelMetadata(byte[] bytes) {
        Message message = new Message(bytes);
        String[] texts = {"", ""};
        List<String> versions = new ArrayList<>();
        List<ModelMetadataResponse.TensorMetadata> inputs = new ArrayList<>();
        List<ModelMetadataResponse.TensorMetadata> outputs = new ArrayList<>();
        message.fields(field -> {
            switch (field) {
                case 1 -> texts[0] = message.text();
                case 2 -> versions.add(message.text());
                case 3 -> texts[1] = message.text();
                case 4 -> inputs.add(tensor(message));
                case 5 -> outputs.add(tensor(message));
                default -> {}
            }
        });
        return new ModelMetadataResponse(texts[0], versions, texts[1], inputs, outputs);
    }

    private static ModelMetadataResponse.TensorMetadata tensor(Message message) {
        String[] texts = {"", ""};
        List<Long> shape = new ArrayList<>();
        message.nested(field -> {
            switch (field) {
                case 1, 2 -> texts[field - 1] = message.text();
                case 3 -> message.numbers(() -> shape.add(message.varint()));
                default -> {}
            }
        });
        return new ModelMetadataResponse.TensorMetadata(texts[0], texts[1], shape);
    }

    static List<ModelStatisticsResponse> statistics(byte[] bytes) {
        Message message = new Message(bytes);
        List<ModelStatisticsResponse> all = new ArrayList<>();
        message.fields(field -> {
            if (field == 1) {
                all.add(modelStatistics(message));
            }
        });
        return all;
    }

    private static ModelStatisticsResponse modelStatistics(Message message) {
        String[] texts = {"", ""};
        long[] counts = {0, 0, 0};
        Map<String, ModelStatisticsResponse.Total> durations = new HashMap<>();
        message.nested(field -> {
            switch (field) {
                case 1, 2 -> texts[field - 1] = message.text();
                case 3, 4, 5 -> counts[field - 3] = message.number();
                case 6 ->
                    message.nested(number -> {
                        if (number <= DURATIONS.length) {
                            durations.put(DURATIONS[number - 1], total(message));
                        }
                    });
                default -> {}
            }
        });
        return new ModelStatisticsResponse(texts[0], texts[1], counts[0], counts[1], counts[2], durations);
    }

    private static ModelStatisticsResponse.Total total(Message message) {
        long[] values = {0, 0};
        message.nested(field -> {
            if (field <= 2) {
                values[field - 1] = message.number();
            }
        });
        return new ModelStatisticsResponse.Total(values[0], values[1]);
    }

    static ProtobufWriter index(boolean readyOnly) {
        ProtobufWriter out = new ProtobufWriter();
        if (readyOnly) {
            out.varintField(2, 1);
        }
        return out;
    }

    static List<RepositoryModel> models(byte[] bytes) {
        Message message = new Message(bytes);
        List<RepositoryModel> models = new ArrayList<>();
        message.fields(field -> {
            if (field == 1) {
                String[] texts = {"", "", "", ""};
                message.nested(number -> {
                    if (number <= 4) {
                        texts[number - 1] = message.text();
                    }
                });
                models.add(new RepositoryModel(texts[0], texts[1], texts[2], texts[3]));
            }
        });
        return models;
    }

    /** A RepositoryModelLoadRequest; files are base64 in the parameters, and bytes in the message. */
    static ProtobufWriter load(String model, Map<String, String> parameters) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(2, model);
        parameters.forEach((name, value) -> {
            int entry = out.begin(3);
            out.presentTextField(1, name);
            int mark = out.begin(2);
            if (name.startsWith("file:")) {
                out.bytesField(4, Base64.getDecoder().decode(value));
            } else {
                out.presentTextField(3, value);
            }
            out.end(mark);
            out.end(entry);
        });
        return out;
    }

    static ProtobufWriter unload(String model, boolean dependents) {
        ProtobufWriter out = new ProtobufWriter();
        out.textField(2, model);
        if (dependents) {
            int entry = out.begin(3);
            out.presentTextField(1, "unload_dependents");
            int mark = out.begin(2);
            out.varintField(1, 1);
            out.end(mark);
            out.end(entry);
        }
        return out;
    }
}
