/* device_domains.h: the devices of values as a domain that is unified: one
 * device for a value of first order, one for each parameter and the result of a
 * function. */

#ifndef PLN_TRANSFORM_DEVICE_DEVICE_DOMAINS_H
#define PLN_TRANSFORM_DEVICE_DEVICE_DOMAINS_H

#include "transform/device/virtual_device.h"

/* A domain by number; 0 is none. */
typedef uint32_t pln_domain;

typedef struct pln_domain_row {
  pln_domain parent;     /* itself: the representative of its class */
  pln_device device;     /* of first order */
  uint32_t first, count; /* of a function: its parts, the result last */
} pln_domain_row;

/* A row before it was changed. */
typedef struct pln_domain_change {
  pln_domain at;
  pln_domain_row before;
} pln_domain_change;

typedef struct pln_domains {
  pln_compilation *compilation;
  uint32_t n, cap, n_parts, cap_parts, n_stack, cap_stack;
  pln_domain_row *rows;
  pln_domain *parts;
  uint32_t *stack;
  bool recording; /* changes are recorded, to be undone */
  uint32_t n_changes, cap_changes;
  pln_domain_change *changes;
} pln_domains;

pln_status pln_domains_begin(pln_domains *d, pln_compilation *c) PLN_CHECKED;
void pln_domains_free(pln_domains *d);
/* A new domain of that type; the device is the value's or the result's. */
pln_status pln_domain_new(pln_domains *d, pln_type type, pln_device device,
                          pln_domain *out) PLN_CHECKED;
/* The representative. Its row is d->rows[...]. */
pln_domain pln_domain_find(const pln_domains *d, pln_domain domain);
/* Parameter `index` of a function's domain, or its result (UINT32_MAX); 0 when
 * it has none. */
pln_domain pln_domain_part(const pln_domains *d, pln_domain domain,
                           uint32_t index);
/* Makes them one. *ok: they do not contradict each other. */
pln_status pln_domain_unify(pln_domains *d, pln_domain a, pln_domain b,
                            bool *ok) PLN_CHECKED;
/* The same if they do not contradict each other, else nothing. */
pln_status pln_domain_try_unify(pln_domains *d, pln_domain a,
                                pln_domain b) PLN_CHECKED;
/* All parts of both become one. */
pln_status pln_domain_collapse(pln_domains *d, pln_domain a, pln_domain b,
                               bool *ok) PLN_CHECKED;
/* Completes open parts: the result by `device`, then all by the result's. */
pln_status pln_domain_default_result(pln_domains *d, pln_domain domain,
                                     pln_device device) PLN_CHECKED;
/* Completes all of its open parts. */
pln_status pln_domain_default(pln_domains *d, pln_domain domain,
                              pln_device device) PLN_CHECKED;
/* The device of a value, or of a function's result. */
pln_device pln_domain_device(const pln_domains *d, pln_domain domain);

#endif
