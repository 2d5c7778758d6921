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
#define TS_FRAME_ADDRESS() __builtin_frame_address(0)
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

/* A type of several numbers side by side; + - * work on it as a whole. */
#define TS_VECTOR(bytes) __attribute__((vector_size(bytes), aligned(4), may_alias))

/* Compiles a function for newer processors too; the loader picks. */
#if defined(__x86_64__) && !TS_ASAN && !defined(__SANITIZE_THREAD__) &&                             \
    defined(__gnu_linux__) && !defined(__clang__)
#define TS_TARGET_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TS_TARGET_CLONES
#endif

#endif
