// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Feature extraction from text (sklearn.feature_extraction.text): counts of terms and their TF-IDF weights. */
@NullMarked
package io.nereid.backends.sklearn.featureextraction;

import org.jspecify.annotations.NullMarked;
