// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Operation;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.Fakes.HoldingCodec;
import io.nereid.control.gateway.Fakes.TestCall;
import io.nereid.control.gateway.Fakes.TestExchange;
import io.nereid.control.gateway.Fakes.TestHead;
import io.nereid.control.gateway.Fakes.TestTranscoder;
import io.nereid.control.gateway.Fakes.TestVirtualHost;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget.Handler;
import io.nereid.control.gateway.upstream.RevisionTarget.Processes;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import io.nereid.transport.api.HttpReply;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Components in front of the predictor that run in this process, such as transformers in Java. */
class TransformerCodecTest {
    private final GatewayFixture fixture = new GatewayFixture();
    private final HoldingCodec steps = new HoldingCodec();
    private final List<InferenceEngine> views = new ArrayList<>();
    private final ProtocolCodec codec = fixture.gateway
            .transformerCodecs("default", "iris", (engine, control) -> {
                views.add(engine);
                return List.of(steps);
            })
            .get(0);

    /** A service with a predictor and a transformer. */
    private RevisionActivator iris() {
        fixture.route(
                List.of(new IngressRule("iris.example.com", "", null, null)),
                Map.of(
                        Component.PREDICTOR, GatewayFixture.backend(GatewayFixture.target("r1", 100)),
                        Component.TRANSFORMER, GatewayFixture.backend(GatewayFixture.target("t1", 100))));
        RevisionActivator activator = fixture.gateway.openActivator(
                "default", "t1", GatewayFixture.settings(0, 10), new Processes(List.of()));
        return activator;
    }

    private RevisionActivator awake() {
        RevisionActivator activator = iris();
        activator.destination(new Handler(List.of(codec)));
        activator.capacity(1);
        return activator;
    }

    private GrpcListener call(TestCall call) {
        return ((TestVirtualHost)
                        Objects.requireNonNull(fixture.gateway.find(TestHead.of("iris.example.com", call.path))))
                .start(call);
    }

    @Test
    void handlersUseTheModelsOfThePredictorsRevision() {
        RevisionActivator activator = awake();
        RevisionActivator predictor = fixture.open("r1", 0, 1);
        fixture.engine.models.add("default/r1");

        TestExchange x = fixture.predict();

        assertThat(steps.requests).hasSize(1);
        assertThat(views.get(1).metadata(ModelRef.latest("iris")).id().model()).isEqualTo("iris");
        assertThat(activator.activeNow()).isEqualTo(1);
        assertThat(predictor.activeNow()).isEqualTo(1);
        steps.answer(0, 200);
        assertThat(x.status()).isEqualTo(200);
        assertThat(activator.activeNow()).isZero();
        assertThat(predictor.activeNow()).isZero();

        fixture.predict();
        assertThat(views).as("protocols are built once for a revision").hasSize(2);
    }

    @Test
    void requestsWaitWhileThePredictorStarts() {
        awake();
        RevisionActivator predictor = fixture.open("r1", 0, 0);

        fixture.predict();
        assertThat(steps.requests).isEmpty();
        assertThat(fixture.woken).containsExactly("default/r1");

        predictor.capacity(1);
        fixture.executor.runAll();
        assertThat(steps.requests).hasSize(1);
    }

    @Test
    void requestsThroughTheTransformerAreNotReportedToThePredictorsListener() {
        RevisionActivator activator = awake();
        RevisionActivator predictor = fixture.open("r1", 0, 1);
        List<String> recorded = new ArrayList<>();
        activator.listener(head -> {
            recorded.add("front " + head.path());
            return null;
        });
        predictor.listener(head -> {
            recorded.add("predictor " + head.path());
            return null;
        });

        fixture.predict();
        GrpcListener unused = call(new TestCall("/s/Infer"));

        assertThat(recorded).containsExactly("front /v1/models/iris:predict", "front /s/Infer");
    }

    @Test
    void callsGoThroughBothActivators() {
        RevisionActivator activator = awake();
        RevisionActivator predictor = fixture.open("r1", 0, 0);
        TestCall call = new TestCall("/s/Infer");

        GrpcListener listener = call(call);
        listener.onMessage(Fakes.region("a"));
        listener.onHalfClose();
        assertThat(steps.calls).isEmpty();
        predictor.capacity(1);
        fixture.executor.runAll();

        assertThat(steps.events).containsExactly("message a", "half-close");
        steps.calls.get(0).close(ErrorCode.OK, null);
        assertThat(call.code).isEqualTo(ErrorCode.OK);
        assertThat(activator.activeNow()).isZero();
        assertThat(predictor.activeNow()).isZero();
    }

    @Test
    void aPredictorOfProcessesIsRejectedWithARemedy() {
        awake();
        fixture.gateway.openActivator("default", "r1", GatewayFixture.settings(0, 10), new Processes(List.of()));

        TestExchange x = fixture.predict();

        assertThat(x.status()).isEqualTo(501);
        assertThat(x.text()).contains("is a child process").contains("as a Python file");
    }

    @Test
    void aServiceWithoutAPredictorIsUnavailable() {
        assertThatThrownBy(() ->
                        codec.httpRoutes().get(0).handler().handle(TestExchange.post("/v1/models/iris:predict", "{}")))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("there is no service 'iris'");
    }

    @Test
    void requestsThatArriveBeforeTheTransformerRunsAreHandledByIt() {
        RevisionActivator activator = iris();
        fixture.open("r1", 0, 1);
        TestExchange x = fixture.predict();
        TestCall call = new TestCall("/s/Infer");
        GrpcListener unused = call(call);
        assertThat(steps.requests).isEmpty();

        activator.destination(new Handler(List.of(codec)));
        activator.capacity(1);
        fixture.executor.runAll();

        assertThat(steps.requests).hasSize(1);
        assertThat(steps.calls).hasSize(1);
        steps.answer(0, 201);
        assertThat(x.status()).isEqualTo(201);
        assertThat(x.text()).isEqualTo("{\"n\":0}");
        assertThat(activator.activeNow()).isEqualTo(1);
    }

    @Test
    void requestsThatWaitForATransformerAreHandledByItsNewInstance() {
        RevisionActivator activator = awake();
        fixture.open("r1", 0, 1);
        activator.capacity(0);
        fixture.predict();

        HoldingCodec others = new HoldingCodec();
        activator.destination(new Handler(List.of(others)));
        activator.capacity(1);
        fixture.executor.runAll();

        assertThat(steps.requests).isEmpty();
        assertThat(others.requests).hasSize(1);
    }

    @Test
    void aTransformerWithoutGrpcIsCalledOverRest() {
        RevisionActivator activator = iris();
        activator.destination(new Handler(List.of(new ProtocolCodec() {
            @Override
            public String name() {
                return "rest";
            }

            @Override
            public List<HttpRoute> httpRoutes() {
                return List.of(HttpRoute.post(
                        "/v2/models/{model}/infer",
                        Operation.INFERENCE,
                        x -> x.reply(HttpReply.json(200, "\"" + x.path()))));
            }
        })));
        activator.capacity(1);
        TestCall call = new TestCall("/inference.GRPCInferenceService/ModelInfer");
        call(call).onMessage(Fakes.region("one"));
        TestTranscoder.Transcoded bridged = fixture.transcoder.calls.get(0);
        assertThat(bridged.events()).containsExactly("message one");
        assertThat(activator.activeNow()).isEqualTo(1);
        UpstreamResponse answer = bridged.rest()
                .call("POST", "/v2/models/iris/infer", List.of(), MemoryRegion.empty())
                .toCompletableFuture()
                .join();
        assertThat(answer.status()).isEqualTo(200);
        answer.body().release();
        assertThat(activator.activeNow()).isEqualTo(1);
        bridged.call().sendAndClose(Fakes.content("answer"));
        assertThat(call.sent).containsExactly("answer");
        assertThat(activator.activeNow()).isZero();
    }
}
