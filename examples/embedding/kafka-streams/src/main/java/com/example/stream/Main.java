// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.stream;

import io.nereid.embedded.ModelSettings;
import io.nereid.embedded.Nereid;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;

/** Runs the stream. */
public final class Main {
    private Main() {}

    /**
     * Runs the program until it is ended.
     *
     * @param arguments the addresses of the brokers, and the folder of the models
     */
    public static void main(String[] arguments) {
        if (arguments.length != 2) {
            System.err.println("usage: BROKERS MODELS    such as localhost:9092 examples/models");
            System.exit(2);
        }
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "flower-stream");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Runtime.getRuntime().availableProcessors());
        Nereid nereid = Nereid.builder()
                .model("iris", Path.of(arguments[1], "iris"), ModelSettings.DEFAULT)
                .reload(Duration.ofSeconds(30))
                .build();
        KafkaStreams streams = new KafkaStreams(FlowerTopology.of(nereid.model("iris")), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close();
            nereid.close();
        }));
        streams.start();
    }
}
