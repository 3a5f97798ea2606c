// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.boot3;

import io.nereid.client.NereidClient;
import io.nereid.embedded.Nereid;
import io.nereid.spring.client.NereidClientAutoConfiguration;
import io.nereid.spring.client.ServerHealth;
import io.nereid.spring.embedded.ModelHealth;
import io.nereid.spring.embedded.NereidEmbeddedAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/**
 * Health indicators: {@code nereid} with the states of the embedded models, and {@code nereidClient}, whether the server of the
 * client is ready. {@code management.health.nereid.enabled} and {@code management.health.nereidClient.enabled} switch them off.
 */
@AutoConfiguration(after = {NereidEmbeddedAutoConfiguration.class, NereidClientAutoConfiguration.class})
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
public class Boot3HealthAutoConfiguration {

    /** For models in the process. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(Nereid.class)
    @ConditionalOnBean(Nereid.class)
    @ConditionalOnEnabledHealthIndicator("nereid")
    static class Models {
        @Bean
        @ConditionalOnMissingBean(name = "nereidHealthIndicator")
        HealthIndicator nereidHealthIndicator(Nereid nereid) {
            return () -> {
                ModelHealth models = ModelHealth.of(nereid);
                Health.Builder health = models.up() ? Health.up() : Health.down();
                return health.withDetail("models", models.models()).build();
            };
        }
    }

    /** For a client. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(NereidClient.class)
    @ConditionalOnBean(NereidClient.class)
    @ConditionalOnEnabledHealthIndicator("nereidClient")
    static class Server {
        @Bean
        @ConditionalOnMissingBean(name = "nereidClientHealthIndicator")
        HealthIndicator nereidClientHealthIndicator(NereidClient client) {
            return () -> {
                ServerHealth server = ServerHealth.of(client);
                Health.Builder health = server.up() ? Health.up() : Health.down();
                return health.withDetail("server", server.state()).build();
            };
        }
    }
}
