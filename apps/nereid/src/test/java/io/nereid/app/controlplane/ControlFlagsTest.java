// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.control.api.config.InferenceServiceConfig.Ingress;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** The default hosts of services, without stored settings. */
class ControlFlagsTest {
    private static ControlFlags flags(String... args) {
        ControlFlags flags = new ControlFlags();
        new CommandLine(flags).parseArgs(args);
        flags.check();
        return flags;
    }

    @Test
    void servicesAreBelowLocalhostWithTheServersPort() {
        Ingress ingress = flags("--control").settings(8080).ingress();
        assertThat(ingress.ingressDomain()).isEqualTo("localhost:8080");
        assertThat(ingress.urlScheme()).isEqualTo("http");
        assertThat(ingress.additionalIngressDomains()).containsExactly("example.com");
        assertThat(ingress.domainTemplate()).isEqualTo(Ingress.DOMAIN_TEMPLATE);
        assertThat(flags("--control").settings(80).ingress().ingressDomain()).isEqualTo("localhost");
    }

    @Test
    void anEncryptedServerHasItsScheme() {
        ControlFlags flags = flags("--control");
        flags.encrypted = true;
        assertThat(flags.settings(80).ingress().ingressDomain()).isEqualTo("localhost:80");
        assertThat(flags.settings(443).ingress().ingressDomain()).isEqualTo("localhost");
        assertThat(flags.settings(443).ingress().urlScheme()).isEqualTo("https");
    }

    @Test
    void anotherDomainReplacesBoth() {
        Ingress ingress = flags("--control", "--ingress-domain=models.test:99")
                .settings(8080)
                .ingress();
        assertThat(ingress.ingressDomain()).isEqualTo("models.test:99");
        assertThat(ingress.additionalIngressDomains()).isEmpty();
    }

    @Test
    void anInvalidDomainIsRejected() {
        assertThatThrownBy(() -> flags("--control", "--ingress-domain=http://models.test"))
                .hasMessageContaining("--ingress-domain is 'http://models.test'");
        assertThatThrownBy(() -> flags("--ingress-domain=models.test")).hasMessageContaining("need --control");
    }
}
