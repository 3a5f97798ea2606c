// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.nereid.embedded.Nereid;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.Test;

/** The job on Flink's own cluster in this process, a MiniCluster. */
class FlowerJobTest {
    private static final String MODELS = System.getProperty("models");

    @Test
    void flowersGetTheirNamesAndTheRestIsRejected() throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        SingleOutputStreamOperator<String> names = FlowerJob.named(
                environment.fromData("5.1,3.5,1.4,0.2", "5.1,wide,1.4,0.2", "6.3,3.3,6.0,2.5", "6.3,3.3"), MODELS);
        try (CloseableIterator<String> named = names.collectAsync();
                CloseableIterator<String> rejected =
                        names.getSideOutput(FlowerJob.REJECTED).collectAsync()) {
            environment.execute();
            assertEquals(List.of("setosa", "virginica"), all(named));
            List<String> reasons = all(rejected);
            assertEquals(2, reasons.size(), reasons.toString());
            assertTrue(reasons.get(0).contains("not a number"), reasons.get(0));
            assertTrue(reasons.get(1).contains("iris"), reasons.get(1));
        }
        assertTrue(SharedModels.isClosed());
    }

    @Test
    void fourSubtasksNameEachFlower() throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(4);
        List<String> flowers = new ArrayList<>(Collections.nCopies(500, "5.1,3.5,1.4,0.2"));
        flowers.addAll(Collections.nCopies(500, "6.3,3.3,6.0,2.5"));
        SingleOutputStreamOperator<String> names =
                FlowerJob.named(environment.fromData(flowers).rebalance(), MODELS);
        List<String> named = names.executeAndCollect(2000);
        assertEquals(500, Collections.frequency(named, "setosa"));
        assertEquals(500, Collections.frequency(named, "virginica"));
        assertTrue(SharedModels.isClosed());
    }

    @Test
    void aModelThatIsNotThereFailsTheJobWithItsName() {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        SingleOutputStreamOperator<String> names = FlowerJob.named(environment.fromData("5.1,3.5,1.4,0.2"), "/nowhere");
        Throwable failure = assertThrows(Exception.class, () -> names.executeAndCollect(1));
        while (failure.getCause() != null) {
            failure = failure.getCause();
        }
        assertTrue(failure.getMessage().contains("/nowhere/iris"), failure.toString());
        assertTrue(SharedModels.isClosed());
    }

    @Test
    void subtasksShareAnEngineUntilTheLastIsClosed() {
        Nereid first = SharedModels.open(MODELS);
        Nereid second = SharedModels.open(MODELS);
        SharedModels.close();
        try {
            assertSame(first, second);
            assertEquals(0, second.model("iris").predict(new double[][] {{5.1, 3.5, 1.4, 0.2}}).longs("label")[0]);
        } finally {
            SharedModels.close();
        }
        assertTrue(SharedModels.isClosed());
    }

    private static List<String> all(CloseableIterator<String> results) {
        List<String> all = new ArrayList<>();
        results.forEachRemaining(all::add);
        return all;
    }
}
