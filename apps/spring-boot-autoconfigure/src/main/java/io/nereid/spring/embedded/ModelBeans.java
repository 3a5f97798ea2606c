// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spring.embedded;

import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.RootBeanDefinition;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;

/** Registers a bean for each model of the properties, under the model's name. Beans of the application keep their names. */
final class ModelBeans implements ImportBeanDefinitionRegistrar {
    private final Environment environment;
    private final BeanFactory beans;

    /** Is called by Spring, which offers these to a registrar. */
    ModelBeans(Environment environment, BeanFactory beans) {
        this.environment = environment;
        this.beans = beans;
    }

    @Override
    public void registerBeanDefinitions(AnnotationMetadata metadata, BeanDefinitionRegistry registry) {
        for (String name : OnEmbeddedModels.models(environment).keySet()) {
            if (!registry.containsBeanDefinition(name)) {
                RootBeanDefinition bean = new RootBeanDefinition(
                        Model.class, () -> beans.getBean(Nereid.class).model(name));
                // A model that could not be loaded does not keep the application from starting, if that is what is
                // wanted.
                bean.setLazyInit(true);
                registry.registerBeanDefinition(name, bean);
            }
        }
    }
}
