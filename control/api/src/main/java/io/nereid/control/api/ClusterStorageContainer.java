// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.jspecify.annotations.Nullable;

/**
 * KServe's {@code serving.kserve.io/v1alpha1 ClusterStorageContainer}: the container that downloads URIs of certain
 * formats. Immutable as long as the JSON tree is not modified.
 *
 * @param metadata name, labels and annotations
 * @param container the container that downloads
 * @param supportedUriFormats the URIs that it supports
 * @param workloadType {@code initContainer} or {@code localModelDownloadJob}
 * @param supportsMultiModelDownload whether it accepts several URIs at once
 * @param disabled whether it is excluded from selection
 */
public record ClusterStorageContainer(
        ObjectMeta metadata,
        Container container,
        List<UriFormat> supportedUriFormats,
        String workloadType,
        boolean supportsMultiModelDownload,
        boolean disabled) {

    /**
     * Reads a storage container.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value of a wrong type
     */
    public static ClusterStorageContainer read(ObjectNode resource) {
        FieldReader fields = FieldReader.of(resource);
        FieldReader spec = fields.object("spec");
        FieldReader container = spec.object("container");
        return new ClusterStorageContainer(
                ObjectMeta.read(resource),
                Container.read(container.tree(), container.path()),
                spec.list("supportedUriFormats", UriFormat::read),
                spec.text("workloadType", "initContainer"),
                spec.flag("supportsMultiModelDownload", false),
                fields.flag("disabled", false));
    }

    /** Whether it supports this URI. A disabled container supports none. */
    public boolean supports(String uri) {
        return !disabled && supportedUriFormats.stream().anyMatch(format -> format.matches(uri));
    }

    /**
     * A prefix, or a regular expression that matches at the start of the URI. Admission requires exactly one of them; a
     * prefix takes precedence.
     */
    public record UriFormat(
            @Nullable String prefix, @Nullable String regex) {
        static UriFormat read(ObjectNode tree, String path) {
            FieldReader fields = new FieldReader(tree, path);
            return new UriFormat(fields.text("prefix"), fields.text("regex"));
        }

        boolean matches(String uri) {
            if (prefix != null && !prefix.isEmpty()) {
                return uri.startsWith(prefix);
            }
            if (regex == null || regex.isEmpty()) {
                return false;
            }
            try {
                return Pattern.compile(regex).matcher(uri).lookingAt();
            } catch (PatternSyntaxException e) {
                return false; // admission rejects invalid expressions
            }
        }
    }
}
