// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.transform.FakePredictor.Client;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TransformedModelsTest {
    private final FakePredictor predictor = new FakePredictor();
    private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();
    private final List<Tensor> sent = new ArrayList<>();
    private boolean ending;
    private final Executor executor = task -> {
        if (ending) {
            throw new RejectedExecutionException();
        }
        tasks.add(task);
    };

    /** Checks that every tensor of the client was released once. */
    @AfterEach
    void allTensorsAreReleased() {
        for (Tensor tensor : sent) {
            MemoryRegion region = tensor.region();
            assertThatThrownBy(region::retain).as("the input is held").isInstanceOf(RuntimeException.class);
        }
    }

    private void run() {
        Runnable next;
        while ((next = tasks.poll()) != null) {
            next.run();
        }
    }

    private TransformedModels models(Transformer transformer) {
        return new TransformedModels(new TransformerSteps(transformer, "m"), executor, predictor, predictor, 1_000);
    }

    private InferenceRequest request(TensorMap payload, RequestedOutput... outputs) {
        List<Tensor> tensors = payload.tensors();
        sent.addAll(tensors);
        return new InferenceRequest(
                ModelRef.latest("m"), "7", tensors, List.of(outputs), payload.parameters(), Long.MAX_VALUE, 0);
    }

    /** Has inputs and outputs of its own: words. */
    private static class Words implements Transformer {
        @Override
        public List<TensorSpec> inputs(List<TensorSpec> predictor) {
            return List.of(new TensorSpec("text", DataType.BYTES, Shape.of(-1)));
        }

        @Override
        public List<TensorSpec> outputs(List<TensorSpec> predictor) {
            return List.of(new TensorSpec("word", DataType.BYTES, Shape.of(-1)));
        }

        @Override
        public TensorMap preprocess(TensorMap request) {
            String[] texts = request.texts("text");
            float[][] rows = new float[texts.length][2];
            for (int i = 0; i < texts.length; i++) {
                rows[i][0] = Float.parseFloat(texts[i]);
                rows[i][1] = 1;
            }
            return TensorMap.of("x", rows).withParameter("more", true);
        }

        @Override
        public TensorMap postprocess(TensorMap answer, TensorMap request) {
            float[] y = answer.floats("y");
            String[] words = new String[y.length];
            for (int i = 0; i < y.length; i++) {
                words[i] = request.texts("text")[i] + "->" + y[i];
            }
            return answer.without("y").with("word", words).with("count", (float) y.length);
        }
    }

    /** Doubles the inputs. */
    private static final class Before implements Transformer {
        @Override
        public TensorMap preprocess(TensorMap request) {
            float[] x = request.floats("x");
            for (int i = 0; i < x.length; i++) {
                x[i] *= 2;
            }
            return request.with("x", x);
        }
    }

    /** Halves the outputs. */
    private static class After implements Transformer {
        @Override
        public TensorMap postprocess(TensorMap answer, TensorMap request) throws Exception {
            float[] y = answer.floats("y");
            for (int i = 0; i < y.length; i++) {
                y[i] /= 2;
            }
            return answer.with("y", y);
        }
    }

    @Test
    void aRequestRunsThroughBothStepsAndThePredictor() {
        Client client = new Client();
        InferenceCall unused = models(new Words())
                .infer(request(TensorMap.of("text", new String[] {"1.5", "2"}).withParameter("a", "b")), client);
        assertThat(predictor.asked)
                .as("steps do not run on the caller's thread")
                .isEmpty();
        run();
        assertThat(predictor.asked(0).request().parameters()).isEqualTo(Map.of("more", true));
        assertThat(predictor.asked(0).request().id()).isEqualTo("7");
        assertThat(predictor.asked(0).x()).containsExactly(1.5f, 1, 2, 1);
        predictor.asked(0).answer(true, 10, 20);
        assertThat(client.received).isEmpty();
        run();
        assertThat(client.received).containsExactly("m:3#7 word=[1.5->10.0, 2->20.0] count=[2.0]");
        assertThat(client.ended).isDone();
    }

    @Test
    void onlyOverriddenStepsRunOnTheExecutor() {
        Client client = new Client();
        InferenceCall first = models(new Before()).infer(request(TensorMap.of("x", new float[] {1, 2})), client);
        run();
        assertThat(predictor.asked(0).x()).containsExactly(2, 4);
        predictor.asked(0).answer(true, 3);
        assertThat(tasks).isEmpty();
        assertThat(client.received).containsExactly("m:3#7 y=[3.0]");

        InferenceCall second = models(new After()).infer(request(TensorMap.of("x", new float[] {1, 2})), client);
        assertThat(tasks).isEmpty();
        assertThat(predictor.asked(1).x()).containsExactly(1, 2);
        predictor.asked(1).answer(true, 3);
        run();
        assertThat(client.received.get(1)).endsWith("y=[1.5]");
        assertThat(first).isNotSameAs(second);
    }

    @Test
    void decoupledResponsesKeepTheirOrder() {
        Client client = new Client();
        InferenceCall unused = models(new After()).infer(request(TensorMap.of("x", 1f)), client);
        predictor.asked(0).x();
        predictor.asked(0).answer(false, 2);
        predictor.asked(0).answer(false, 4);
        assertThat(tasks).as("one step at a time").hasSize(1);
        run();
        predictor.asked(0).answer(false, 6);
        predictor
                .asked(0)
                .sink()
                .next(
                        new io.nereid.spi.InferenceResponse(
                                new io.nereid.spi.ServableId("m", 3), "7", List.of(), Map.of()),
                        true);
        run();
        assertThat(client.received.stream().map(t -> t.substring(t.indexOf('#'))))
                .containsExactly("#7 y=[1.0]", "#7 y=[2.0]", "#7 y=[3.0]", "#7");
        assertThat(client.ended).isDone();
    }

    @Test
    void metadataShowTheTensorsOfTheTransformer() {
        TransformedModels models = models(new Words());
        ModelMetadata metadata = models.metadata(ModelRef.latest("m"));
        assertThat(metadata.inputs()).extracting(TensorSpec::name).containsExactly("text");
        assertThat(metadata.outputs()).extracting(TensorSpec::name).containsExactly("word");
        assertThat(Objects.requireNonNull(metadata.signature("")).inputs()).isEqualTo(metadata.inputs());
        assertThat(metadata.maxBatchSize()).isZero();
        ModelConfig config = models.config(ModelRef.latest("m"));
        assertThat(config.inputs()).isEqualTo(metadata.inputs());
        assertThat(config.maxBatchSize()).isZero();
        assertThat(models(new After()).metadata(ModelRef.latest("m")))
                .isEqualTo(predictor.metadata(ModelRef.latest("m")));
        assertThat(models(new After()).config(ModelRef.latest("m")).maxBatchSize())
                .isEqualTo(8);
        assertThat(models.ready(ModelRef.latest("m"))).isTrue();
        assertThat(models.index()).hasSize(1);
    }

    private ServingException refused(Transformer transformer, TensorMap payload) {
        Client client = new Client();
        InferenceCall unused = models(transformer).infer(request(payload), client);
        run();
        assertThat(predictor.asked).isEmpty();
        return Objects.requireNonNull(client.failure);
    }

    @Test
    void inputsThatDoNotMatchTheSpecsAreRejectedBeforeTheStep() {
        assertThat(refused(new Words(), TensorMap.of("text", new float[] {1})))
                .hasMessage("input 'text' of model 'm' is of type FP32, expected BYTES")
                .extracting(ServingException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(refused(new Words(), TensorMap.of("text", new String[][] {{"a"}})))
                .hasMessage("input 'text' of model 'm' has the shape [1,1], expected [-1]");
        assertThat(refused(new Words(), TensorMap.of("words", "a"))).hasMessage("model 'm' has no input 'words'");
        assertThat(refused(new Words(), TensorMap.empty())).hasMessage("input 'text' of model 'm' is missing");
    }

    @Test
    void exceptionsOfStepsMapToErrorCodes() {
        assertThat(refused(new Words(), TensorMap.of("text", "abc")))
                .hasMessage("For input string: \"abc\"")
                .extracting(ServingException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
        Transformer broken = new Transformer() {
            @Override
            public TensorMap preprocess(TensorMap request) {
                throw new IllegalStateException("no store");
            }
        };
        assertThat(refused(broken, TensorMap.of("x", 1f)))
                .hasMessage("preprocess of the transformer of model 'm' failed: IllegalStateException: no store")
                .extracting(ServingException::code)
                .isEqualTo(ErrorCode.INTERNAL);
        Transformer away = new Transformer() {
            @Override
            public TensorMap preprocess(TensorMap request) {
                throw ServingException.of(ErrorCode.UNAVAILABLE, "the store is away");
            }
        };
        assertThat(refused(away, TensorMap.of("x", 1f)).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        Transformer missing = new Transformer() {
            @Override
            public TensorMap preprocess(TensorMap request) {
                throw new NoClassDefFoundError("com/example/Gone");
            }
        };
        assertThat(refused(missing, TensorMap.of("x", 1f))).hasMessageContaining("NoClassDefFoundError");
    }

    @Test
    void anExceptionOfPostprocessEndsTheRequestOnce() {
        Transformer broken = new After() {
            @Override
            public TensorMap postprocess(TensorMap answer, TensorMap request) throws Exception {
                throw new Exception("no");
            }
        };
        Client client = new Client();
        InferenceCall unused = models(broken).infer(request(TensorMap.of("x", 1f)), client);
        predictor.asked(0).x();
        predictor.asked(0).answer(false, 1);
        predictor.asked(0).answer(true, 1);
        run();
        assertThat(Objects.requireNonNull(client.failure)).hasMessageContaining("postprocess of the transformer");
        assertThat(client.received).isEmpty();
        assertThat(predictor.cancelled).hasValue(1);
    }

    @Test
    void theClientReceivesThePredictorsFailure() {
        Client client = new Client();
        InferenceCall unused = models(new After()).infer(request(TensorMap.of("x", 1f)), client);
        predictor.asked(0).x();
        ServingException failure = ServingException.of(ErrorCode.DEADLINE_EXCEEDED, "late");
        predictor.asked(0).sink().fail(failure);
        run();
        assertThat(client.failure).isSameAs(failure);
    }

    @Test
    void returnsOnlyTheRequestedOutputs() {
        Client client = new Client();
        InferenceCall unused =
                models(new Words()).infer(request(TensorMap.of("text", "1"), new RequestedOutput("count", 0)), client);
        run();
        assertThat(predictor.asked(0).request().outputs()).isEmpty();
        predictor.asked(0).x();
        predictor.asked(0).answer(true, 5);
        run();
        assertThat(client.received.get(0)).endsWith("#7 count=[1.0]");

        Client wrong = new Client();
        InferenceCall more =
                models(new Words()).infer(request(TensorMap.of("text", "1"), new RequestedOutput("y", 0)), wrong);
        run();
        predictor.asked(1).x();
        predictor.asked(1).answer(true, 5);
        run();
        assertThat(Objects.requireNonNull(wrong.failure)).hasMessage("unexpected inference output 'y' for model 'm'");
        assertThat(more).isNotSameAs(unused);
    }

    @Test
    void cancellationReachesThePredictorOrPreventsTheCall() {
        Client early = new Client();
        InferenceCall first = models(new Words()).infer(request(TensorMap.of("text", "1")), early);
        first.cancel();
        run();
        assertThat(Objects.requireNonNull(early.failure).code()).isEqualTo(ErrorCode.CANCELLED);
        assertThat(predictor.asked).isEmpty();

        InferenceCall second = models(new Words()).infer(request(TensorMap.of("text", "1")), new Client());
        run();
        second.cancel();
        assertThat(predictor.cancelled).hasValue(1);
        predictor.asked(0).x();
        predictor.asked(0).sink().fail(ServingException.of(ErrorCode.CANCELLED, "cancelled"));
        run();
    }

    @Test
    void thePredictorReceivesTheDeadline() {
        InferenceCall first = models(new After()).infer(request(TensorMap.of("x", 1f)), new Client());
        assertThat(predictor.asked(0).request().deadlineNanos()).isEqualTo(1_000);
        InferenceRequest sooner = request(TensorMap.of("x", 1f));
        InferenceCall second = models(new After())
                .infer(
                        new InferenceRequest(
                                sooner.model(), "", sooner.inputs(), List.of(), Map.of(), 500, 0, sooner.options()),
                        new Client());
        assertThat(predictor.asked(1).request().deadlineNanos()).isEqualTo(500);
        assertThat(first).isNotSameAs(second);
        for (int i = 0; i < 2; i++) {
            predictor.asked(i).x();
            predictor.asked(i).answer(true, 1);
        }
        run();
    }

    @Test
    void aClosedTransformerRejectsRequests() {
        ending = true;
        Client client = new Client();
        InferenceCall unused = models(new Words()).infer(request(TensorMap.of("text", "1")), client);
        assertThat(Objects.requireNonNull(client.failure).code()).isEqualTo(ErrorCode.UNAVAILABLE);

        ending = false;
        Client late = new Client();
        InferenceCall more = models(new After()).infer(request(TensorMap.of("x", 1f)), late);
        predictor.asked(0).x();
        ending = true;
        predictor.asked(0).answer(true, 1);
        assertThat(Objects.requireNonNull(late.failure).code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(more).isNotSameAs(unused);
    }
}
