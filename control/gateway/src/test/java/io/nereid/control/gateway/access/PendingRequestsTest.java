// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.access;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.control.gateway.Fakes;
import io.nereid.control.gateway.Fakes.ManualExecutor;
import io.nereid.control.gateway.Fakes.TestCall;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.GrpcMethod;
import io.nereid.transport.api.GrpcMethod.GrpcListener;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** gRPC calls of callers who become known later; HTTP requests are tested with sockets by the operator's module. */
class PendingRequestsTest {
    private final ManualExecutor executor = new ManualExecutor();
    private final ByteBudget budget = new ByteBudget(10);
    private final PendingRequests pending = new PendingRequests(executor, budget);
    private final Decided caller = new Decided();
    private final List<String> events = new ArrayList<>();
    private final TestCall call = new TestCall("/inference.GRPCInferenceService/ModelStreamInfer") {
        @Override
        public Caller caller() {
            return caller;
        }
    };
    private final GrpcMethod method =
            pending.guard(new GrpcMethod("/*", GrpcMethod.Kind.BIDI_STREAMING, Operation.INFERENCE, started -> {
                events.add("start");
                return new GrpcListener() {
                    @Override
                    public void onMessage(MemoryRegion message) {
                        events.add(Fakes.text(message));
                    }

                    @Override
                    public void onHalfClose() {
                        events.add("half-close");
                    }

                    @Override
                    public void onCancel() {
                        events.add("cancel");
                    }
                };
            }));

    private static final class Decided implements PendingCaller {
        boolean admitted;

        @Nullable Consumer<@Nullable ServingException> action;

        @Override
        public boolean isAdmitted() {
            return admitted;
        }

        @Override
        public void whenDecided(Consumer<@Nullable ServingException> given) {
            action = given;
        }

        @Override
        public String name() {
            return "test";
        }

        @Override
        public boolean may(Permission permission, @Nullable String model) {
            return admitted;
        }
    }

    private void decide(@Nullable ServingException refusal) {
        caller.admitted = refusal == null;
        assertThat(caller.action).isNotNull();
        caller.action.accept(refusal);
        executor.runAll();
    }

    private static void send(GrpcListener listener, String text) {
        MemoryRegion message = Fakes.region(text);
        listener.onMessage(message);
        message.release();
    }

    @Test
    void messagesAreHeldBackInOrderAndFollowedByOthers() {
        GrpcListener listener = method.handler().start(call);
        send(listener, "one");
        send(listener, "two");
        assertThat(events).isEmpty();
        decide(null);
        assertThat(events).containsExactly("start", "one", "two");
        send(listener, "a message beyond the budget");
        listener.onHalfClose();
        assertThat(events).endsWith("a message beyond the budget", "half-close");
        assertThat(budget.tryReserve(10)).isTrue();
    }

    @Test
    void aRefusedCallNeverReachesItsHandler() {
        GrpcListener listener = method.handler().start(call);
        send(listener, "one");
        decide(ServingException.of(ErrorCode.PERMISSION_DENIED, "no"));
        send(listener, "two");
        listener.onHalfClose();
        assertThat(events).isEmpty();
        assertThat(call.code).isEqualTo(ErrorCode.PERMISSION_DENIED);
        assertThat(budget.tryReserve(10)).isTrue();
    }

    @Test
    void aCallThatIsCancelledWhileItWaitsIsForgotten() {
        GrpcListener listener = method.handler().start(call);
        send(listener, "one");
        listener.onCancel();
        decide(null);
        assertThat(events).isEmpty();
        assertThat(budget.tryReserve(10)).isTrue();
    }

    @Test
    void messagesBeyondTheBudgetEndTheCall() {
        GrpcListener listener = method.handler().start(call);
        send(listener, "more than ten bytes");
        assertThat(call.code).isEqualTo(ErrorCode.UNAVAILABLE);
        decide(null);
        assertThat(events).isEmpty();
    }

    @Test
    void aCallOfAKnownCallerPassesAtOnce() {
        caller.admitted = true;
        GrpcListener listener = method.handler().start(call);
        assertThat(listener).isNotInstanceOf(PendingGrpcCall.class);
        assertThat(events).containsExactly("start");
    }
}
