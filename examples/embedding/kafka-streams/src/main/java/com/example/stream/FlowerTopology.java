// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.stream;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.embedded.Model;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Reads the measures of flowers from the topic {@code flowers}, such as {@code 5.1,3.5,1.4,0.2}, and writes their names to the topic
 * {@code names}; what is not a flower goes to {@code rejected} with the reason, so that one bad record does not stop the stream.
 */
final class FlowerTopology {
    private static final List<String> NAMES = List.of("setosa", "versicolor", "virginica");

    /** A name, or the reason why there is none. */
    private record Answer(String name, String reason) {}

    private FlowerTopology() {}

    /**
     * Makes the topology.
     *
     * @param iris asked by all threads of the stream; requests of several threads may share a run of the model
     */
    static Topology of(Model iris) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("flowers", Consumed.with(Serdes.String(), Serdes.String()))
                .mapValues(text -> answer(iris, text))
                .split()
                .branch(
                        (key, answer) -> answer.reason == null,
                        Branched.withConsumer(named -> named.mapValues(Answer::name)
                                .to("names", Produced.with(Serdes.String(), Serdes.String()))))
                .defaultBranch(Branched.withConsumer(others -> others.mapValues(Answer::reason)
                        .to("rejected", Produced.with(Serdes.String(), Serdes.String()))));
        return builder.build();
    }

    private static Answer answer(Model iris, String text) {
        try {
            double[] measures = Arrays.stream(text.split(",")).mapToDouble(Double::parseDouble).toArray();
            return new Answer(NAMES.get((int) iris.predict(new double[][] {measures}).longs("label")[0]), null);
        } catch (NumberFormatException e) {
            return new Answer(null, "'" + text + "' has a part that is not a number");
        } catch (ServingException e) {
            if (e.code() == ErrorCode.INVALID_ARGUMENT) {
                return new Answer(null, e.getMessage());
            }
            // The record is processed again when the stream goes on.
            throw e;
        }
    }
}
