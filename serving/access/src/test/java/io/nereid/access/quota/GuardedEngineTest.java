// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.access.config.AccessConfig;
import io.nereid.access.config.AccessConfigReader;
import io.nereid.access.config.Quota;
import io.nereid.access.config.Role;
import io.nereid.access.credential.Principal;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.ModelConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Roles and quotas in front of an engine whose requests the test ends. */
class GuardedEngineTest {
    private final List<ResponseSink> running = new ArrayList<>();
    private final InferenceEngine inner = new InferenceEngine() {
        @Override
        public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
            running.add(sink);
            return () -> {};
        }

        @Override
        public ModelMetadata metadata(ModelRef model) {
            throw new AssertionError();
        }

        @Override
        public ModelConfig config(ModelRef model) {
            throw new AssertionError();
        }
    };

    private QuotaTable table = new QuotaTable(AccessConfig.DEFAULT, Clock.system());

    private static Principal caller(String name, Quota quota) {
        return new Principal(name, List.of(Role.builtIn().get("client")), quota, true, Long.MAX_VALUE);
    }

    private @Nullable ServingException send(@Nullable Caller caller, String model) {
        ServingException[] failure = {null};
        InferenceRequest request =
                new InferenceRequest(ModelRef.latest(model), "", List.of(), List.of(), Map.of(), Long.MAX_VALUE, 0);
        InferenceCall unused = table.guard(inner)
                .infer(caller == null ? request : request.from(caller), new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {}

                    @Override
                    public void fail(ServingException e) {
                        failure[0] = e;
                    }
                });
        return failure[0];
    }

    @Test
    void aRequestWithoutACallerOrARoleIsRefused() {
        assertThat(send(null, "m").code()).isEqualTo(ErrorCode.PERMISSION_DENIED);
        Principal withoutRoles = new Principal("n", List.of(), Quota.NONE, true, Long.MAX_VALUE);
        assertThat(send(withoutRoles, "m").code()).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(send(Caller.INTERNAL, "m")).isNull();
        assertThat(running).hasSize(1);
    }

    @Test
    void concurrentRequestsEndWithTheirResponse() {
        Principal app = caller("app", new Quota(0, 2, 0));
        assertThat(send(app, "m")).isNull();
        assertThat(send(app, "m")).isNull();
        ServingException third = send(app, "m");
        assertThat(third.code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(third.retryAfter()).isNotNull();
        running.get(0).fail(ServingException.of(ErrorCode.INTERNAL, "x"));
        running.get(0).fail(ServingException.of(ErrorCode.INTERNAL, "once more, which counts once"));
        assertThat(send(app, "m")).isNull();
        assertThat(send(app, "m")).isNotNull();
        String page = MetricsWriter.page(MetricsFormat.TEXT, table::writeMetrics);
        assertThat(page)
                .contains("nereid_access_requests_total{key=\"app\"} 5")
                .contains("nereid_access_quota_rejections_total{key=\"app\",model=\"m\",quota=\"key\"} 2");
    }

    @Test
    void aSaturatedModelIsSharedFairly() {
        table = new QuotaTable(
                AccessConfigReader.read("quotas: {models: {m: {concurrentRequests: 10}}}", "test"), Clock.system());
        Principal greedy = caller("greedy", Quota.NONE);
        Principal modest = caller("modest", Quota.NONE);
        for (int i = 0; i < 10; i++) {
            assertThat(send(greedy, "m")).isNull();
        }
        assertThat(send(modest, "m")).as("the model is full").isNotNull();
        running.get(0).fail(ServingException.of(ErrorCode.CANCELLED, "x"));
        assertThat(send(greedy, "m").getMessage()).contains("more than its fair share");
        assertThat(send(modest, "m")).isNull();
    }

    @Test
    void callersBeyondTheLimitOfNamesKeepAQuotaTogether() {
        for (int i = 0; i < 10_000; i++) {
            assertThat(send(caller("caller-" + i, Quota.NONE), "m")).isNull();
        }
        Principal one = caller("one", new Quota(0, 1, 0));
        Principal other = caller("other", new Quota(0, 1, 1 << 30));
        assertThat(send(one, "m")).isNull();
        assertThat(send(other, "m").code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
        assertThat(send(one, "m").code()).isEqualTo(ErrorCode.RESOURCE_EXHAUSTED);
    }
}
