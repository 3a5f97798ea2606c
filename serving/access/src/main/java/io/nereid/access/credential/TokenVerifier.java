// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.credential;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JOSEObjectType;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.KeySourceException;
import com.nimbusds.jose.proc.BadJOSEException;
import com.nimbusds.jose.proc.DefaultJOSEObjectTypeVerifier;
import com.nimbusds.jose.proc.JWSVerificationKeySelector;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import io.nereid.access.config.JwtConfig;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.text.ParseException;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Verifies the JSON Web Tokens of one issuer (RFC 7519): signature, algorithm, issuer, audience, times. Thread-safe.
 * {@link #verify} does not block: keys are fetched by {@link JwkSource} in the background.
 */
public final class TokenVerifier {
    private final JwtConfig config;
    private final JwkSource keys;
    private final DefaultJWTProcessor<SecurityContext> processor = new DefaultJWTProcessor<>();

    /** Verifies tokens with the keys of a source. */
    public TokenVerifier(JwtConfig config, JwkSource keys) {
        this.config = config;
        this.keys = keys;
        Set<JWSAlgorithm> algorithms =
                config.algorithms().stream().map(JWSAlgorithm::parse).collect(Collectors.toSet());
        processor.setJWSKeySelector(new JWSVerificationKeySelector<>(algorithms, keys));
        processor.setJWSTypeVerifier(new DefaultJOSEObjectTypeVerifier<>(
                JOSEObjectType.JWT, new JOSEObjectType("at+jwt"), new JOSEObjectType("application/at+jwt"), null));
        DefaultJWTClaimsVerifier<SecurityContext> claims = new DefaultJWTClaimsVerifier<>(
                new HashSet<>(config.audiences()),
                new JWTClaimsSet.Builder().issuer(config.issuer()).build(),
                Set.of("exp", config.subjectClaim()),
                Set.of());
        claims.setMaxClockSkew((int) config.clockSkew().toSeconds());
        processor.setJWTClaimsSetVerifier(claims);
    }

    /** The configuration. */
    public JwtConfig config() {
        return config;
    }

    /** Where the keys come from. */
    public JwkSource keys() {
        return keys;
    }

    /** The issuer that a token names, unverified; null when the text is not a signed token. */
    public static @Nullable String issuerOf(String text) {
        try {
            return SignedJWT.parse(text).getJWTClaimsSet().getIssuer();
        } catch (ParseException e) {
            return null;
        }
    }

    /**
     * Verifies a token.
     *
     * @return its claims
     * @throws ServingException UNAUTHENTICATED with a reason that says nothing about the token's content; UNAVAILABLE
     *     when the keys are not known yet
     */
    public JWTClaimsSet verify(String text) {
        try {
            return processor.process(text, null);
        } catch (KeySourceException e) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "the keys of the token's issuer are not known", "try again in some seconds");
        } catch (BadJOSEException | JOSEException | ParseException e) {
            throw ServingException.of(ErrorCode.UNAUTHENTICATED, "the token is not valid: " + reason(e));
        }
    }

    private static String reason(Exception e) {
        String message = e.getMessage();
        if (message == null) {
            return "malformed";
        }
        // the library's messages for the common cases, without the values that they quote
        if (message.contains("Expired")) {
            return "it has expired";
        }
        if (message.contains("before use time")) {
            return "it is not valid yet";
        }
        if (message.contains("audience") || message.contains("aud")) {
            return "it is for another audience";
        }
        if (message.contains("iss ")) {
            return "it is of another issuer";
        }
        if (message.contains("missing required claims")) {
            return "it lacks a required claim";
        }
        return e instanceof ParseException ? "malformed" : "its signature cannot be verified";
    }
}
