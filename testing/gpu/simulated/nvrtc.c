// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
//
// A simulated libnvrtc.so.13: compiles nothing; its image has the name of the kernel of the source, which libcuda has compiled in.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char name[64];
    int compiled;
} program;

int nvrtcCreateProgram(program **made, const char *source, const char *name, int headers, const char **texts, const char **names) {
    (void)name, (void)texts, (void)names;
    const char *kernel = strstr(source, "__global__ void ");
    if (headers || !kernel || !(*made = calloc(1, sizeof(program)))) {
        return 3;
    }
    sscanf(kernel, "__global__ void %63[a-zA-Z0-9_]", (*made)->name);
    return 0;
}

int nvrtcCompileProgram(program *of, int count, const char **options) {
    return of->compiled = count == 1 && !strncmp(options[0], "--gpu-architecture=sm_", 22), of->compiled ? 0 : 5;
}

int nvrtcGetProgramLogSize(program *of, size_t *size) { return (void)of, *size = 16, 0; }
int nvrtcGetProgramLog(program *of, char *log) { return (void)of, strcpy(log, "invalid options"), 0; }
int nvrtcGetCUBINSize(program *of, size_t *size) { return *size = strlen(of->name) + 11, of->compiled ? 0 : 7; }
int nvrtcGetCUBIN(program *of, char *image) { return sprintf(image, "simulated %s", of->name), of->compiled ? 0 : 7; }
int nvrtcDestroyProgram(program **of) { return free(*of), *of = NULL, 0; }
