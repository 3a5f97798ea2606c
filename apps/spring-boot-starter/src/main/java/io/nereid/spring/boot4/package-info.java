// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** Health of models and servers with the types of Spring Boot 4. */
@NullMarked
package io.nereid.spring.boot4;

import org.jspecify.annotations.NullMarked;
