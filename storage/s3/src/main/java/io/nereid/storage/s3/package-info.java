// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** S3 on the AWS SDK: credentials as the SDK finds them, ARNs and access points, checksums, and compatible servers. */
@NullMarked
package io.nereid.storage.s3;

import org.jspecify.annotations.NullMarked;
