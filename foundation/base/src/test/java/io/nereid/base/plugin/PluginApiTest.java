// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ApiVersion;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ServiceConfigurationError;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PluginApiTest {
    @TempDir
    Path directory;

    private Path jar(@Nullable String version) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        if (version != null) {
            manifest.getMainAttributes().putValue("Nereid-Api-Version", version);
        }
        Path jar = directory.resolve("p.jar");
        new JarOutputStream(Files.newOutputStream(jar), manifest).close();
        return jar;
    }

    @Test
    void aJarOfThisVersionIsAccepted() throws IOException {
        assertThat(PluginApi.check(jar(ApiVersion.CURRENT.toString()))).isTrue();
        assertThat(PluginApi.check(jar(ApiVersion.CURRENT.major() + ".0"))).isTrue();
    }

    @Test
    void aJarThatDoesNotSayItsVersionIsAccepted() throws IOException {
        assertThat(PluginApi.check(jar(null))).isFalse();
        assertThat(PluginApi.check(Files.writeString(directory.resolve("q.jar"), "not a jar")))
                .isFalse();
    }

    @Test
    void aJarOfAnotherMajorOrALaterMinorVersionIsRejected() throws IOException {
        ApiVersion current = ApiVersion.CURRENT;
        for (ApiVersion other : new ApiVersion[] {
            new ApiVersion(current.major() + 1, 0),
            new ApiVersion(current.major() - 1, 9),
            new ApiVersion(current.major(), current.minor() + 1)
        }) {
            Path jar = jar(other.toString());
            assertThatThrownBy(() -> PluginApi.check(jar)).isInstanceOfSatisfying(ServingException.class, e -> {
                assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                assertThat(e.getMessage())
                        .contains(jar + " was built for version " + other + " of Nereid's plugin API")
                        .contains("expected: " + current);
                assertThat(e.remedy()).contains("compile it against version " + current);
            });
        }
    }

    @Test
    void aManifestWithAnythingElseIsRejected() throws IOException {
        Path jar = jar("latest");
        assertThatThrownBy(() -> PluginApi.check(jar))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("the manifest of " + jar)
                .hasMessageContaining("'latest' is not an API version");
    }

    @Test
    void aMissingMemberOfTheApiIsNamed() {
        ServingException e = PluginApi.mismatch(
                "plugin 'p'",
                new ServiceConfigurationError(
                        "no", new NoSuchMethodError("'void io.nereid.backend.ModelRequest.hurry()'")));
        assertThat(e)
                .hasMessage("plugin 'p' was compiled against another version of Nereid's plugin API than "
                        + ApiVersion.CURRENT
                        + ": it calls the method 'void io.nereid.backend.ModelRequest.hurry()', which does not exist");
        assertThat(PluginApi.mismatch("plugin 'p'", new NoClassDefFoundError("io/nereid/spi/Hint")))
                .hasMessageContaining("it uses the class 'io.nereid.spi.Hint'");
    }

    @Test
    void theMissingMembersOfOtherLibrariesAreNotTheApis() {
        assertThat(PluginApi.mismatch("p", new NoSuchMethodError("'void org.other.Thing.run()'")))
                .isNull();
        assertThat(PluginApi.mismatch("p", new NoClassDefFoundError("org/other/Thing")))
                .isNull();
        assertThat(PluginApi.mismatch("p", new UnsatisfiedLinkError("io.nereid.backends.X")))
                .isNull();
        assertThat(PluginApi.mismatch("p", new IllegalStateException("io.nereid.")))
                .isNull();
    }
}
