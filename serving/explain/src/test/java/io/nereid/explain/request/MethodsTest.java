// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.explain.FunctionEngine;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;

/** Surrogates, permutations and counterfactuals of functions that are known. */
class MethodsTest {
    private static final UnaryOperator<double[]> PLANE = x -> new double[] {4 * x[0] - 2 * x[1] + 1};

    private static String grid() {
        List<String> rows = new ArrayList<>();
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < 40; i++) {
            rows.add("[" + 3 * random.nextGaussian() + "," + random.nextGaussian() + "," + random.nextGaussian() + "]");
        }
        return "[" + String.join(",", rows) + "]";
    }

    private static Map<?, ?> first(FunctionEngine engine, String instances, String parameters) {
        Exchange x = engine.ask("m", "{\"instances\":" + instances + ",\"parameters\":{" + parameters + "}}");
        // A second request returns the same.
        assertThat(engine.ask("m", "{\"instances\":" + instances + ",\"parameters\":{" + parameters + "}}")
                        .text())
                .isEqualTo(x.text());
        return x.first();
    }

    @Test
    void aSurrogateOfALinearModelIsThatModel() {
        FunctionEngine engine = new FunctionEngine().with("m", 3, "", 64, PLANE);
        Map<?, ?> result =
                first(engine, "[[1,2,3]]", "\"method\":\"lime\",\"ridge\":0,\"nsamples\":300,\"background\":" + grid());
        double[] coefficients = (double[]) result.get("coefficients");
        assertThat(coefficients[0]).isCloseTo(4, within(1e-9));
        assertThat(coefficients[1]).isCloseTo(-2, within(1e-9));
        assertThat(coefficients[2]).isCloseTo(0, within(1e-9));
        assertThat((Double) result.get("intercept")).isCloseTo(1, within(1e-9));
        assertThat((Double) result.get("r2")).isCloseTo(1, within(1e-9));
        assertThat((Double) result.get("local_prediction")).isCloseTo(1, within(1e-9));
    }

    @Test
    void aSurrogateFollowsTheSlopeWhereTheRowIs() {
        FunctionEngine engine =
                new FunctionEngine().with("m", 3, "", 0, x -> new double[] {x[0] * x[0] * x[0], Math.abs(x[1])});
        Map<?, ?> result = first(
                engine,
                "[[2,-5,null]]",
                "\"method\":\"lime\",\"kernel_width\":0.1,\"nsamples\":20000,\"ridge\":0.01,\"background\":" + grid());
        List<?> coefficients = (List<?>) result.get("coefficients");
        assertThat(((double[]) coefficients.get(0))[0]).isCloseTo(12, within(1.5));
        assertThat(((double[]) coefficients.get(1))[1]).isCloseTo(-1, within(0.01));
        assertThat(((double[]) coefficients.get(1))[2]).isZero();
        Map<?, ?> one = first(
                engine, "[[2,-5,1]]", "\"method\":\"lime\",\"target\":1,\"nsamples\":50,\"background\":" + grid());
        assertThat((double[]) one.get("coefficients")).hasSize(3);
        assertThat(one.get("target")).isEqualTo(1.0);
    }

    @Test
    void aFeatureThatIsNotUsedHasNoImportance() {
        FunctionEngine engine = new FunctionEngine().with("m", 3, "", 0, PLANE);
        StringBuilder instances = new StringBuilder("[");
        StringBuilder targets = new StringBuilder("[");
        SplittableRandom random = new SplittableRandom(2);
        for (int i = 0; i < 50; i++) {
            double[] x = {random.nextGaussian(), random.nextGaussian(), random.nextGaussian()};
            instances.append(i == 0 ? "" : ",").append("[" + x[0] + "," + x[1] + "," + x[2] + "]");
            targets.append(i == 0 ? "" : ",").append(PLANE.apply(x)[0]);
        }
        String parameters = "\"method\":\"permutation\",\"repeats\":20,\"targets\":" + targets + "]";
        Map<?, ?> result = first(engine, instances + "]", parameters);
        double[] importances = (double[]) result.get("importances");
        assertThat((Double) result.get("baseline_score")).isEqualTo(1);
        assertThat(result.get("metric")).isEqualTo("r2");
        assertThat(importances[2]).isZero();
        assertThat(importances[0]).isGreaterThan(importances[1]);
        // Shuffling doubles the variance that a term explains, but for what stays in place.
        double[] mse = (double[]) first(engine, instances + "]", parameters + ",\"metric\":\"mse\"")
                .get("importances");
        assertThat(mse[0] / mse[1]).isCloseTo(4, within(1.5));
    }

    @Test
    void metricsMatchTheirDefinitions() {
        double[][] one = {{0.2}, {0.9}, {0.6}, {0.4}};
        double[] truth = {0, 1, 0, 1};
        assertThat(ScoringMetric.ACCURACY.score(one, truth, -1)).isEqualTo(0.5);
        assertThat(ScoringMetric.AUC.score(one, truth, -1)).isEqualTo(0.75);
        assertThat(ScoringMetric.LOG_LOSS.score(one, truth, -1))
                .isCloseTo(-(Math.log(0.8) + Math.log(0.9) + Math.log(0.4) + Math.log(0.4)) / 4, within(1e-12));
        assertThat(ScoringMetric.MAE.score(one, truth, -1)).isCloseTo((0.2 + 0.1 + 0.6 + 0.6) / 4, within(1e-12));
        assertThat(ScoringMetric.MSE.score(one, truth, -1)).isCloseTo((0.04 + 0.01 + 0.36 + 0.36) / 4, within(1e-12));
        assertThat(ScoringMetric.RMSE.score(one, truth, -1)).isCloseTo(Math.sqrt(0.77 / 4), within(1e-12));
        assertThat(ScoringMetric.R2.score(one, truth, -1)).isCloseTo(1 - 0.77, within(1e-12));
        double[][] three = {{0.1, 0.7, 0.2}, {0.5, 0.3, 0.2}};
        assertThat(ScoringMetric.ACCURACY.score(three, new double[] {1, 2}, -1)).isEqualTo(0.5);
        assertThat(ScoringMetric.LOG_LOSS.score(three, new double[] {1, 2}, -1))
                .isCloseTo(-(Math.log(0.7) + Math.log(0.2)) / 2, within(1e-12));
    }

    @Test
    void aCounterfactualIsNearSparseAndWithinTheLimits() {
        // A loan: income less twice the debt must reach 10; the age does not matter.
        FunctionEngine engine = new FunctionEngine().with("m", 3, "income,debt,age", 0, x -> {
            double p = 1 / (1 + Math.exp(-(x[0] - 2 * x[1] - 10)));
            return new double[] {1 - p, p};
        });
        String background = "[[5,1,20],[10,2,30],[20,0,40],[30,4,50],[15,3,60],[25,5,70],[12,1,35]]";
        Map<?, ?> result = first(
                engine,
                "[[10,3,33]]",
                "\"method\":\"counterfactual\",\"desired\":1,\"count\":3,\"background\":" + background);
        List<?> found = (List<?>) result.get("counterfactuals");
        assertThat(found).isNotEmpty();
        for (Object each : found) {
            Map<?, ?> one = (Map<?, ?>) each;
            double[] row = (double[]) one.get("instance");
            double[] prediction = (double[]) one.get("prediction");
            assertThat(prediction[1]).isGreaterThan(prediction[0]);
            assertThat(row[0]).isBetween(5.0, 30.0);
            assertThat(row[1]).isBetween(0.0, 5.0);
            // The background has whole numbers only.
            assertThat(row[0]).isEqualTo(Math.rint(row[0]));
        }
        Map<?, ?> best = (Map<?, ?>) found.get(0);
        assertThat((List<?>) best.get("changed")).hasSize(1);
        // With scales 5 (income) and 1 (debt), 17 of income is nearest of single changes that suffice.
        assertThat(((double[]) best.get("instance"))).containsExactly(17, 3, 33);
        assertThat((Double) best.get("distance")).isCloseTo(7 / 5.0, within(1e-9));

        Map<?, ?> other = first(
                engine,
                "[[14,3,33]]",
                "\"method\":\"counterfactual\",\"desired\":1,\"immutable\":[\"income\"],\"background\":" + background);
        Map<?, ?> one = (Map<?, ?>) ((List<?>) other.get("counterfactuals")).get(0);
        assertThat(((double[]) one.get("instance"))).containsExactly(14, 1, 33);
        Map<?, ?> none = first(
                engine,
                "[[10,3,33]]",
                "\"method\":\"counterfactual\",\"desired\":1,\"nsamples\":200,\"immutable\":[\"income\",\"debt\"],"
                        + "\"background\":" + background);
        assertThat((String) none.get("message")).startsWith("no row with the desired prediction");
        Map<?, ?> already = first(
                engine, "[[29,3,33]]", "\"method\":\"counterfactual\",\"desired\":1,\"background\":" + background);
        assertThat((String) already.get("message")).isEqualTo("the prediction is the desired one already");
    }

    @Test
    void aCounterfactualOfANumberLiesWithinLimits() {
        FunctionEngine engine = new FunctionEngine().with("m", 3, "", 0, PLANE);
        Map<?, ?> result = first(
                engine,
                "[[0,0,0]]",
                "\"method\":\"counterfactual\",\"desired\":{\"min\":5,\"max\":6},\"ranges\":{\"f0\":[-3,3],\"f1\":[-1,1]}");
        Map<?, ?> best = (Map<?, ?>) ((List<?>) result.get("counterfactuals")).get(0);
        double[] row = (double[]) best.get("instance");
        assertThat((Double) best.get("prediction")).isBetween(5.0, 6.0);
        assertThat(row[2]).isZero();
        assertThat(row[0]).isCloseTo(1, within(0.06));
        assertThat(row[1]).isZero();
    }

    @Test
    void modelsWithColumnInputsAndIntegersAreExplained() {
        FunctionEngine engine = new FunctionEngine()
                .with(
                        "m",
                        List.of(
                                new TensorSpec("a", DataType.FP32, Shape.of(-1)),
                                new TensorSpec("b", DataType.INT64, Shape.of(-1, 1))),
                        List.of(
                                new TensorSpec("y", DataType.FP32, Shape.of(-1)),
                                new TensorSpec("label", DataType.BYTES, Shape.of(-1))),
                        "",
                        3,
                        x -> new double[] {x[0] + 10 * x[1]});
        Exchange x = engine.ask(
                "m", "{\"instances\":[{\"a\":1,\"b\":2},[3,4]],\"parameters\":{\"background\":[[0,0],[2,2]]}}");
        assertThat((double[]) x.first().get("shap_values")).containsExactly(0, 10);
        assertThat(engine.batches).allMatch(b -> b <= 3);
    }
}
