// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.s3;

import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageUri;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A bucket and a prefix of keys in it. Immutable.
 *
 * @param bucket the name of a bucket, the alias of an access point, or the ARN of one
 * @param prefix without a slash at its beginning; empty for the whole bucket
 */
record S3Location(String bucket, String prefix) {
    /** The resource of an ARN takes one part of the path, or three for an access point of an Outpost. */
    private static final Pattern ARN = Pattern.compile("(arn:[^/:]+:s3(?:-object-lambda|-outposts)?:[^/:]*:[^/:]*:"
            + "(?:outpost[/:][^/:]+[/:])?accesspoint[/:][^/:]+)(?:/(.*))?");

    /**
     * Parses {@code s3://bucket/prefix}, or {@code s3://arn:aws:s3:region:account:accesspoint/name/prefix}.
     *
     * @throws ServingException INVALID_ARGUMENT for a URI without a bucket and for an ARN that is not an access point's
     */
    static S3Location parse(String uri) {
        String rest = uri.substring(uri.indexOf("://") + 3);
        if (rest.startsWith("arn:")) {
            Matcher arn = ARN.matcher(rest);
            if (!arn.matches()) {
                throw invalid(uri, "its ARN is not that of an access point");
            }
            return new S3Location(arn.group(1), arn.group(2) == null ? "" : arn.group(2));
        }
        int slash = rest.indexOf('/');
        String bucket = slash < 0 ? rest : rest.substring(0, slash);
        if (bucket.isEmpty()) {
            throw invalid(uri, "the bucket is missing");
        }
        return new S3Location(bucket, slash < 0 ? "" : rest.substring(slash + 1));
    }

    private static ServingException invalid(String uri, String why) {
        return ServingException.invalidArgument(
                "storage URI '" + StorageUri.shown(uri) + "' cannot be used: " + why,
                "expected s3://bucket/path or s3://arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/path");
    }

    /** The prefix as a directory: keys below it begin with this text. */
    String directory() {
        return prefix.isEmpty() || prefix.endsWith("/") ? prefix : prefix + "/";
    }

    /** Whether the prefix can also be the key of one object. */
    boolean canBeObject() {
        return !prefix.isEmpty() && !prefix.endsWith("/");
    }

    /** A key of the bucket as a URI, for messages. */
    String shown(String key) {
        return "s3://" + bucket + "/" + key;
    }
}
