// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.gateway.GatewayFixture;
import io.nereid.control.gateway.TestEngine;
import io.nereid.control.gateway.upstream.RevisionTarget.Models;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RevisionEngineViewTest {
    private final GatewayFixture fixture = new GatewayFixture();
    private final List<InferenceResponse> answers = new ArrayList<>();
    private final List<ServingException> failures = new ArrayList<>();
    private final ResponseSink sink = new ResponseSink() {
        @Override
        public void next(InferenceResponse response, boolean last) {
            answers.add(response);
        }

        @Override
        public void fail(ServingException e) {
            failures.add(e);
        }
    };

    private RevisionEngineView view(Models models) {
        RevisionActivator activator =
                fixture.gateway.openActivator("default", "r1", GatewayFixture.settings(0, 10), models);
        activator.capacity(1);
        return new RevisionEngineView(activator, models, fixture.engine, fixture.engine);
    }

    private RevisionEngineView single() {
        fixture.engine.models.add("default/r1");
        fixture.engine.models.add("default/other");
        return view(new Models("default/r1", false, "iris"));
    }

    private RevisionEngineView repository() {
        fixture.engine.models.add("default/r1/a");
        fixture.engine.models.add("default/r1/b");
        fixture.engine.models.add("default/r12/c");
        return view(new Models("default/r1", true, ""));
    }

    private static InferenceRequest request(ModelRef model, long deadline) {
        return new InferenceRequest(model, "7", List.of(), List.of(), Map.of(), deadline, 1000);
    }

    @Test
    void requestsHaveTheEnginesModelNameAndResponsesTheClients() {
        RevisionEngineView view = single();
        view.infer(request(ModelRef.latest("iris"), Long.MAX_VALUE), sink);
        TestEngine.PendingRequest pending = fixture.engine.requests.get(0);
        assertThat(pending.request().model()).isEqualTo(ModelRef.latest("default/r1"));
        pending.sink().next(new InferenceResponse(new ServableId("default/r1", 3), "7", List.of(), Map.of()), true);
        assertThat(answers.get(0).servable()).isEqualTo(new ServableId("iris", 3));
        assertThat(answers.get(0).id()).isEqualTo("7");
    }

    @Test
    void theServicesTimeoutIsTheDeadlineUnlessTheClientsIsEarlier() {
        RevisionEngineView view = single();
        view.infer(request(ModelRef.latest("iris"), Long.MAX_VALUE), sink);
        view.infer(request(ModelRef.latest("iris"), 5000), sink);
        assertThat(fixture.engine.requests.get(0).request().deadlineNanos()).isEqualTo(30_000_001_000L);
        assertThat(fixture.engine.requests.get(1).request().deadlineNanos()).isEqualTo(5000);
    }

    @Test
    void versionsAndLabelsAreKept() {
        RevisionEngineView view = single();
        view.infer(request(ModelRef.exact("iris", 2), Long.MAX_VALUE), sink);
        view.infer(request(new ModelRef("iris", ModelRef.ANY, "stable"), Long.MAX_VALUE), sink);
        assertThat(fixture.engine.requests.get(0).request().model()).isEqualTo(ModelRef.exact("default/r1", 2));
        assertThat(fixture.engine.requests.get(1).request().model().label()).isEqualTo("stable");
    }

    @Test
    void anUnknownNameIsNotFoundWithKServesMessage() {
        RevisionEngineView view = single();
        for (String name : List.of("default/r1", "other", "default/other")) {
            view.infer(request(ModelRef.latest(name), Long.MAX_VALUE), sink);
            ServingException e = failures.get(failures.size() - 1);
            assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
            assertThat(e.getMessage()).isEqualTo("Model with name " + name + " does not exist.");
            assertThatThrownBy(() -> view.metadata(ModelRef.latest(name))).hasMessage(e.getMessage());
        }
        assertThat(fixture.engine.requests).isEmpty();
    }

    @Test
    void errorsOfTheEngineUseTheClientsNames() {
        RevisionEngineView view = single();
        view.infer(request(ModelRef.latest("iris"), Long.MAX_VALUE), sink);
        fixture.engine
                .requests
                .get(0)
                .sink()
                .fail(ServingException.of(
                        ErrorCode.UNAVAILABLE, "model 'default/r1' is draining", "load 'default/r1' again"));
        assertThat(failures.get(0).describe()).isEqualTo("model 'iris' is draining (load 'iris' again)");
        assertThat(failures.get(0).code()).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void metadataConfigurationAndListsAreRenamed() {
        RevisionEngineView view = single();
        assertThat(view.metadata(ModelRef.latest("iris")).id()).isEqualTo(new ServableId("iris", 3));
        assertThat(view.config(ModelRef.latest("iris")).name()).isEqualTo("iris");
        assertThat(view.config(ModelRef.latest("iris")).backend()).isEqualTo("onnxruntime");
        assertThat(view.config(ModelRef.latest("iris")).document()).containsEntry("name", "iris");
        assertThat(view.index()).singleElement().satisfies(s -> {
            assertThat(s.model()).isEqualTo("iris");
            assertThat(s.versions().get(0).id()).isEqualTo(new ServableId("iris", 3));
            assertThat(s.versions().get(0).reason()).isEqualTo("model iris is fine");
        });
        assertThat(view.ready(ModelRef.latest("iris"))).isTrue();
    }

    @Test
    void aRepositoryHasItsModelsAndNoOthers() {
        RevisionEngineView view = repository();
        assertThat(view.index()).extracting(s -> s.model()).containsExactly("a", "b");
        view.infer(request(ModelRef.latest("b"), Long.MAX_VALUE), sink);
        assertThat(fixture.engine.requests.get(0).request().model().model()).isEqualTo("default/r1/b");
        fixture.engine
                .requests
                .get(0)
                .sink()
                .next(new InferenceResponse(new ServableId("default/r1/b", 1), "", List.of(), Map.of()), true);
        assertThat(answers.get(0).servable().model()).isEqualTo("b");
        assertThat(view.metadata(ModelRef.latest("a")).id().model()).isEqualTo("a");
        assertThatThrownBy(() -> view.metadata(ModelRef.latest("c"))).hasMessage("Model with name c does not exist.");
    }

    @Test
    void modelsOfAServiceAreNotLoadedByHand() {
        RevisionEngineView view = single();
        assertThat(view.load("iris").toCompletableFuture())
                .isCompletedExceptionally()
                .failsWithin(java.time.Duration.ZERO)
                .withThrowableThat()
                .withMessageContaining("cannot load model 'iris'");
    }

    @Test
    void aServiceAtZeroIsReadyAndOneThatNeverServedIsNot() {
        RevisionEngineView view = single();
        assertThat(view.ready()).isTrue();
        RevisionActivator activator = java.util.Objects.requireNonNull(fixture.gateway.activator("default", "r1"));
        activator.capacity(0);
        assertThat(view.ready()).isTrue();
        activator.reject("broken");
        assertThat(view.ready()).isFalse();
        RevisionActivator fresh = fixture.gateway.openActivator(
                "default", "r9", GatewayFixture.settings(0, 1), new Models("default/r9", false, "iris"));
        assertThat(new RevisionEngineView(
                                fresh, new Models("default/r9", false, "iris"), fixture.engine, fixture.engine)
                        .ready())
                .isFalse();
    }
}
