// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.config;

import java.time.Duration;
import java.util.List;

/**
 * How JSON Web Tokens are verified. Immutable.
 *
 * @param issuer the {@code iss} that tokens must have
 * @param audiences the {@code aud} values of which tokens must have one
 * @param algorithms the accepted {@code alg} values; never {@code none}, and no symmetric ones
 * @param jwks the keys: the path of a file, or an {@code https} URL; empty to find the URL at the issuer's
 *     {@code /.well-known/openid-configuration}
 * @param hosts hosts, beyond the issuer's, from which keys may be fetched
 * @param clockSkew how far the clocks of the issuer and of this machine may be apart
 * @param subjectClaim the claim that names the caller
 * @param rolesClaim the claim that lists names of roles; empty for none
 */
public record JwtConfig(
        String issuer,
        List<String> audiences,
        List<String> algorithms,
        String jwks,
        List<String> hosts,
        Duration clockSkew,
        String subjectClaim,
        String rolesClaim) {
    /** The algorithms that are accepted when a configuration names none. */
    public static final List<String> DEFAULT_ALGORITHMS =
            List.of("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512");

    /** Copies the lists. */
    public JwtConfig {
        audiences = List.copyOf(audiences);
        algorithms = List.copyOf(algorithms);
        hosts = List.copyOf(hosts);
    }
}
