// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flowers;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A web application that names flowers, with the model in its own process. */
@SpringBootApplication
public class FlowersApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(FlowersApplication.class, arguments);
    }
}
