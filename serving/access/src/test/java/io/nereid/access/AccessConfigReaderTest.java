// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.access.config.AccessConfig;
import io.nereid.access.config.AccessConfigReader;
import io.nereid.access.config.NamePattern;
import io.nereid.access.config.Quota;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code access.yaml}: what it says, and that nothing in it is ignored. */
class AccessConfigReaderTest {
    private static AccessConfig read(String text) {
        return AccessConfigReader.read(text, "access.yaml");
    }

    @Test
    void anEmptyFileLeavesHealthOpen() {
        assertThat(read("").anonymous()).containsExactly("health");
        assertThat(read("").roles()).containsKeys("client", "viewer", "manager", "admin");
    }

    @Test
    void quotasHaveUnits() {
        AccessConfig config = read("""
                quotas:
                  models:
                    iris: {requestsPerSecond: 0.5, concurrentRequests: 3, bytesPerSecond: 2MiB}
                    '*': {concurrentRequests: 100}
                """);
        assertThat(config.modelQuota("iris")).isEqualTo(new Quota(0.5, 3, 2 << 20));
        assertThat(config.modelQuota("other")).isEqualTo(new Quota(0, 100, 0));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "anonymus: [health] | unknown field 'anonymus'",
                "anonymous: [nothing] | there is no role 'nothing'",
                "roles: {a: {permissions: [inferr]}} | unknown permission 'inferr'",
                "roles: {a: {}} | has no 'permissions'",
                "roles: {a: {permissions: [infer], model: [x]}} | did you mean 'models'",
                "roles: [a] | expected: a map",
                "bindings: [{roles: [client]}] | exactly one",
                "bindings: [{key: a, certificate: b, roles: [client]}] | exactly one",
                "bindings: [{claim: groups, roles: [client]}] | without a 'value'",
                "bindings: [{key: a, roles: [unknown]}] | there is no role 'unknown'",
                "bindings: [{key: a, quota: {requestsPerSecond: -1}}] | above 0",
                "bindings: [{key: a, quota: {concurrentRequests: 1.5}}] | a whole number",
                "bindings: [{key: a, quota: {bytesPerSecond: many}}] | bytesPerSecond",
                "tokens: [{issuer: x}] | has no 'audience'",
                "tokens: [{issuer: x, audience: y, algorithms: [HS256]}] | its key is shared",
                "tokens: [{issuer: x, audience: y, algorithms: [none]}] | 'none' is not accepted",
                "tokens: [{issuer: x, audience: y, jwks: 'http://keys.example/k'}] | is not encrypted",
                "'{' | is not YAML",
            })
    void aMistakeIsNamed(String text, String reason) {
        assertThatThrownBy(() -> read(text)).hasMessageContaining(reason);
    }

    @ParameterizedTest
    @CsvSource({
        "*, anything, true",
        "iris, iris, true",
        "iris, iris2, false",
        "fraud-*, fraud-, true",
        "fraud-*, fraud, false",
        "*-eu, model-eu, true",
        "a*b*c, aXbYc, true",
        "a*b*c, aXcYb, false",
        "*a*a*a*a*b, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, false",
    })
    void patternsMatchWholeNames(String pattern, String name, boolean matches) {
        assertThat(new NamePattern(pattern).matches(name)).isEqualTo(matches);
    }
}
