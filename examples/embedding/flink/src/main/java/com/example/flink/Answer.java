// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.flink;

/**
 * The name of a flower, or the reason why it has none.
 *
 * @param flower the measures as they came
 * @param name null where there is a reason
 * @param reason null where there is a name
 */
public record Answer(String flower, String name, String reason) {}
