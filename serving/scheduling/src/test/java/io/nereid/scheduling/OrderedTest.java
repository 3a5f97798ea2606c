// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

class OrderedTest {
    private final Ordered.Exit exit = new Ordered.Exit();
    private final List<String> left = new ArrayList<>();

    private Ordered enter(int number) {
        FakeJob job = FakeJob.of(number);
        job.onAnswer = j -> left.add(j.number + ":" + j.answers.get());
        job.onEnd = j -> left.add(j.number + (j.error == null ? ":end" : ":failed"));
        Ordered ordered = new Ordered(job, exit);
        exit.enter(ordered);
        return ordered;
    }

    private static void respond(Ordered job) {
        job.respond(List.of(), Map.of());
    }

    private static void end(Ordered job) {
        job.complete(List.of(), Map.of());
    }

    private static final ServingException BROKEN = ServingException.of(ErrorCode.INTERNAL, "broken");

    @Test
    void letsTheFirstAnswerAtOnceAndTheOthersWaitUntilItHasEnded() {
        Ordered first = enter(1);
        Ordered second = enter(2);
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
    void letsAJobAnswerDirectlyOnceThoseBeforeItHaveEnded() {
        Ordered first = enter(1);
        Ordered second = enter(2);
        respond(second);
        end(first);
        assertThat(left).containsExactly("1:end", "2:1");
        respond(second);
        assertThat(left).containsExactly("1:end", "2:1", "2:2");
    }

    @Test
    void keepsFailuresInTheirPlace() {
        Ordered first = enter(1);
        Ordered second = enter(2);
        respond(second);
        second.fail(BROKEN);
        respond(first);
        first.fail(BROKEN);
        assertThat(left).containsExactly("1:1", "1:failed", "2:1", "2:failed");
    }

    @Test
    void doesNotWaitForAJobThatNeverRan() {
        Ordered first = enter(1);
        Ordered second = enter(2);
        Ordered third = enter(3);
        end(third);
        Ordered.fail(second, BROKEN);
        assertThat(left).as("at once, out of turn").containsExactly("2:failed");
        end(first);
        assertThat(left).containsExactly("2:failed", "1:end", "3:end");
    }

    @Test
    void hearsNothingAfterTheEnd() {
        Ordered first = enter(1);
        Ordered second = enter(2);
        end(second);
        second.fail(BROKEN);
        respond(second);
        end(first);
        first.fail(BROKEN);
        assertThat(left).containsExactly("1:end", "2:end");
    }

    @Test
    void outlivesAJobThatCannotTakeItsAnswer() {
        FakeJob broken = FakeJob.of(1);
        broken.onEnd = j -> {
            throw new IllegalStateException("broken");
        };
        Ordered first = new Ordered(broken, exit);
        exit.enter(first);
        Ordered second = enter(2);
        end(second);
        end(first);
        assertThat(left).containsExactly("2:end");
    }

    @Test
    void keepsTheOrderWhenAnAnswerBringsAnother() {
        FakeJob eager = FakeJob.of(1);
        Ordered first = new Ordered(eager, exit);
        exit.enter(first);
        Ordered second = enter(2);
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
        List<Ordered> open = new ArrayList<>();
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
