/* codegen/write_shared.c - an object into a shared library, by the system's linker: the one place
 * where a compile starts another program. */
#define _POSIX_C_SOURCE 200809L
#include "codegen/compile_llvm.h"
#include "runtime/base/file.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static ts_status link_with(const char *object, const char *out) {
    static const char *const linkers[] = {"ld.lld", "ld", "cc"};
    for (size_t i = 0; i < sizeof linkers / sizeof linkers[0]; i++) {
        const char *arguments[] = {linkers[i], "-shared", i == 2 ? "-nostdlib" : "-znow", "-o",
                                   out, object, NULL};
        pid_t child;
        int error = posix_spawnp(&child, linkers[i], NULL, NULL,
                                 (char *const *)(uintptr_t)arguments, environ);
        if (error == ENOENT)
            continue;
        if (error)
            return ts_error_make(TS_ERR_IO, "%s: %s", linkers[i], strerror(error));
        int result = 0;
        if (waitpid(child, &result, 0) < 0)
            return ts_error_make(TS_ERR_IO, "%s: %s", linkers[i], strerror(errno));
        if (WIFEXITED(result) && WEXITSTATUS(result) == 127)
            continue; /* not found, by the child's own report */
        if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
            return ts_error_make(TS_ERR_IO, "%s could not make %s", linkers[i], out);
        return NULL;
    }
    return ts_error_make(TS_ERR_UNSUPPORTED,
                         "--emit=so needs a linker: ld.lld, ld or cc was not found");
}

ts_status cg_write_shared(const char *path, const void *object, size_t length) {
    char *name = NULL;
    ts_buffer text = {0};
    ts_buffer_format(&text, "%s.tmp.%ld.o", path, (long)getpid());
    ts_buffer_char(&text, 0);
    TS_TRY(ts_buffer_status(&text));
    name = text.data;
    ts_file_part part = {.data = object, .length = length};
    ts_status status = ts_file_write(name, &part, 1);
    if (!status)
        status = link_with(name, path);
    unlink(name);
    ts_buffer_deinit(&text);
    return status;
}
