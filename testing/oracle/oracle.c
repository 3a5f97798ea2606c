/* Copyright the Nereid authors.
 * SPDX-License-Identifier: Apache-2.0
 *
 * oracle REPOSITORY BACKENDS: loads every model of a repository into Triton's core, one by one, and writes the results to
 * standard output: for each a line "== NAME", then "config JSON" or "error CODE TEXT"; then metadata, statistics, index
 * and metrics of the loaded models, and the time of an identity request. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *Handle;
#define F(name) extern Handle TRITONSERVER_##name
F(ServerOptionsNew)(Handle *);
F(ServerOptionsSetModelRepositoryPath)(Handle, const char *);
F(ServerOptionsSetModelControlMode)(Handle, int);
F(ServerOptionsSetBackendDirectory)(Handle, const char *);
F(ServerOptionsSetStrictModelConfig)(Handle, int);
F(ServerOptionsSetExitOnError)(Handle, int);
F(ServerOptionsSetLogInfo)(Handle, int);
F(ServerOptionsSetGpuMetrics)(Handle, int);
F(ServerNew)(Handle *, Handle);
F(ServerLoadModel)(Handle, const char *);
F(ServerModelConfig)(Handle, const char *, int64_t, uint32_t, Handle *);
F(ServerModelMetadata)(Handle, const char *, int64_t, Handle *);
F(ServerModelStatistics)(Handle, const char *, int64_t, Handle *);
F(ServerModelIndex)(Handle, uint32_t, Handle *);
F(ServerMetadata)(Handle, Handle *);
F(ServerMetrics)(Handle, Handle *);
F(MetricsFormatted)(Handle, int, const char **, size_t *);
F(MessageSerializeToJson)(Handle, const char **, size_t *);
F(MessageDelete)(Handle);
F(ServerStop)(Handle);
F(ServerDelete)(Handle);
extern const char *TRITONSERVER_ErrorMessage(Handle);
extern const char *TRITONSERVER_ErrorCodeString(Handle);
F(InferenceRequestNew)(Handle *, Handle, const char *, int64_t);
F(InferenceRequestAddInput)(Handle, const char *, int, const int64_t *, uint64_t);
F(InferenceRequestAppendInputData)(Handle, const char *, const void *, size_t, int, int64_t);
F(InferenceRequestRemoveAllInputData)(Handle, const char *);
F(InferenceRequestSetReleaseCallback)(Handle, void (*)(Handle, uint32_t, void *), void *);
F(InferenceRequestSetResponseCallback)(Handle, Handle, void *, void (*)(Handle, uint32_t, void *), void *);
F(InferenceResponseDelete)(Handle);
F(ResponseAllocatorNew)(Handle *, void *, void *, void *);
F(ServerInferAsync)(Handle, Handle, Handle);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int released, answered;

static Handle take(Handle allocator, const char *name, size_t size, int memory, int64_t device, void *user, void **buffer,
                   void **buffer_user, int *actual, int64_t *actual_device) {
    (void)allocator; (void)name; (void)memory; (void)device; (void)user;
    *buffer = malloc(size);
    *buffer_user = NULL;
    *actual = 0;
    *actual_device = 0;
    return NULL;
}

static Handle give(Handle allocator, void *buffer, void *user, size_t size, int memory, int64_t device) {
    (void)allocator; (void)user; (void)size; (void)memory; (void)device;
    free(buffer);
    return NULL;
}

static void on_release(Handle request, uint32_t flags, void *user) {
    (void)request; (void)flags; (void)user;
    pthread_mutex_lock(&lock);
    released = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_answer(Handle response, uint32_t flags, void *user) {
    (void)flags; (void)user;
    if (response != NULL) TRITONSERVER_InferenceResponseDelete(response);
    pthread_mutex_lock(&lock);
    answered = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void message(const char *what, Handle error, Handle message) {
    const char *text;
    size_t size;
    if (error != NULL) {
        printf("%s error %s %s\n", what, TRITONSERVER_ErrorCodeString(error), TRITONSERVER_ErrorMessage(error));
        return;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    printf("%s %.*s\n", what, (int)size, text);
    TRITONSERVER_MessageDelete(message);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void identity(Handle server, const char *model, int rounds) {
    Handle request, allocator;
    int64_t shape[] = {1, 16};
    float data[16] = {0};
    struct timespec from, to;
    TRITONSERVER_ResponseAllocatorNew(&allocator, take, give, NULL);
    if (TRITONSERVER_InferenceRequestNew(&request, server, model, -1) != NULL) return;
    TRITONSERVER_InferenceRequestAddInput(request, "INPUT0", 11, shape, 2);
    TRITONSERVER_InferenceRequestAppendInputData(request, "INPUT0", data, sizeof data, 0, 0);
    TRITONSERVER_InferenceRequestSetReleaseCallback(request, on_release, NULL);
    TRITONSERVER_InferenceRequestSetResponseCallback(request, allocator, NULL, on_answer, NULL);
    for (int round = 0; round < rounds; round++) {
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < 5000; i++) {
            released = answered = 0;
            if (TRITONSERVER_ServerInferAsync(server, request, NULL) != NULL) return;
            pthread_mutex_lock(&lock);
            while (!released || !answered) pthread_cond_wait(&changed, &lock);
            pthread_mutex_unlock(&lock);
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("identity %.2f us\n",
               ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / 5000 / 1e3);
    }
}

int main(int count, char **arguments) {
    Handle options, server, error, answer;
    char *names[100000];
    int n = 0;
    if (count < 3) {
        fprintf(stderr, "oracle REPOSITORY BACKENDS [MODEL-TO-TIME]\n");
        return 2;
    }
    TRITONSERVER_ServerOptionsNew(&options);
    TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, arguments[1]);
    TRITONSERVER_ServerOptionsSetModelControlMode(options, 2);
    TRITONSERVER_ServerOptionsSetBackendDirectory(options, arguments[2]);
    TRITONSERVER_ServerOptionsSetStrictModelConfig(options, 0);
    TRITONSERVER_ServerOptionsSetExitOnError(options, 0);
    TRITONSERVER_ServerOptionsSetLogInfo(options, 0);
    TRITONSERVER_ServerOptionsSetGpuMetrics(options, 0);
    error = TRITONSERVER_ServerNew(&server, options);
    if (error != NULL) {
        fprintf(stderr, "no server: %s\n", TRITONSERVER_ErrorMessage(error));
        return 1;
    }
    DIR *directory = opendir(arguments[1]);
    for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
        if (e->d_name[0] != '.' && n < 100000) names[n++] = strdup(e->d_name);
    }
    qsort(names, n, sizeof names[0], by_name);
    for (int i = 0; i < n; i++) {
        printf("== %s\n", names[i]);
        fprintf(stderr, "== %s\n", names[i]);
        error = TRITONSERVER_ServerLoadModel(server, names[i]);
        if (error != NULL) {
            printf("error %s %s\n", TRITONSERVER_ErrorCodeString(error), TRITONSERVER_ErrorMessage(error));
        } else {
            error = TRITONSERVER_ServerModelConfig(server, names[i], -1, 1, &answer);
            message("config", error, answer);
            error = TRITONSERVER_ServerModelMetadata(server, names[i], -1, &answer);
            message("metadata", error, answer);
        }
        fflush(stdout);
    }
    if (count > 3) {
        identity(server, arguments[3], 8);
        error = TRITONSERVER_ServerModelStatistics(server, arguments[3], -1, &answer);
        message("statistics", error, answer);
        error = TRITONSERVER_ServerMetadata(server, &answer);
        message("server", error, answer);
        const char *text;
        size_t size;
        if (TRITONSERVER_ServerMetrics(server, &answer) == NULL
            && TRITONSERVER_MetricsFormatted(answer, 0, &text, &size) == NULL) {
            printf("metrics\n%.*s", (int)size, text);
        }
    }
    error = TRITONSERVER_ServerModelIndex(server, 0, &answer);
    message("index", error, answer);
    fflush(stdout);
    _Exit(0);
}
