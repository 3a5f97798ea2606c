// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** One source for each kind of store: S3, GCS, Azure Blob, WebHDFS, Hugging Face Hub, OCI registries and HTTP. */
@NullMarked
package io.nereid.storage.provider;

import org.jspecify.annotations.NullMarked;
