// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import io.nereid.base.ServingException;
import io.nereid.storage.spi.StorageUri;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.Locale;
import java.util.regex.Pattern;

/** Validates storage URIs and determines their kind of store. Stateless. */
public final class StorageUris {
    static final String SUPPORTED =
            "file:// or an absolute path, pvc://name/path, http://, https://, s3://bucket/path, "
                    + "gs://bucket/path, https://account.blob.core.windows.net/container/path, "
                    + "https://account.file.core.windows.net/share/path, hdfs://path, "
                    + "webhdfs://path, hf://owner/model[:revision], oci://image";

    /** The kinds of stores. */
    public enum Kind {
        FILE,
        PVC,
        HTTP,
        S3,
        GCS,
        AZURE,
        AZURE_FILES,
        HDFS,
        HUGGING_FACE,
        OCI
    }

    private static final Pattern SCHEME = Pattern.compile("([A-Za-z][A-Za-z0-9+.-]*)://.*", Pattern.DOTALL);
    private static final Pattern HUGGING_FACE = Pattern.compile("[A-Za-z0-9._-]+/[A-Za-z0-9._-]+(:[A-Za-z0-9._/-]+)?");
    private static final Pattern BLOB_HOST =
            Pattern.compile("[a-z0-9-]+(\\.z[0-9]+)?\\.blob\\.(core\\.windows\\.net|core\\.chinacloudapi\\.cn"
                    + "|core\\.usgovcloudapi\\.net|storage\\.azure\\.net)");
    private static final Pattern SHARE_HOST =
            Pattern.compile("[a-z0-9-]+(\\.z[0-9]+)?\\.file\\.(core\\.windows\\.net|core\\.chinacloudapi\\.cn"
                    + "|core\\.usgovcloudapi\\.net|storage\\.azure\\.net)");

    private StorageUris() {}

    /** Returns the kind of store; rejects invalid and unsupported URIs with the supported forms. */
    public static Kind kind(String uri) {
        if (uri.startsWith("/")) {
            return Kind.FILE;
        }
        if (!SCHEME.matcher(uri).matches()) {
            throw invalid(uri, "it has no scheme");
        }
        String scheme = uri.substring(0, uri.indexOf("://")).toLowerCase(Locale.ROOT);
        String rest = uri.substring(uri.indexOf("://") + 3);
        switch (scheme) {
            case "file":
                if (!rest.startsWith("/")) {
                    throw invalid(uri, "file:// is followed by an absolute path, as in file:///models/iris");
                }
                return Kind.FILE;
            case "pvc":
                require(uri, !rest.isEmpty() && !rest.startsWith("/"), "the name of the claim is missing");
                return Kind.PVC;
            case "s3":
                require(uri, !rest.isEmpty() && !rest.startsWith("/"), "the bucket is missing");
                return Kind.S3;
            case "gs":
                require(uri, !rest.isEmpty() && !rest.startsWith("/"), "the bucket is missing");
                return Kind.GCS;
            case "hdfs", "webhdfs":
                require(uri, !rest.isEmpty(), "the path is missing");
                return Kind.HDFS;
            case "hf":
                require(uri, HUGGING_FACE.matcher(rest).matches(), "expected hf://owner/model[:revision]");
                return Kind.HUGGING_FACE;
            case "oci", "oci+fetch", "oci+native", "oci+modelcar":
                require(uri, !rest.isEmpty() && !rest.startsWith("/"), "the image is missing");
                return Kind.OCI;
            case "http", "https":
                return http(uri);
            case "modelscope":
                throw invalid(uri, "ModelScope is not supported; download the model and use file://");
            default:
                throw invalid(uri, "the scheme " + scheme + ":// is not supported");
        }
    }

    private static Kind http(String uri) {
        URI parsed = parse(uri);
        String host = parsed.getHost();
        String path = parsed.getRawPath();
        if (host == null) {
            throw invalid(uri, "the host is missing");
        }
        String lower = host.toLowerCase(Locale.ROOT);
        if (BLOB_HOST.matcher(lower).matches()) {
            require(uri, path != null && path.length() > 1, "the container is missing");
            return Kind.AZURE;
        }
        if (SHARE_HOST.matcher(lower).matches()) {
            require(uri, path != null && path.length() > 1, "the share is missing");
            return Kind.AZURE_FILES;
        }
        if (path != null && path.endsWith(".git")) {
            throw invalid(uri, "git repositories are not supported; clone it and use file://");
        }
        require(uri, path != null && path.length() > 1, "the path is missing");
        return Kind.HTTP;
    }

    private static void require(String uri, boolean met, String why) {
        if (!met) {
            throw invalid(uri, why);
        }
    }

    public static ServingException invalid(String uri, String why) {
        return ServingException.invalidArgument(
                "storage URI '" + StorageUri.shown(uri) + "' cannot be used: " + why, "supported are " + SUPPORTED);
    }

    /** Parses an http or https URI strictly. */
    public static URI parse(String uri) {
        try {
            return new URI(uri);
        } catch (URISyntaxException e) {
            throw invalid(uri, "it is not a valid URI: " + e.getReason());
        }
    }
}
