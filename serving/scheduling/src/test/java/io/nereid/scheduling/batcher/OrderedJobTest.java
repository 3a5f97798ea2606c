// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.FakeJob;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class OrderedJobTest {
    private final OrderedJob.CompletionQueue completions = new OrderedJob.CompletionQueue();
    private final List<String> left = new ArrayList<>();

    private OrderedJob enter(int number) {
        FakeJob job = FakeJob.of(number);
        job.onAnswer = j -> left.add(j.number + ":" + j.answers.get());
        job.onEnd = j -> left.add(j.number + (j.error == null ? ":end" : ":failed"));
        OrderedJob ordered = new OrderedJob(job, completions);
        completions.enter(ordered);
        return ordered;
    }

    private static void respond(OrderedJob job) {
        job.respond(List.of(), Map.of());
    }

    private static void end(OrderedJob job) {
        job.complete(List.of(), Map.of());
    }

    private static final ServingException BROKEN = ServingException.of(ErrorCode.INTERNAL, "broken");

    @Test
    void letsTheFirstResponseAtOnceAndTheOthersWaitUntilItHasEnded() {
        OrderedJob first = enter(1);
        OrderedJob second = enter(2);
        respond(second);
        respond(first);
        assertThat(left).containsExactly("1:1");
        respond(second);
        respond(first);
        end(second);
        assertThat(left).containsExactly("1:1", "1:2");
        end(first);
        assertThat(left).containsExactly("1:1", "1:2", "1:end", "2:1", "2:2", "2:end");
    }

    @Test
    void letsAJobRespondDirectlyOnceThoseBeforeItHaveEnded() {
        OrderedJob first = enter(1);
        OrderedJob second = enter(2);
        respond(second);
        end(first);
        assertThat(left).containsExactly("1:end", "2:1");
        respond(second);
        assertThat(left).containsExactly("1:end", "2:1", "2:2");
    }

    @Test
    void keepsFailuresInTheirPlace() {
        OrderedJob first = enter(1);
        OrderedJob second = enter(2);
        respond(second);
        second.fail(BROKEN);
        respond(first);
        first.fail(BROKEN);
        assertThat(left).containsExactly("1:1", "1:failed", "2:1", "2:failed");
    }

    @Test
    void doesNotWaitForAJobThatNeverRan() {
        OrderedJob first = enter(1);
        OrderedJob second = enter(2);
        OrderedJob third = enter(3);
        end(third);
        OrderedJob.fail(second, BROKEN);
        assertThat(left).as("a rejected job fails at once").containsExactly("2:failed");
        end(first);
        assertThat(left).containsExactly("2:failed", "1:end", "3:end");
    }

    @Test
    void getsNoEventsAfterTheEnd() {
        OrderedJob first = enter(1);
        OrderedJob second = enter(2);
        end(second);
        second.fail(BROKEN);
        respond(second);
        end(first);
        first.fail(BROKEN);
        assertThat(left).containsExactly("1:end", "2:end");
    }

    @Test
    void outlivesAJobThatCannotTakeItsResponse() {
        FakeJob broken = FakeJob.of(1);
        broken.onEnd = j -> {
            throw new IllegalStateException("broken");
        };
        OrderedJob first = new OrderedJob(broken, completions);
        completions.enter(first);
        OrderedJob second = enter(2);
        end(second);
        end(first);
        assertThat(left).containsExactly("2:end");
    }

    @Test
    void keepsTheOrderWhenAResponseBringsAnother() {
        FakeJob eager = FakeJob.of(1);
        OrderedJob first = new OrderedJob(eager, completions);
        completions.enter(first);
        OrderedJob second = enter(2);
        eager.onEnd = j -> {
            left.add("1:end");
            end(second);
            left.add("1:over");
        };
        end(first);
        assertThat(left).containsExactly("1:end", "1:over", "2:end");
    }

    @RepeatedTest(50)
    void keepsTheOrderWhateverHappens(RepetitionInfo info) {
        Random random = new Random(info.getCurrentRepetition());
        List<OrderedJob> open = new ArrayList<>();
        List<String> expected = new ArrayList<>();
        List<List<String>> said = new ArrayList<>();
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            open.add(enter(i));
            numbers.add(i);
            said.add(new ArrayList<>());
        }
        while (!numbers.isEmpty()) {
            int at = random.nextInt(numbers.size());
            int n = numbers.get(at);
            if (random.nextInt(3) > 0) {
                respond(open.get(n));
                said.get(n).add(n + ":" + (said.get(n).size() + 1));
            } else {
                end(open.get(n));
                said.get(n).add(n + ":end");
                numbers.remove(at);
            }
        }
        said.forEach(expected::addAll);
        assertThat(left).isEqualTo(expected);
    }
}
