/* runtime/ops/text.h - Unicode as far as the methods of str need it.
 *
 * Classes and case mapping cover ASCII, Latin, Greek, Cyrillic and the letters of the common other
 * scripts by ranges; a full database would be larger than the rest of the runtime. */
#ifndef RUNTIME_OPS_TEXT_H
#define RUNTIME_OPS_TEXT_H

#include "runtime/base/buffer.h"
#include "runtime/values/value.h"

/* The code point at data[*at], which moves on; broken UTF-8 gives its bytes one by one. */
uint32_t rt_text_next(ts_str s, size_t *at);
void rt_text_append(ts_buffer *out, uint32_t code_point);
/* Byte offset of a code point's position, and back. position is in range. */
size_t rt_text_offset(const rt_str *s, int64_t position);
int64_t rt_text_position(const rt_str *s, size_t offset);

bool rt_char_is_space(uint32_t c);
bool rt_char_is_alpha(uint32_t c);
bool rt_char_is_lower(uint32_t c);
bool rt_char_is_upper(uint32_t c);
bool rt_char_is_decimal(uint32_t c);
bool rt_char_is_digit(uint32_t c);
bool rt_char_is_numeric(uint32_t c);
bool rt_char_is_printable(uint32_t c);
uint32_t rt_char_lower(uint32_t c);
uint32_t rt_char_upper(uint32_t c); /* one to one; sharp s is the caller's */

/* The buffer's text as a str; releases the buffer. */
ts_status rt_str_take_buffer(ts_buffer *buffer, rt_value *out) TS_WARN_UNUSED;

#endif
