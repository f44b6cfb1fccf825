/* device_domains.c: a union-find structure over devices of values.
 *
 * Called by plan_devices.c. Invariants: nothing recurses, types may be nested
 * deeply; a class has one row that says what is known, its representative's;
 * the parts of a function's domain are domains themselves. Union without ranks
 * and with halving of paths takes logarithmic time on average.
 *
 *     fn (?1, ?2): ?3  with  fn (cpu, ?4): gpu   =>   fn (cpu, ?2): gpu
 *
 * Semantics: TVM's DeviceDomains. */

#include "transform/device/device_domains.h"

/* ------------------------------------------------------------------- tables */

pln_status pln_domains_begin(pln_domains *d, pln_compilation *c) {
  pln_domain none;
  *d = (pln_domains){.compilation = c};
  return pln_domain_new(d, 0, 0, &none);
}

void pln_domains_free(pln_domains *d) {
  pln_engine *e = d->compilation->engine;
  pln_mem_free(e, d->rows, d->cap * sizeof *d->rows);
  pln_mem_free(e, d->parts, d->cap_parts * sizeof *d->parts);
  pln_mem_free(e, d->stack, d->cap_stack * sizeof *d->stack);
  pln_mem_free(e, d->changes, d->cap_changes * sizeof *d->changes);
}

static pln_status push_pair(pln_domains *d, uint32_t a, uint32_t b) {
  PLN_TRY(pln_mem_grow(d->compilation->engine, (void **)&d->stack,
                       &d->cap_stack, (size_t)d->n_stack + 2,
                       sizeof *d->stack));
  d->stack[d->n_stack++] = a;
  d->stack[d->n_stack++] = b;
  return PLN_OK;
}

static void pop_pair(pln_domains *d, uint32_t *a, uint32_t *b) {
  *b = d->stack[--d->n_stack];
  *a = d->stack[--d->n_stack];
}

static pln_status new_row(pln_domains *d, pln_device device, pln_domain *out) {
  PLN_TRY(pln_mem_grow(d->compilation->engine, (void **)&d->rows, &d->cap,
                       (size_t)d->n + 1, sizeof *d->rows));
  *out = d->n;
  d->rows[d->n++] = (pln_domain_row){.parent = *out, .device = device};
  return PLN_OK;
}

/* The rows of a function's parts are adjacent; their types are on the stack. */
static pln_status add_parts(pln_domains *d, pln_domain domain, pln_type type) {
  pln_engine *e = d->compilation->engine;
  uint32_t n = pln_type_n_parts(e, type);
  PLN_TRY(pln_mem_grow(e, (void **)&d->parts, &d->cap_parts,
                       (size_t)d->n_parts + n, sizeof *d->parts));
  pln_device device = d->rows[domain].device;
  d->rows[domain].first = d->n_parts;
  d->rows[domain].count = n;
  for (uint32_t i = 0; i < n; i++) {
    pln_domain part;
    PLN_TRY(new_row(d, i + 1 == n ? device : 0, &part));
    d->parts[d->n_parts++] = part;
    PLN_TRY(push_pair(d, part, pln_type_part_at(e, type, i)));
  }
  return PLN_OK;
}

pln_status pln_domain_new(pln_domains *d, pln_type type, pln_device device,
                          pln_domain *out) {
  uint32_t bottom = d->n_stack, domain;
  pln_engine *e = d->compilation->engine;
  PLN_TRY(new_row(d, device, out));
  PLN_TRY(push_pair(d, *out, type));
  while (d->n_stack > bottom) {
    pop_pair(d, &domain, &type);
    if (type && pln_type_get_kind(e, type) == PLN_TYPE_FUNC)
      PLN_TRY(add_parts(d, domain, type));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ classes */

pln_domain pln_domain_find(const pln_domains *d, pln_domain domain) {
  while (d->rows[domain].parent != domain) {
    if (!d->recording)
      d->rows[domain].parent = d->rows[d->rows[domain].parent].parent;
    domain = d->rows[domain].parent;
  }
  return domain;
}

pln_domain pln_domain_part(const pln_domains *d, pln_domain domain,
                           uint32_t index) {
  const pln_domain_row *row = &d->rows[pln_domain_find(d, domain)];
  if (index == UINT32_MAX && row->count > 0)
    index = row->count - 1;
  return index < row->count ? d->parts[row->first + index] : 0;
}

static pln_status change(pln_domains *d, pln_domain at, pln_domain_row row) {
  if (d->recording) {
    PLN_TRY(pln_mem_grow(d->compilation->engine, (void **)&d->changes,
                         &d->cap_changes, (size_t)d->n_changes + 1,
                         sizeof *d->changes));
    d->changes[d->n_changes++] = (pln_domain_change){at, d->rows[at]};
  }
  d->rows[at] = row;
  return PLN_OK;
}

/* Two values of first order. */
static pln_status join_values(pln_domains *d, pln_domain a, pln_domain b,
                              bool *ok) {
  pln_device both;
  PLN_TRY(pln_device_join(d->compilation, d->rows[a].device, d->rows[b].device,
                          &both));
  *ok = both != PLN_NO_DEVICE;
  if (!*ok)
    return PLN_OK;
  PLN_TRY(change(d, a, (pln_domain_row){.parent = a, .device = both}));
  return change(d, b, (pln_domain_row){.parent = a});
}

static pln_status join_functions(pln_domains *d, pln_domain a, pln_domain b) {
  pln_domain_row x = d->rows[a], y = d->rows[b];
  for (uint32_t i = 0; i < x.count; i++)
    PLN_TRY(push_pair(d, d->parts[x.first + i], d->parts[y.first + i]));
  y.parent = a;
  return change(d, b, y);
}

/* A function beside a value of first order: its parts become that. */
static pln_status join_parts(pln_domains *d, pln_domain function,
                             pln_domain value) {
  const pln_domain_row row = d->rows[function];
  for (uint32_t i = 0; i < row.count; i++)
    PLN_TRY(push_pair(d, d->parts[row.first + i], value));
  return PLN_OK;
}

static pln_status unify_pair(pln_domains *d, pln_domain a, pln_domain b,
                             bool collapse, bool *ok) {
  a = pln_domain_find(d, a);
  b = pln_domain_find(d, b);
  uint32_t m = d->rows[a].count, n = d->rows[b].count;
  if (a == b)
    return PLN_OK;
  if (m == 0 && n == 0)
    return join_values(d, a, b, ok);
  if (m == n)
    return join_functions(d, a, b);
  if (m == 0 || n == 0)
    return m ? join_parts(d, a, b) : join_parts(d, b, a);
  *ok = collapse;
  return PLN_OK;
}

static pln_status unify_all(pln_domains *d, pln_domain a, pln_domain b,
                            bool collapse, bool *ok) {
  uint32_t bottom = d->n_stack;
  *ok = true;
  PLN_TRY(push_pair(d, a, b));
  while (d->n_stack > bottom && *ok) {
    pop_pair(d, &a, &b);
    PLN_TRY(unify_pair(d, a, b, collapse, ok));
  }
  d->n_stack = bottom;
  return PLN_OK;
}

pln_status pln_domain_unify(pln_domains *d, pln_domain a, pln_domain b,
                            bool *ok) {
  return unify_all(d, a, b, false, ok);
}

pln_status pln_domain_try_unify(pln_domains *d, pln_domain a, pln_domain b) {
  bool ok;
  d->recording = true;
  d->n_changes = 0;
  pln_status status = unify_all(d, a, b, false, &ok);
  d->recording = false;
  while (status == PLN_OK && !ok && d->n_changes > 0) {
    pln_domain_change *c = &d->changes[--d->n_changes];
    d->rows[c->at] = c->before;
  }
  return status;
}

pln_status pln_domain_collapse(pln_domains *d, pln_domain a, pln_domain b,
                               bool *ok) {
  pln_domain one;
  PLN_TRY(new_row(d, 0, &one));
  PLN_TRY(unify_all(d, one, a, true, ok));
  if (*ok)
    PLN_TRY(unify_all(d, one, b, true, ok));
  return PLN_OK;
}

/* ----------------------------------------------------------------- defaults */

pln_device pln_domain_device(const pln_domains *d, pln_domain domain) {
  pln_domain at = pln_domain_find(d, domain);
  while (d->rows[at].count > 0)
    at =
        pln_domain_find(d, d->parts[d->rows[at].first + d->rows[at].count - 1]);
  return d->rows[at].device;
}

pln_status pln_domain_default(pln_domains *d, pln_domain domain,
                              pln_device device) {
  uint32_t bottom = d->n_stack, unused;
  PLN_TRY(push_pair(d, domain, 0));
  while (d->n_stack > bottom) {
    pop_pair(d, &domain, &unused);
    domain = pln_domain_find(d, domain);
    const pln_domain_row row = d->rows[domain];
    for (uint32_t i = 0; i < row.count; i++)
      PLN_TRY(push_pair(d, d->parts[row.first + i], 0));
    if (row.count == 0)
      PLN_TRY(pln_device_default(d->compilation, row.device, device,
                                 &d->rows[domain].device));
  }
  return PLN_OK;
}

pln_status pln_domain_default_result(pln_domains *d, pln_domain domain,
                                     pln_device device) {
  pln_domain result = domain;
  for (pln_domain part = domain; part;
       part = pln_domain_part(d, part, UINT32_MAX))
    result = part;
  PLN_TRY(pln_domain_default(d, result, device));
  return pln_domain_default(d, domain, pln_domain_device(d, result));
}
