/* tools/options_streams.c - standard streams that may be closed, full or gone. */
#define _GNU_SOURCE
#include "tools/options.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

void streams_init(void) {
    /* A file opened while 0, 1 or 2 is closed would take that number and be written to. */
    for (int d = 0; d <= 2; d++)
        if (fcntl(d, F_GETFD) < 0 && errno == EBADF) {
            int opened = open("/dev/null", d ? O_WRONLY : O_RDONLY);
            if (opened >= 0 && opened != d) {
                dup2(opened, d);
                close(opened);
            }
        }
    signal(SIGPIPE, SIG_IGN);
    setlocale(LC_NUMERIC, "C");
}

ts_status options_keep_inputs(const char *output, const char *const *inputs, size_t count) {
    struct stat in, out;
    if (!output || stat(output, &out) != 0 || !S_ISREG(out.st_mode))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (inputs[i] && stat(inputs[i], &in) == 0 && in.st_dev == out.st_dev &&
            in.st_ino == out.st_ino)
            return ts_error_make(TS_ERR_INVALID_INPUT, "the output would replace the input %s",
                                 inputs[i]);
    return NULL;
}
