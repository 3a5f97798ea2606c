// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** Annotations for tests of Spring Boot applications that use models. */
@NullMarked
package io.nereid.spring.test;

import org.jspecify.annotations.NullMarked;
