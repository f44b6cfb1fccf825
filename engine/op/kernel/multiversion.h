/* multiversion.h: function multiversioning (target_clones): a loop is compiled
 * for several CPUs, and one version is chosen when the program is loaded.
 *
 * PLN_MULTIVERSION before a function adds AVX2. PLN_MULTIVERSION_AVX512 adds
 * AVX2 with fused multiply-add, and AVX-512, for loops with much arithmetic per
 * element. No version reorders operations. Whether products and sums may be
 * contracted is a compiler option of the file; where they may not, all versions
 * give the same bits. */

#ifndef PLN_OP_KERNEL_MULTIVERSION_H
#define PLN_OP_KERNEL_MULTIVERSION_H

#include <stdlib.h> /* defines the macro that identifies the C library */

/* The resolver runs before a sanitizer is initialized. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && \
    !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&         \
    !defined __SANITIZE_THREAD__
#define PLN_MULTIVERSION __attribute__((target_clones("avx2", "default")))
#if __GNUC__ >= 12
#define PLN_MULTIVERSION_AVX512 \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLN_MULTIVERSION_AVX512 PLN_MULTIVERSION
#endif
#else
#define PLN_MULTIVERSION
#define PLN_MULTIVERSION_AVX512
#endif

#endif
