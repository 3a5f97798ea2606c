// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.request;

import io.nereid.testkit.StorageProviderContract;
import java.net.URI;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.gaul.s3proxy.AuthenticationType;
import org.gaul.s3proxy.S3Proxy;
import org.jclouds.ContextBuilder;
import org.jclouds.blobstore.BlobStore;
import org.jclouds.blobstore.BlobStoreContext;
import org.jclouds.filesystem.FilesystemApiMetadata;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** The contract of a provider of {@code s3://}, with a real S3 server, which verifies signatures. */
public abstract class S3StoreContract extends StorageProviderContract {
    private static final String SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY";

    @TempDir
    static Path blobs;

    private static BlobStoreContext context;
    private static BlobStore store;
    private static S3Proxy server;

    @BeforeAll
    static void serve() throws Exception {
        Properties properties = new Properties();
        properties.setProperty("jclouds.filesystem.basedir", blobs.toString());
        context = ContextBuilder.newBuilder(new FilesystemApiMetadata())
                .credentials("id", "secret")
                .overrides(properties)
                .build(BlobStoreContext.class);
        store = context.getBlobStore();
        server = S3Proxy.builder()
                .blobStore(store)
                .endpoint(URI.create("http://127.0.0.1:0"))
                .awsAuthentication(AuthenticationType.AWS_V4, "AKIDEXAMPLE", SECRET)
                .build();
        server.start();
        store.createContainerInLocation(null, "bucket");
    }

    @AfterAll
    static void stopServing() throws Exception {
        server.stop();
        context.close();
    }

    @Override
    protected String uri(String path) {
        return "s3://bucket/" + path;
    }

    @Override
    protected Map<String, String> settings() {
        return Map.of(
                "AWS_ACCESS_KEY_ID",
                "AKIDEXAMPLE",
                "AWS_SECRET_ACCESS_KEY",
                SECRET,
                "AWS_ENDPOINT_URL",
                "http://127.0.0.1:" + server.getPort());
    }

    @Override
    protected Map<String, String> wrongSettings() {
        return with("AWS_SECRET_ACCESS_KEY", "not-the-secret");
    }

    @Override
    protected Map<String, String> unreachableSettings() {
        return with("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    }

    private Map<String, String> with(String name, String value) {
        Map<String, String> changed = new HashMap<>(settings());
        changed.put(name, value);
        return changed;
    }

    @Override
    protected void put(String path, byte[] content) {
        store.putBlob("bucket", store.blobBuilder(path).payload(content).build());
    }

    @Override
    protected void remove(String path) {
        store.removeBlob("bucket", path);
    }
}
