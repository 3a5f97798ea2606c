// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flink;

import java.util.concurrent.TimeUnit;
import org.apache.flink.streaming.api.datastream.AsyncDataStream;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Reads the measures of flowers, such as {@code 5.1,3.5,1.4,0.2}, and names the flowers. */
public final class FlowerJob {
    /** The reasons why lines are not flowers. */
    static final OutputTag<String> REJECTED = new OutputTag<>("rejected") {};

    private FlowerJob() {}

    /**
     * Runs the job on lines of a socket.
     *
     * @param arguments host and port of the socket, and the folder of the models
     * @throws Exception if the job fails
     */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 3) {
            System.err.println("usage: HOST PORT MODELS    such as localhost 9999 /srv/models");
            System.exit(2);
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.enableCheckpointing(10_000);
        DataStream<String> flowers = environment.socketTextStream(arguments[0], Integer.parseInt(arguments[1]));
        SingleOutputStreamOperator<String> names = named(flowers, arguments[2]);
        names.print("names");
        names.getSideOutput(REJECTED).print("rejected");
        environment.execute("flowers");
    }

    /**
     * The names of flowers, in their order; the reasons of those that have none are the side output {@link #REJECTED}.
     *
     * @param models the folder of the models on each TaskManager
     */
    static SingleOutputStreamOperator<String> named(DataStream<String> flowers, String models) {
        return AsyncDataStream.orderedWait(flowers, new Classifier(models), 10, TimeUnit.SECONDS, 256)
                .process(new Split())
                .name("names and reasons");
    }

    private static final class Split extends ProcessFunction<Answer, String> {
        private static final long serialVersionUID = 1;

        @Override
        public void processElement(Answer answer, Context context, Collector<String> names) {
            if (answer.name() != null) {
                names.collect(answer.name());
            } else {
                context.output(REJECTED, answer.reason());
            }
        }
    }
}
