// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

/**
 * A version of the published API, as in Triton's backend API: a plugin works with a server of the same major version
 * whose minor version is at least its own. Removals and changes increase the major version, additions the minor one.
 * Immutable.
 *
 * <p>A plugin's jar says for which version it was built, in the attribute {@value #MANIFEST_ATTRIBUTE} of its manifest.
 *
 * @param major differs between versions that exclude each other
 * @param minor grows with every addition
 */
public record ApiVersion(int major, int minor) {
    /** The version of this server. */
    public static final ApiVersion CURRENT = new ApiVersion(1, 0);

    /** The name of the manifest attribute. */
    public static final String MANIFEST_ATTRIBUTE = "Nereid-Api-Version";

    /**
     * Reads {@code <major>.<minor>}.
     *
     * @throws ServingException INVALID_ARGUMENT for anything else
     */
    public static ApiVersion parse(String text) {
        String[] parts = text.strip().split("\\.", -1);
        try {
            if (parts.length == 2) {
                return new ApiVersion(Integer.parseUnsignedInt(parts[0]), Integer.parseUnsignedInt(parts[1]));
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw ServingException.invalidArgument(
                "'" + text + "' is not an API version (expected: such as " + CURRENT + ")");
    }

    /** Whether a server of this version runs plugins that were built for {@code plugin}. */
    public boolean supports(ApiVersion plugin) {
        return plugin.major == major && plugin.minor <= minor;
    }

    @Override
    public String toString() {
        return major + "." + minor;
    }
}
