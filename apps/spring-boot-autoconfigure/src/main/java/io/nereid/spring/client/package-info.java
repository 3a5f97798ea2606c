// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** The beans of a client of a server in a Spring Boot application. */
@NullMarked
package io.nereid.spring.client;

import org.jspecify.annotations.NullMarked;
