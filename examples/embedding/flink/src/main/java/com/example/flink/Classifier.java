// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flink;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.embedded.Inputs;
import io.nereid.embedded.Model;
import io.nereid.embedded.Prediction;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionException;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.streaming.api.functions.async.ResultFuture;
import org.apache.flink.streaming.api.functions.async.RichAsyncFunction;

/**
 * Names flowers. The subtask does not wait for the model: it asks for the next flowers meanwhile, which may join the same batch. A flower that the
 * model rejects has an answer with the reason; any other failure fails the job, and Flink repeats the records since the last checkpoint.
 */
final class Classifier extends RichAsyncFunction<String, Answer> {
    private static final long serialVersionUID = 1;
    private static final List<String> NAMES = List.of("setosa", "versicolor", "virginica");

    private final String models;
    private transient Model iris;

    /**
     * @param models the folder of the models on each TaskManager
     */
    Classifier(String models) {
        this.models = models;
    }

    @Override
    public void open(OpenContext context) {
        iris = SharedModels.open(models).model("iris");
    }

    @Override
    public void close() {
        // A subtask that could not be opened is closed as well.
        if (iris != null) {
            iris = null;
            SharedModels.close();
        }
    }

    @Override
    public void asyncInvoke(String flower, ResultFuture<Answer> result) {
        double[] measures;
        try {
            measures = Arrays.stream(flower.split(",")).mapToDouble(Double::parseDouble).toArray();
        } catch (NumberFormatException e) {
            result.complete(Set.of(new Answer(flower, null, "'" + flower + "' has a part that is not a number")));
            return;
        }
        iris.predictAsync(Inputs.only(new double[][] {measures})).whenComplete((prediction, failure) -> {
            Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
            if (cause == null) {
                result.complete(Set.of(new Answer(flower, name(prediction), null)));
            } else if (cause instanceof ServingException e && e.code() == ErrorCode.INVALID_ARGUMENT) {
                result.complete(Set.of(new Answer(flower, null, e.getMessage())));
            } else {
                result.completeExceptionally(cause);
            }
        });
    }

    private static String name(Prediction prediction) {
        return NAMES.get((int) prediction.longs("label")[0]);
    }
}
