// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.credentials;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.storage.http.HttpCall;
import io.nereid.storage.http.HttpSession;
import io.nereid.storage.http.XmlParser;
import io.nereid.storage.spi.StorageSettings;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.w3c.dom.Element;

/**
 * Finds AWS credentials, in this order: keys in the settings, a role assumed with a web identity token, the shared
 * credentials file, the container's credentials endpoint, the instance's metadata. Thread-safe: temporary credentials
 * are in {@link TokenCache}.
 */
public final class AwsCredentialsProvider {
    private final StorageSettings settings;
    private final HttpSession session;
    private final TokenCache tokens;
    private final InstanceMetadataCredentials metadata;

    public AwsCredentialsProvider(StorageSettings settings, HttpSession session, TokenCache tokens) {
        this.settings = settings;
        this.session = session;
        this.tokens = tokens;
        this.metadata = new InstanceMetadataCredentials(settings, session, tokens);
    }

    /** The key to sign with; null for anonymous access. */
    public SigV4Signer.@Nullable Key key(String region) {
        if (settings.flag("awsAnonymousCredential", false)) {
            return null;
        }
        String id = settings.get("AWS_ACCESS_KEY_ID");
        String secret = settings.get("AWS_SECRET_ACCESS_KEY");
        if (id != null && secret != null) {
            return new SigV4Signer.Key(id, secret, settings.get("AWS_SESSION_TOKEN"));
        }
        if (id != null || secret != null) {
            throw ServingException.invalidArgument(
                    "storage setting " + (id == null ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY") + " is missing",
                    "give both keys or none");
        }
        String role = settings.get("AWS_ROLE_ARN");
        if (role != null) {
            String file = settings.get("AWS_WEB_IDENTITY_TOKEN_FILE");
            if (file == null) {
                throw ServingException.of(
                        ErrorCode.FAILED_PRECONDITION,
                        "the role " + role + " needs AWS_WEB_IDENTITY_TOKEN_FILE, which is not set",
                        "give keys in a secret, or a web identity token");
            }
            return parsed(tokens.of(role + "\n" + file + "\n" + region, () -> assume(role, file, region)));
        }
        SigV4Signer.Key key = profile();
        return key == null ? metadata.aws() : key;
    }

    private TokenCache.Token assume(String role, String file, String region) {
        String token;
        try {
            token = Files.readString(Path.of(file)).trim();
        } catch (IOException | RuntimeException e) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION, "AWS_WEB_IDENTITY_TOKEN_FILE cannot be read: " + file);
        }
        URI endpoint = URI.create(settings.get("AWS_ENDPOINT_URL_STS", "https://sts." + region + ".amazonaws.com/"));
        HttpSession.Answer answer = session.expect(
                "the role " + role,
                () -> HttpCall.form(
                        endpoint,
                        Map.of(
                                "Action",
                                "AssumeRoleWithWebIdentity",
                                "Version",
                                "2011-06-15",
                                "RoleArn",
                                role,
                                "RoleSessionName",
                                settings.get("AWS_ROLE_SESSION_NAME", "nereid"),
                                "WebIdentityToken",
                                token)));
        try {
            Element result = XmlParser.child(XmlParser.root(answer.body()), "AssumeRoleWithWebIdentityResult");
            Element given = result == null ? null : XmlParser.child(result, "Credentials");
            return new TokenCache.Token(
                    XmlParser.text(given, "AccessKeyId") + "\n" + XmlParser.text(given, "SecretAccessKey") + "\n"
                            + XmlParser.text(given, "SessionToken"),
                    Instant.parse(XmlParser.text(given, "Expiration")).toEpochMilli());
        } catch (IOException | DateTimeParseException e) {
            throw ServingException.of(ErrorCode.UNAVAILABLE, "the role " + role + ": the answer holds no credentials");
        }
    }

    private static SigV4Signer.Key parsed(TokenCache.Token token) {
        String[] parts = token.value().split("\n", -1);
        return new SigV4Signer.Key(parts[0], parts[1], parts[2]);
    }

    /** The key in the shared credentials file, if the environment gives its path or the home directory. */
    private SigV4Signer.@Nullable Key profile() {
        String file = settings.get("AWS_SHARED_CREDENTIALS_FILE");
        String home = settings.get("HOME");
        String wanted = settings.get("AWS_PROFILE", "default");
        if (file == null && home != null && settings.ambient("AWS_SHARED_CREDENTIALS_FILE")) {
            file = home + "/.aws/credentials";
        }
        boolean asked = settings.get("AWS_PROFILE") != null;
        if (file == null || !Files.isReadable(Path.of(file))) {
            if (asked) {
                throw noProfile(wanted, file == null ? "~/.aws/credentials" : file);
            }
            return null;
        }
        Map<String, String> values = new HashMap<>();
        try {
            String section = "";
            for (String line : Files.readAllLines(Path.of(file), StandardCharsets.UTF_8)) {
                String text = line.trim();
                if (text.startsWith("[") && text.endsWith("]")) {
                    section = text.substring(1, text.length() - 1).trim();
                } else if (section.equals(wanted) && text.indexOf('=') > 0) {
                    int equals = text.indexOf('=');
                    values.put(
                            text.substring(0, equals).trim(),
                            text.substring(equals + 1).trim());
                }
            }
        } catch (IOException e) {
            throw ServingException.of(ErrorCode.FAILED_PRECONDITION, "the file " + file + " cannot be read");
        }
        String id = values.get("aws_access_key_id");
        String secret = values.get("aws_secret_access_key");
        if (id == null || secret == null) {
            if (asked) {
                throw noProfile(wanted, file);
            }
            return null;
        }
        return new SigV4Signer.Key(id, secret, values.get("aws_session_token"));
    }

    private static ServingException noProfile(String profile, String file) {
        return ServingException.of(
                ErrorCode.FAILED_PRECONDITION,
                "AWS_PROFILE is '" + profile + "', but " + file + " does not contain keys for it",
                "write aws_access_key_id and aws_secret_access_key there; profiles of ~/.aws/config with roles or"
                        + " single sign-on are not read");
    }
}
