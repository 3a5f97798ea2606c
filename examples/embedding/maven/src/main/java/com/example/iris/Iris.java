// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.iris;

import io.nereid.base.ServingException;
import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import java.nio.file.Path;
import java.util.List;

/** The model that says which of three irises a flower is, in this process. Thread-safe. */
public final class Iris implements AutoCloseable {
    private static final List<String> NAMES = List.of("setosa", "versicolor", "virginica");

    private final Nereid nereid;
    private final Model model;

    private Iris(Nereid nereid) {
        this.nereid = nereid;
        this.model = nereid.model("iris").withOutputs("label");
    }

    /**
     * Loads the model, and waits until it is available. What can run it is a backend among the dependencies.
     *
     * @param models the folder of the models, one of which is {@code iris}
     * @throws ServingException when it cannot be loaded, with the reason
     */
    public static Iris load(Path models) {
        return new Iris(Nereid.builder().model("iris", models.resolve("iris")).build());
    }

    /**
     * Returns the name of the flower.
     *
     * @param measures sepal length, sepal width, petal length, petal width, in cm
     * @throws ServingException INVALID_ARGUMENT for another number of measures
     */
    public String classify(float... measures) {
        return NAMES.get((int) model.predict(new float[][] {measures}).longs()[0]);
    }

    @Override
    public void close() {
        nereid.close();
    }
}
