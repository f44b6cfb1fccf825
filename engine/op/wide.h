/* wide.h: PLN_WIDE before a loop's function: it is compiled a second time for
 * AVX2, and the machine's own is chosen when the program is loaded. Neither
 * form contracts or reorders, so both give the same bits. */

#ifndef PLN_OP_WIDE_H
#define PLN_OP_WIDE_H

#include <stdlib.h> /* tells which C library this is */

/* The choice is made before a sanitizer is ready. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && \
    !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&         \
    !defined __SANITIZE_THREAD__
#define PLN_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define PLN_WIDE
#endif

#endif
