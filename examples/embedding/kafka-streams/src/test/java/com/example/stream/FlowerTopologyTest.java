// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nereid.embedded.Nereid;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.Test;

/** The topology in Kafka's own driver, without a broker. */
class FlowerTopologyTest {
    private static final Path MODELS = Path.of(System.getProperty("models"));

    @Test
    void flowersGetTheirNamesAndTheRestIsRejected() {
        try (Nereid nereid = Nereid.builder().model("iris", MODELS.resolve("iris")).build();
                TopologyTestDriver driver =
                        new TopologyTestDriver(FlowerTopology.of(nereid.model("iris")), new Properties())) {
            TestInputTopic<String, String> flowers =
                    driver.createInputTopic("flowers", new StringSerializer(), new StringSerializer());
            TestOutputTopic<String, String> names =
                    driver.createOutputTopic("names", new StringDeserializer(), new StringDeserializer());
            TestOutputTopic<String, String> rejected =
                    driver.createOutputTopic("rejected", new StringDeserializer(), new StringDeserializer());
            flowers.pipeInput("a", "5.1,3.5,1.4,0.2");
            flowers.pipeInput("b", "5.1,wide,1.4,0.2");
            flowers.pipeInput("c", "6.3,3.3,6.0,2.5");
            flowers.pipeInput("d", "6.3,3.3");
            assertEquals(
                    List.of(KeyValue.pair("a", "setosa"), KeyValue.pair("c", "virginica")), names.readKeyValuesToList());
            List<KeyValue<String, String>> reasons = rejected.readKeyValuesToList();
            assertEquals(List.of("b", "d"), reasons.stream().map(r -> r.key).toList());
            assertTrue(reasons.get(0).value.contains("not a number"), reasons.get(0).value);
            assertTrue(reasons.get(1).value.contains("iris"), reasons.get(1).value);
        }
    }
}
