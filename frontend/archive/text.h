/* frontend/archive/text.h - small checks of text from a file. */
#ifndef FRONTEND_ARCHIVE_TEXT_H
#define FRONTEND_ARCHIVE_TEXT_H

#include "runtime/base/str.h"

/* Well-formed UTF-8 (surrogates are let through, as Python's surrogatepass writes them). */
static inline bool fe_text_is_utf8(ts_str s) {
    for (size_t i = 0; i < s.length;) {
        unsigned c = (unsigned char)s.data[i];
        size_t n = c < 0x80                ? 1
                   : c >= 0xc2 && c < 0xe0 ? 2
                   : (c & 0xf0) == 0xe0    ? 3
                   : c >= 0xf0 && c < 0xf5 ? 4
                                           : 0;
        if (n == 0 || n > s.length - i)
            return false;
        for (size_t k = 1; k < n; k++)
            if (((unsigned char)s.data[i + k] & 0xc0) != 0x80)
                return false;
        i += n;
    }
    return true;
}

static inline bool fe_text_has_control(ts_str s) {
    for (size_t i = 0; i < s.length; i++)
        if ((unsigned char)s.data[i] < 32 || s.data[i] == 127)
            return true;
    return false;
}

#endif
