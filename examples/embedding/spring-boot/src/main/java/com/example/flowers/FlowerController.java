// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flowers;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.embedded.Model;
import io.nereid.embedded.Prediction;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** Names flowers by their measures. */
@RestController
class FlowerController {
    private static final List<String> SPECIES = List.of("setosa", "versicolor", "virginica");

    record Flower(float[] measures) {}

    record Classified(String species, float[] probabilities) {}

    private final Model iris;

    /** The bean {@code iris} is the model nereid.embedded.models.iris. */
    FlowerController(Model iris) {
        this.iris = iris;
    }

    @PostMapping("/classify")
    Classified classify(@RequestBody Flower flower) {
        Prediction prediction = iris.predict(new float[][] {flower.measures()});
        return new Classified(SPECIES.get((int) prediction.longs("label")[0]), prediction.floats("probabilities"));
    }

    @ExceptionHandler
    ProblemDetail refused(ServingException e) {
        HttpStatus status =
                e.code() == ErrorCode.INVALID_ARGUMENT ? HttpStatus.BAD_REQUEST : HttpStatus.SERVICE_UNAVAILABLE;
        return ProblemDetail.forStatusAndDetail(status, e.getMessage());
    }
}
