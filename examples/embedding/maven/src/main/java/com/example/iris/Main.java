// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.iris;

import java.nio.file.Path;

/** Prints which iris a flower is. */
public final class Main {
    private Main() {}

    /**
     * Runs the program.
     *
     * @param arguments the folder of the models
     */
    public static void main(String[] arguments) {
        if (arguments.length != 1) {
            System.err.println("usage: java -jar iris.jar MODELS    MODELS is a folder that has the model iris");
            System.exit(2);
        }
        try (Iris iris = Iris.load(Path.of(arguments[0]))) {
            System.out.println("a flower of 5.1 x 3.5 x 1.4 x 0.2 cm is " + iris.classify(5.1f, 3.5f, 1.4f, 0.2f));
        }
    }
}
