// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.access;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.access.Caller;
import io.nereid.base.access.Operation;
import io.nereid.base.access.Permission;
import io.nereid.control.core.Route;
import io.nereid.control.operator.access.AccessReviewOptions.Mode;
import io.nereid.transport.api.access.ClientConnection;
import io.nereid.transport.api.access.RequestHead;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The decisions about callers, and what is remembered of them, with an API server that the test controls. */
class ServiceAccessTest {
    private static final Caller OTHERS = Caller.ANONYMOUS;

    private final AtomicLong nanos = new AtomicLong(1);
    private final TestApi api = new TestApi();
    private final ProtectedServices services = new ProtectedServices(Mode.ANNOTATED);
    private final List<ServiceAccess.Refusal> refusals = Collections.synchronizedList(new ArrayList<>());
    private final ServiceAccess access = access(services);

    private ServiceAccess access(ProtectedServices of) {
        return new ServiceAccess(
                of,
                new AccessReviewOptions(of.mode(), List.of("nereid"), Duration.ofSeconds(30)),
                api,
                head -> new Route("default", head.path().substring(1), "InferenceService", List.of(), Map.of(), ""),
                (head, connection, operation, model) -> OTHERS,
                refusals::add,
                new Clock() {
                    @Override
                    public long nanos() {
                        return nanos.get();
                    }

                    @Override
                    public long millis() {
                        return nanos.get() / 1_000_000;
                    }
                });
    }

    ServiceAccessTest() {
        services.put("default", "iris", "InferenceService", "true", Set.of());
    }

    @AfterEach
    void close() {
        api.open.countDown();
        access.close();
    }

    /** Knows the tokens {@code NAME-token}; {@code good} may get everything. */
    private static final class TestApi implements AccessApi {
        final AtomicInteger tokens = new AtomicInteger();
        final AtomicInteger rights = new AtomicInteger();
        final AtomicInteger inFlight = new AtomicInteger();
        final AtomicInteger mostInFlight = new AtomicInteger();
        final List<Right> asked = Collections.synchronizedList(new ArrayList<>());
        final CountDownLatch open = new CountDownLatch(1);
        volatile boolean held;
        volatile boolean away;

        private void call() {
            mostInFlight.accumulateAndGet(inFlight.incrementAndGet(), Math::max);
            try {
                if (held && !open.await(60, TimeUnit.SECONDS)) {
                    throw new AssertionError("never opened");
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            } finally {
                inFlight.decrementAndGet();
            }
            if (away) {
                throw ServingException.of(ErrorCode.UNAVAILABLE, "connection refused");
            }
        }

        @Override
        public @Nullable Identity identify(String token, List<String> audiences) {
            assertThat(audiences).containsExactly("nereid");
            tokens.incrementAndGet();
            call();
            return token.endsWith("-token")
                    ? new Identity(token.substring(0, token.length() - 6), "", List.of(), Map.of())
                    : null;
        }

        @Override
        public boolean allows(Identity identity, Right right) {
            rights.incrementAndGet();
            asked.add(right);
            call();
            return identity.name().equals("good") && right.verb().equals("get");
        }
    }

    private record Head(String path, @Nullable String authorization, boolean grpc) implements RequestHead {
        @Override
        public String method() {
            return "POST";
        }

        @Override
        public @Nullable String authority() {
            return null;
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return lowerCaseName.equals("authorization") ? authorization : null;
        }

        @Override
        public boolean hasHeader(String lowerCaseName, String value) {
            return value.equals(header(lowerCaseName));
        }

        @Override
        public void headers(BiConsumer<String, String> each) {}
    }

    private static final class Connection implements ClientConnection {
        @Override
        public SocketAddress remote() {
            return InetSocketAddress.createUnresolved("client", 1);
        }

        @Override
        public boolean secure() {
            return false;
        }

        @Override
        public boolean unixSocket() {
            return false;
        }

        @Override
        public boolean serverIsLocal() {
            return false;
        }

        @Override
        public @Nullable String peer() {
            return null;
        }

        @Override
        public @Nullable Object remembered() {
            return null;
        }

        @Override
        public void remember(@Nullable Object result) {}
    }

    private Caller admit(String service, @Nullable String token, Operation operation) {
        return access.admit(
                new Head("/" + service, token == null ? null : "Bearer " + token, false),
                new Connection(),
                operation,
                null);
    }

    /** The decision about a request: the name of its caller, or the code of the refusal. */
    private String decision(String service, @Nullable String token, Operation operation) {
        Caller caller;
        try {
            caller = admit(service, token, operation);
        } catch (ServingException e) {
            return e.code() + ": " + e.getMessage();
        }
        if (!(caller instanceof ReviewedCaller reviewed)) {
            return "others";
        }
        CompletableFuture<String> decided = new CompletableFuture<>();
        reviewed.whenDecided(e -> decided.complete(e == null ? caller.name() : e.code() + ": " + e.getMessage()));
        return decided.orTimeout(60, TimeUnit.SECONDS).join();
    }

    private String decision(@Nullable String token) {
        return decision("iris", token, Operation.INFERENCE);
    }

    /** Time passes once the reviews under way are over: they look at the time again. */
    private void forward(int seconds) throws InterruptedException {
        until(access::isIdle);
        nanos.addAndGet(Duration.ofSeconds(seconds).toNanos());
    }

    @Test
    void whoMayCallIsDecidedByTokenAndRight() {
        assertThat(decision("good-token")).isEqualTo("good");
        assertThat(decision("bad-token"))
                .isEqualTo("PERMISSION_DENIED: user \"bad\" may not get inferenceservices.serving.kserve.io \"iris\" in"
                        + " namespace \"default\"");
        assertThat(decision("nonsense")).startsWith("UNAUTHENTICATED: the token is not valid for the audience nereid");
        assertThat(decision((String) null)).startsWith("UNAUTHENTICATED");
        assertThat(decision("nrd_key")).startsWith("UNAUTHENTICATED").contains("not API keys");
        assertThat(refusals)
                .extracting(ServiceAccess.Refusal::caller)
                .containsExactly("bad", "anonymous", "anonymous", "anonymous");
        assertThat(refusals.get(0).target()).isEqualTo("default/iris");
        assertThat(api.tokens).hasValue(3);
    }

    @Test
    void whatChangesSomethingNeedsAnotherVerbAndProbesNeedNone() {
        assertThat(decision("iris", "good-token", Operation.MODEL_CONTROL))
                .startsWith("PERMISSION_DENIED")
                .contains("may not update inferenceservices");
        assertThat(decision("iris", null, Operation.HEALTH)).isEqualTo("others");
        assertThat(decision("open", null, Operation.INFERENCE)).isEqualTo("others");
        Caller good = admit("iris", "good-token", Operation.INFERENCE);
        assertThat(decision("good-token")).isEqualTo("good");
        assertThat(((ReviewedCaller) admit("iris", "good-token", Operation.INFERENCE)).isAdmitted())
                .isTrue();
        assertThat(good.may(Permission.MANAGE, "iris")).isFalse();
    }

    @Test
    void answersAreRememberedForTheirTime() throws InterruptedException {
        assertThat(decision("good-token")).isEqualTo("good");
        assertThat(decision("bad-token")).startsWith("PERMISSION_DENIED");
        forward(9);
        assertThat(decision("good-token")).isEqualTo("good");
        assertThat(decision("bad-token")).startsWith("PERMISSION_DENIED");
        assertThat(api.tokens).hasValue(2);
        assertThat(api.rights).hasValue(2);
        // refusals end sooner
        forward(2);
        assertThat(decision("bad-token")).startsWith("PERMISSION_DENIED");
        assertThat(api.rights).hasValue(3);
        forward(30);
        assertThat(decision("good-token")).isEqualTo("good");
        assertThat(api.tokens).hasValue(3);
        assertThat(api.rights).hasValue(4);
    }

    @Test
    void whatIsUsedIsAskedForAgainBeforeItEnds() throws Exception {
        assertThat(decision("good-token")).isEqualTo("good");
        forward(20);
        assertThat(decision("good-token")).isEqualTo("good");
        until(() -> api.rights.get() == 2);
        forward(20);
        assertThat(((ReviewedCaller) admit("iris", "good-token", Operation.INFERENCE)).isAdmitted())
                .as("no request waits")
                .isTrue();
    }

    private static void until(java.util.function.BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).isLessThan(end);
            boolean unused = new CountDownLatch(1).await(5, TimeUnit.MILLISECONDS);
        }
    }

    @Test
    void manyRequestsOfOneTokenWaitForOneCall() throws Exception {
        api.held = true;
        List<ReviewedCaller> callers = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            callers.add((ReviewedCaller) admit("iris", "good-token", Operation.INFERENCE));
        }
        assertThat(callers).noneMatch(ReviewedCaller::isAdmitted);
        assertThat(callers.get(0).may(Permission.INFER, "iris")).isFalse();
        api.open.countDown();
        until(() -> callers.stream().allMatch(ReviewedCaller::isAdmitted));
        assertThat(api.mostInFlight).hasValue(1);
        assertThat(api.tokens).hasValue(1);
        assertThat(api.rights).hasValue(1);
    }

    @Test
    void whileTheApiServerIsAwayRememberedCallersGoOnAndOthersGetUnavailable() throws InterruptedException {
        assertThat(decision("good-token")).isEqualTo("good");
        api.away = true;
        forward(20);
        assertThat(decision("good-token")).isEqualTo("good");
        assertThat(decision("other-token")).startsWith("UNAVAILABLE: the Kubernetes API server cannot review");
        forward(11);
        assertThat(decision("good-token")).startsWith("UNAVAILABLE");
        int calls = api.tokens.get();
        assertThat(decision("third-token")).startsWith("UNAVAILABLE");
        assertThat(api.tokens).as("no call in the pause after a failure").hasValue(calls);
        api.away = false;
        forward(2);
        assertThat(decision("good-token")).isEqualTo("good");
    }

    @Test
    void aCallerOfAGraphNeedsTheRightsOnItsProtectedServices() {
        services.put("default", "graph", "InferenceGraph", "", Set.of("iris", "open"));
        assertThat(decision("graph", "good-token", Operation.INFERENCE)).isEqualTo("good");
        assertThat(api.asked).containsExactly(new AccessApi.Right("get", "inferenceservices", "default", "iris"));
        assertThat(decision("graph", "bad-token", Operation.INFERENCE)).startsWith("PERMISSION_DENIED");
        services.remove("default", "iris");
        assertThat(decision("graph", null, Operation.INFERENCE)).isEqualTo("others");
    }

    @Test
    void theSettingsOfAPodNeedTheRightToChangeItBecauseOnlyThePodReadsTheMessage() {
        assertThatThrownBy(() -> {
                    Caller caller = access.admit(
                            new Head("/iris", "Bearer good-token", true), new Connection(), Operation.TRACE, null);
                    CompletableFuture<String> decided = new CompletableFuture<>();
                    ((ReviewedCaller) caller).whenDecided(e -> {
                        if (e == null) {
                            decided.complete("passed");
                        } else {
                            decided.completeExceptionally(e);
                        }
                    });
                    decided.orTimeout(60, TimeUnit.SECONDS).join();
                })
                .hasMessageContaining("may not update");
    }

    @Test
    void theMemoryForTokensIsLimited() throws Exception {
        assertThat(decision("good-token")).isEqualTo("good");
        AccessReviews reviews = new AccessReviews(
                api, new AccessReviewOptions(Mode.ALL, List.of("nereid"), Duration.ofSeconds(30)), Clock.system());
        try (reviews) {
            AtomicInteger decided = new AtomicInteger();
            for (int i = 0; i < AccessReviews.MOST_TOKENS + 500; i++) {
                ReviewedCaller caller = new ReviewedCaller(List.of(), false);
                caller.whenDecided(e -> decided.incrementAndGet());
                reviews.ask("token " + i, List.of(), caller);
                int most = i - 400;
                until(() -> decided.get() >= most);
            }
            assertThat(reviews.size()).isLessThanOrEqualTo(AccessReviews.MOST_TOKENS);
        }
    }

    @Test
    void aGatewayWithoutReviewsDoesNotServeWhatAsksForIt() {
        ProtectedServices off = new ProtectedServices(Mode.OFF);
        off.put("default", "iris", "InferenceService", "true", Set.of());
        off.put("default", "open", "InferenceService", "false", Set.of());
        try (ServiceAccess none = access(off)) {
            assertThatThrownBy(() -> none.admit(
                            new Head("/iris", "Bearer good-token", false), new Connection(), Operation.INFERENCE, null))
                    .hasMessageContaining("does not review")
                    .extracting(e -> ((ServingException) e).code())
                    .isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(none.admit(new Head("/open", null, false), new Connection(), Operation.INFERENCE, null))
                    .isSameAs(OTHERS);
        }
        assertThat(api.tokens).hasValue(0);
    }
}
