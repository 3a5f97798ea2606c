// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import io.micrometer.core.instrument.MeterRegistry;
import io.nereid.embedded.Nereid;
import io.nereid.embedded.micrometer.NereidMetrics;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Shows the counters of embedded models in the registries of the application; see {@link NereidMetrics} for the meters. */
@AutoConfiguration(
        after = NereidEmbeddedAutoConfiguration.class,
        // Of Spring Boot 3 and of Spring Boot 4.
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration"
        })
@ConditionalOnClass({Nereid.class, MeterRegistry.class})
@ConditionalOnBean({Nereid.class, MeterRegistry.class})
public class NereidMetricsAutoConfiguration {
    /** Is bound to the registries by Spring Boot, as each meter binder is. */
    @Bean
    @ConditionalOnMissingBean
    public NereidMetrics nereidMetrics(Nereid nereid) {
        return new NereidMetrics(nereid);
    }
}
