// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.explain.FunctionEngine;
import io.nereid.explain.request.Exchange;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.tensor.Shape;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** SHAP values against closed forms and the sum over all orders. */
class ShapValuesValuesTest {
    private static double[] numbers(Object list) {
        return (double[]) list;
    }

    static String json(double[][] rows) {
        return Arrays.deepToString(rows);
    }

    private static double[][] random(SplittableRandom random, int rows, int features) {
        double[][] all = new double[rows][features];
        for (double[] row : all) {
            for (int f = 0; f < features; f++) {
                row[f] = random.nextGaussian();
            }
        }
        return all;
    }

    private static double[] coefficients(int features) {
        double[] all = new double[features];
        for (int f = 0; f < features; f++) {
            all[f] = (f % 2 == 0 ? 1 : -1) * (f + 1) / 2.0;
        }
        return all;
    }

    private static UnaryOperator<double[]> linear(double[] c) {
        return x -> {
            double sum = 3;
            for (int f = 0; f < c.length; f++) {
                sum += c[f] * x[f];
            }
            return new double[] {sum};
        };
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 5, 11, 12, 16, 40})
    void aLinearModelHasItsTermsLessTheirMeans(int features) {
        SplittableRandom random = new SplittableRandom(features);
        double[][] background = random(random, 7, features);
        double[][] rows = random(random, 2, features);
        double[] c = coefficients(features);
        FunctionEngine engine = new FunctionEngine().with("m", features, "", 0, linear(c));
        Exchange x = engine.ask(
                "m", "{\"instances\":" + json(rows) + ",\"parameters\":{\"background\":" + json(background) + "}}");
        assertThat(x.tree().get("algorithm")).isEqualTo(features <= 11 ? "kernel_shap_exact" : "kernel_shap_sampled");
        List<?> result = (List<?>) x.tree().get("explanations");
        for (int i = 0; i < rows.length; i++) {
            Map<?, ?> one = (Map<?, ?>) result.get(i);
            double base = 3;
            for (int f = 0; f < features; f++) {
                int at = f;
                double mean = Arrays.stream(background)
                        .mapToDouble(r -> r[at])
                        .average()
                        .orElseThrow();
                base += c[f] * mean;
                assertThat(numbers(one.get("shap_values"))[f]).isCloseTo(c[f] * (rows[i][f] - mean), within(1e-8));
            }
            assertThat((Double) one.get("base_value")).isCloseTo(base, within(1e-9));
            assertThat((Double) one.get("prediction")).isCloseTo(linear(c).apply(rows[i])[0], within(1e-12));
        }
    }

    /** The average over all orders in which the features become known. */
    private static double[] bruteForce(UnaryOperator<double[]> f, double[] x, double[][] background, int output) {
        int m = x.length;
        double[] value = new double[1 << m];
        for (int set = 0; set < value.length; set++) {
            for (double[] other : background) {
                double[] row = other.clone();
                for (int k = 0; k < m; k++) {
                    row[k] = (set >> k & 1) != 0 ? x[k] : row[k];
                }
                value[set] += f.apply(row)[output] / background.length;
            }
        }
        double[] sums = new double[m];
        int[] order = new int[m];
        for (int i = 0; i < m; i++) {
            order[i] = i;
        }
        int orders = permute(order, 0, value, sums);
        return Arrays.stream(sums).map(s -> s / orders).toArray();
    }

    private static int permute(int[] order, int at, double[] value, double[] sums) {
        if (at == order.length) {
            int set = 0;
            for (int k : order) {
                sums[k] += value[set | 1 << k] - value[set];
                set |= 1 << k;
            }
            return 1;
        }
        int count = 0;
        for (int i = at; i < order.length; i++) {
            int kept = order[at];
            order[at] = order[i];
            order[i] = kept;
            count += permute(order, at + 1, value, sums);
            order[i] = order[at];
            order[at] = kept;
        }
        return count;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6})
    void anyFunctionHasTheAverageOverAllOrders(int features) {
        SplittableRandom random = new SplittableRandom(100 + features);
        double[] a = random(random, 1, features)[0];
        UnaryOperator<double[]> f = x -> {
            double product = 1;
            double sum = 0;
            for (int k = 0; k < x.length; k++) {
                product *= 1 + a[k] * x[k];
                sum += Math.sin(x[k] * (k + 1)) + (x[k] > 0 ? x[(k + 1) % x.length] : 0);
            }
            return new double[] {product, sum, product * sum};
        };
        double[][] background = random(random, 4, features);
        double[][] rows = random(random, 3, features);
        FunctionEngine engine = new FunctionEngine().with("m", features, "", 5, f);
        Exchange x = engine.ask(
                "m", "{\"instances\":" + json(rows) + ",\"explain\":{\"background\":" + json(background) + "}}");
        List<?> result = (List<?>) x.tree().get("explanations");
        for (int i = 0; i < rows.length; i++) {
            List<?> shap = (List<?>) ((Map<?, ?>) result.get(i)).get("shap_values");
            for (int o = 0; o < 3; o++) {
                double[] wanted = bruteForce(f, rows[i], background, o);
                for (int k = 0; k < features; k++) {
                    assertThat(numbers(shap.get(o))[k]).isCloseTo(wanted[k], within(1e-9));
                }
            }
        }
        assertThat(engine.batches).allMatch(b -> b <= 5);
    }

    @Test
    void sampledValuesAddUpAndAreNearTheExactOnes() {
        int features = 10;
        UnaryOperator<double[]> f = x -> {
            double sum = 0;
            for (int k = 0; k + 1 < x.length; k++) {
                sum += x[k] * x[k + 1] + Math.tanh(x[k]);
            }
            return new double[] {sum};
        };
        double[][] background = random(new SplittableRandom(4), 5, features);
        double[][] rows = random(new SplittableRandom(5), 1, features);
        FunctionEngine engine = new FunctionEngine().with("m", features, "", 0, f);
        String start = "{\"instances\":" + json(rows) + ",\"parameters\":{\"background\":" + json(background);
        Map<?, ?> exact = engine.ask("m", start + "}}").first();
        String sampled = start + ",\"nsamples\":600,\"seed\":9}}";
        Exchange x = engine.ask("m", sampled);
        assertThat(x.tree().get("algorithm")).isEqualTo("kernel_shap_sampled");
        double[] found = numbers(x.first().get("shap_values"));
        double[] wanted = numbers(exact.get("shap_values"));
        for (int k = 0; k < features; k++) {
            assertThat(found[k]).isCloseTo(wanted[k], within(0.05));
        }
        assertThat(Arrays.stream(found).sum() + (Double) exact.get("base_value"))
                .isCloseTo((Double) exact.get("prediction"), within(1e-9));
        assertThat(engine.ask("m", sampled).text()).isEqualTo(x.text());
        assertThat(engine.ask("m", sampled.replace("9}", "10}")).text()).isNotEqualTo(x.text());
    }

    @Test
    void theLogitLinkExplainsTheLogit() {
        UnaryOperator<double[]> f = x -> new double[] {1 / (1 + Math.exp(-(2 * x[0] - x[1] + 0.5)))};
        FunctionEngine engine = new FunctionEngine().with("m", 2, "a,b", 0, f);
        Map<?, ?> result = engine.ask(
                        "m",
                        "{\"instances\":[{\"b\":1,\"a\":2}],\"parameters\":{\"background\":[[0,0]],\"link\":\"logit\"}}")
                .first();
        assertThat(numbers(result.get("shap_values"))[0]).isCloseTo(4, within(1e-9));
        assertThat(numbers(result.get("shap_values"))[1]).isCloseTo(-1, within(1e-9));
        assertThat((Double) result.get("base_value")).isCloseTo(0.5, within(1e-9));
        assertThat((List<?>) result.get("feature_names")).isEqualTo(List.of("a", "b"));
    }

    @Test
    void featuresThatDoNotDifferFromTheBackgroundContributeNothing() {
        FunctionEngine engine = new FunctionEngine().with("m", 3, "", 0, x ->
                new double[] {x[0] + (Double.isNaN(x[1]) ? 5 : x[1]) * x[2]});
        Map<?, ?> result = engine.ask(
                        "m", "{\"instances\":[[1,null,2]],\"parameters\":{\"background\":[[1,null,1],[1,null,0]]}}")
                .first();
        assertThat(numbers(result.get("shap_values"))).containsExactly(0, 0, 7.5);
    }

    @Test
    void manyInstancesStandForTheDataByTheirMedian() {
        double[][] rows = new double[10][];
        for (int i = 0; i < 10; i++) {
            rows[i] = new double[] {i, i == 0 ? 100 : 1};
        }
        FunctionEngine engine = new FunctionEngine().with("m", 2, "", 0, linear(new double[] {2, 1}));
        Exchange x = engine.ask("m", "{\"instances\":" + json(rows) + "}");
        assertThat(numbers(x.first().get("shap_values"))).containsExactly(-9, 99);
        assertThat(((Map<?, ?>) x.tree().get("background")).get("origin")).isEqualTo("median of the 10 instances");
    }

    @Test
    void aModelsOwnValuesAreUsedUnlessTheRequestSelectsOthers() {
        FunctionEngine engine = new FunctionEngine()
                .with("m", 2, "", 0, x -> new double[] {x[0], x[1], 0})
                .explaining("m", Shape.of(-1, 3, 3), x -> new double[] {1, 2, 3, 4, 5, 6, 7, 8, 9});
        Exchange x = engine.ask("m", "{\"instances\":[[1,2]]}");
        assertThat(x.tree().get("algorithm")).isEqualTo("tree_shap");
        assertThat(numbers(x.first().get("base_value"))).containsExactly(3, 6, 9);
        assertThat(numbers(((List<?>) x.first().get("shap_values")).get(1))).containsExactly(4, 5);
        assertThat(numbers(x.first().get("explained_value"))).containsExactly(6, 15, 24);
        Map<?, ?> one = engine.ask("m", "{\"instances\":[[1,2]],\"parameters\":{\"target\":\"top\"}}")
                .first();
        assertThat(one.get("target")).isEqualTo(2.0);
        assertThat(numbers(one.get("shap_values"))).containsExactly(7, 8);
        Exchange kernel = engine.ask("m", "{\"instances\":[[1,2]],\"parameters\":{\"background\":[[0,0]]}}");
        assertThat(kernel.tree().get("algorithm")).isEqualTo("kernel_shap_exact");
    }

    @Test
    void bothProtocolsAndVersionsAndColumnsAreTaken() {
        FunctionEngine engine = new FunctionEngine().with("m", 2, "a,b", 0, linear(new double[] {2, 1}));
        String parameters = ",\"parameters\":{\"background\":[[0,0]]}}";
        for (String body : List.of(
                "{\"instances\":[[1,2],[3,4]]" + parameters,
                "{\"inputs\":[[1,2],[3,4]]" + parameters,
                "{\"instances\":[{\"a\":1,\"b\":2},{\"b\":4,\"a\":3}]" + parameters,
                "{\"instances\":[{\"a\":[1,3],\"b\":[2,4]}]" + parameters,
                "{\"inputs\":[{\"name\":\"x\",\"shape\":[2,2],\"datatype\":\"FP64\",\"data\":[1,2,3,4]}]"
                        + parameters)) {
            for (String route : List.of("/v1/models/{model}:explain", "/v2/models/{model}/explain")) {
                Exchange x = engine.ask(ExplainSettings.none(), route, body, "m");
                List<?> result = (List<?>) x.tree().get("explanations");
                assertThat(numbers(((Map<?, ?>) result.get(1)).get("shap_values")))
                        .as(body)
                        .containsExactly(6, 4);
            }
        }
        Exchange x = engine.ask(
                ExplainSettings.none(),
                "/v1/models/{model}/versions/{version}:explain",
                "{\"id\":\"q\",\"instances\":[[1,2]]" + parameters,
                "m",
                "3");
        assertThat(x.tree().get("id")).isEqualTo("q");
        assertThat(x.tree().get("model_version")).isEqualTo("3");
    }
}
