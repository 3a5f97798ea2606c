// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** The beans of models in the process of a Spring Boot application: the engine, its models, meters and spans. */
@NullMarked
package io.nereid.spring.embedded;

import org.jspecify.annotations.NullMarked;
