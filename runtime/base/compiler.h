/* runtime/base/compiler.h - the only place where compiler extensions are named.
 *
 * Everything else in the project is C17; what gcc and clang offer beyond it is wrapped here. */
#ifndef RUNTIME_BASE_COMPILER_H
#define RUNTIME_BASE_COMPILER_H

#define TS_WARN_UNUSED __attribute__((warn_unused_result))
#define TS_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))
#define TS_NORETURN __attribute__((noreturn))
#define TS_UNUSED __attribute__((unused))
#define TS_WEAK __attribute__((weak)) /* a use that pulls in no archive member */
#define TS_NOINLINE __attribute__((noinline))
#define TS_LIKELY(x) __builtin_expect(!!(x), 1)
#define TS_UNLIKELY(x) __builtin_expect(!!(x), 0)

#if defined(__SANITIZE_ADDRESS__)
#define TS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TS_ASAN 1
#endif
#endif
#ifndef TS_ASAN
#define TS_ASAN 0
#endif

#endif
