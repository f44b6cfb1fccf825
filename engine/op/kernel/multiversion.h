/* multiversion.h: loops that are compiled for several machines; the machine's
 * own form is chosen when the program is loaded.
 *
 * PLN_MULTIVERSION before a loop's function adds AVX2. PLN_MULTIVERSION_AVX512
 * adds AVX2 with fused multiply-add, and AVX-512, for loops that compute much
 * on each element. No form reorders; whether products and sums are contracted
 * is for the file to say (CMakeLists.txt), and where they are not, all forms
 * give the same bits.
 */

#ifndef PLN_OP_KERNEL_MULTIVERSION_H
#define PLN_OP_KERNEL_MULTIVERSION_H

#include <stdlib.h> /* tells which C library this is */

/* The choice is made before a sanitizer is ready. */
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
