// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api.admission;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.AdmissionCase;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.admission.Admission.Admitted;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Runs the golden cases; {@link AdmissionCase} describes how to add one. */
class AdmissionCasesTest {
    private static final Set<String> FIELDS = Set.of(
            "case", "base", "resource", "patch", "old", "config", "site", "beside", "becomes", "problems", "warnings");

    @TestFactory
    Stream<DynamicTest> everyCaseIsAdmittedOrRefusedAsWritten() {
        return AdmissionCase.all().stream().map(one -> DynamicTest.dynamicTest(one.name(), () -> check(one)));
    }

    @Test
    void thereAreManyCasesWithDistinctNames() {
        List<String> names =
                AdmissionCase.all().stream().map(AdmissionCase::name).toList();
        assertThat(names).hasSizeGreaterThan(250).doesNotHaveDuplicates();
    }

    private static void check(AdmissionCase one) {
        one.tree().fieldNames().forEachRemaining(field -> assertThat(FIELDS).contains(field));
        ResourceKind kind = ResourceKinds.of(one.input());
        ObjectNode before = one.input().deepCopy();
        if (one.tree().has("problems")) {
            ServingException refusal = catchThrowableOfType(
                    ServingException.class, () -> one.admission().admit(kind, one.input(), one.old()));
            assertThat(refusal).as("refused").isNotNull();
            assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(new TreeSet<>(lines(refusal))).isEqualTo(new TreeSet<>(one.lines("problems")));
        } else {
            Admitted admitted = one.admission().admit(kind, one.input(), one.old());
            JsonNode becomes = one.tree().path("becomes");
            ObjectNode expected =
                    becomes instanceof ObjectNode patch ? AdmissionCase.patched(one.input(), patch) : one.input();
            assertThat((JsonNode) admitted.resource()).isEqualTo(expected);
            assertThat(new TreeSet<>(admitted.warnings())).isEqualTo(new TreeSet<>(one.lines("warnings")));
            assertThat(one.admission()
                            .admit(kind, admitted.resource(), one.old())
                            .resource())
                    .as("admitted again")
                    .isEqualTo(admitted.resource());
        }
        assertThat((JsonNode) one.input()).as("the input is left alone").isEqualTo(before);
    }

    /** The validation errors of a rejection, without its heading. */
    private static List<String> lines(ServingException refusal) {
        String text = refusal.getMessage();
        int heading = text.indexOf("problems:\n");
        return heading < 0
                ? List.of(text.substring(text.indexOf("is invalid: ") + "is invalid: ".length()))
                : Arrays.asList(text.substring(heading + "problems:\n".length()).split("\n"));
    }
}
