/* virtual_device.c: devices: read from attributes, joined, completed, written.
 *
 * Called by the files of PlanDevices. Invariants: equal devices have one number
 * in a compilation; a device with a type has a target of that type.
 *
 *     {"device_type_int": "2", "virtual_device_id": "0", "target": 0}
 *     =>   type 2, id 0, the compilation's target of that type, any memory
 *
 * Semantics: TVM's VirtualDevice and CompilationConfig. */

#include "transform/device/virtual_device.h"

#include <stdio.h>

#include "ir/relay/metadata/object.h"
#include "transform/compile_target.h"

/* --------------------------------------------------------- kinds of targets */

typedef struct target_kind {
  const char *name;
  int64_t device_type;
  const char *keys[2];
} target_kind;

static const target_kind kinds[] = {
    {"llvm", 1, {"cpu"}},
    {"c", 1, {"cpu"}},
    {"stackvm", 1, {"cpu"}},
    {"hybrid", 1, {"hybrid"}},
    {"cuda", 2, {"cuda", "gpu"}},
    {"nvptx", 2, {"cuda", "gpu"}},
    {"opencl", 4, {"opencl", "gpu"}},
    {"aocl", 5, {"aocl", "hls"}},
    {"aocl_sw_emu", 5, {"aocl", "hls"}},
    {"sdaccel", 6, {"sdaccel", "hls"}},
    {"vulkan", 7, {"vulkan", "gpu"}},
    {"metal", 8, {"metal", "gpu"}},
    {"rocm", 10, {"rocm", "gpu"}},
    {"ext_dev", 12, {"ext_dev"}},
    {"hexagon", 14, {"hexagon"}},
    {"webgpu", 15, {"webgpu", "gpu"}},
};

static const target_kind other_kind = {"", 1, {NULL}};

static const target_kind *kind_of(pln_slice name) {
  for (size_t i = 0; i < PLN_COUNT(kinds); i++)
    if (pln_slice_is(name, kinds[i].name))
      return &kinds[i];
  return &other_kind;
}

static pln_status add_target(pln_compilation *c, pln_slice text, bool is_host) {
  pln_slice kind;
  size_t at = 0;
  if (!pln_target_next_word(text, &at, &kind))
    return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                          "a target has no kind");
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->targets, &c->cap_targets,
                       (size_t)c->n_targets + 1, sizeof *c->targets));
  c->targets[c->n_targets++] =
      (pln_compile_device_target){.text = text,
                                  .kind = kind,
                                  .device_type = kind_of(kind)->device_type,
                                  .is_host = is_host};
  return PLN_OK;
}

/* ------------------------------------------------------- the table of devices
 */

static pln_status intern_device(pln_compilation *c, pln_virtual_device device,
                                pln_device *out) {
  for (*out = 0; *out < c->n; ++*out) {
    const pln_virtual_device *d = &c->devices[*out];
    if (d->type == device.type && d->id == device.id &&
        d->target == device.target && d->scope == device.scope)
      return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(c->engine, (void **)&c->devices, &c->cap,
                       (size_t)c->n + 1, sizeof *c->devices));
  c->devices[c->n++] = device;
  return PLN_OK;
}

/* 1 + the index of the first target for the device type; 0: none. */
static uint32_t target_for(const pln_compilation *c, int64_t type) {
  for (uint32_t i = 0; i < c->n_targets; i++)
    if (c->targets[i].device_type == type && !c->targets[i].is_host)
      return i + 1;
  return 0;
}

static pln_status canonical(pln_compilation *c, pln_virtual_device device,
                            pln_device *out) {
  if (device.type > 0 && !device.target)
    device.target = target_for(c, device.type);
  if (device.type > 0 && !device.target)
    return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                          "there is no target for device type "
                          "%lld; the option 'config' or the context's target "
                          "says which there are",
                          (long long)device.type);
  return intern_device(c, device, out);
}

/* ------------------------------------------------------------- a compilation
 */

static const pln_attr *config_field(const pln_compilation *c,
                                    const pln_attr *config, const char *name) {
  return config->kind == PLN_ATTR_DICT
             ? pln_attrs_find(c->engine, config->v.dict, name)
             : NULL;
}

/* The host of the first target that names one, else the first processor, else
 * "llvm". */
static pln_slice host_text(const pln_compilation *c) {
  for (uint32_t i = 0; i < c->n_targets; i++) {
    pln_slice host = pln_target_attr(c->targets[i].text, "host");
    if (host.size)
      return host;
  }
  uint32_t processor = target_for(c, 1);
  return processor ? c->targets[processor - 1].text : pln_text("llvm");
}

static pln_status add_targets(pln_compilation *c, const pln_pass_run *run,
                              const pln_attr *config) {
  const pln_attr *given = config_field(c, config, "primitive_targets");
  pln_slice text = pln_run_target_text(run);
  for (uint32_t i = 0; given && i < given->count; i++)
    PLN_TRY(add_target(c, given->v.strings[i], false));
  if (c->n_targets == 0)
    PLN_TRY(add_target(c, text.size ? text : pln_text("llvm"), false));
  return add_target(c, host_text(c), true);
}

static int64_t given_type(const pln_compilation *c, const pln_attr *config,
                          const char *name) {
  const pln_attr *given = config_field(c, config, name);
  return given && given->kind == PLN_ATTR_INT ? given->v.i : 0;
}

/* TVM's: the given one, the only one, else a processor. */
static int64_t default_type(const pln_compilation *c, const pln_attr *config) {
  int64_t type = given_type(c, config, "default_device_type");
  for (uint32_t i = 0; !type && i < c->n_targets - 1; i++)
    if (c->targets[i].device_type != c->targets[0].device_type)
      type = 1;
  return type ? type : c->targets[0].device_type;
}

static pln_status add_host(pln_compilation *c, const pln_attr *config) {
  int64_t type = given_type(c, config, "host_device_type");
  uint32_t host = c->n_targets;
  if (type && type != c->targets[host - 1].device_type)
    return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                          "the host's device type is %lld, but "
                          "its target '%.*s' is for type %lld",
                          (long long)type, (int)c->targets[host - 1].kind.size,
                          c->targets[host - 1].kind.data,
                          (long long)c->targets[host - 1].device_type);
  return intern_device(
      c,
      (pln_virtual_device){.type = c->targets[host - 1].device_type,
                           .target = host},
      &c->host);
}

pln_status pln_compilation_begin(pln_compilation *c, const pln_pass_run *run) {
  pln_attr config = {.name = 0};
  pln_device open;
  *c = (pln_compilation){.engine = pln_run_engine(run)};
  pln_run_option(run, "config", &config);
  PLN_TRY(intern_device(c, (pln_virtual_device){.type = -1, .id = -1}, &open));
  PLN_TRY(add_targets(c, run, &config));
  PLN_TRY(canonical(c, (pln_virtual_device){.type = default_type(c, &config)},
                    &c->primitive));
  return add_host(c, &config);
}

void pln_compilation_free(pln_compilation *c) {
  pln_mem_free(c->engine, c->targets, c->cap_targets * sizeof *c->targets);
  pln_mem_free(c->engine, c->devices, c->cap * sizeof *c->devices);
}

/* ------------------------------------------------------------------- reading
 */

static bool object_node(pln_slice object, uint64_t index,
                        pln_object_node *out) {
  size_t at = 0;
  for (uint64_t i = 0; pln_object_next(object, &at, out); i++)
    if (i == index)
      return true;
  return false;
}

/* A number, with or without quotes; -1 when it is none. */
static int64_t number_of(pln_slice text) {
  int64_t value = 0;
  size_t i = text.size > 0 && text.data[0] == '"', digits = 0;
  bool negative = i < text.size && text.data[i] == '-';
  for (i += negative; i < text.size && value < INT32_MAX; i++, digits++) {
    if (text.data[i] < '0' || text.data[i] > '9')
      break;
    value = 10 * value + (text.data[i] - '0');
  }
  return digits && !negative ? value : -1;
}

/* The value of an attribute of a node of an object's text; empty: none. */
static pln_slice object_attr(const pln_object_node *node, const char *wanted) {
  pln_slice name, value;
  for (size_t at = 0; pln_object_entry(node->attrs, &at, &name, &value);)
    if (name.size == strlen(wanted) + 2 &&
        !memcmp(name.data + 1, wanted, name.size - 2))
      return value;
  return (pln_slice){NULL, 0};
}

/* The text of the String that an attribute refers to; empty: none. */
static pln_slice object_string(pln_slice object, const pln_object_node *node,
                               const char *attr) {
  pln_object_node text;
  int64_t at = number_of(object_attr(node, attr));
  if (at <= 0 || !object_node(object, (uint64_t)at, &text) ||
      text.text.size < 2)
    return pln_text("");
  return (pln_slice){text.text.data + 1, text.text.size - 2};
}

/* 1 + the compilation's target of the same kind; the host's has no host. */
static pln_status read_target(const pln_compilation *c, pln_slice object,
                              const pln_object_node *device, uint32_t *out) {
  pln_object_node target, kind;
  int64_t at = number_of(object_attr(device, "target"));
  *out = 0;
  if (at <= 0 || !object_node(object, (uint64_t)at, &target))
    return PLN_OK;
  bool is_host = number_of(object_attr(&target, "host")) <= 0;
  pln_slice name = {NULL, 0};
  at = number_of(object_attr(&target, "kind"));
  if (at > 0 && object_node(object, (uint64_t)at, &kind))
    name = object_string(object, &kind, "name");
  for (uint32_t i = 0; i < c->n_targets; i++)
    if (c->targets[i].is_host == is_host && name.size &&
        c->targets[i].kind.size == name.size &&
        !memcmp(c->targets[i].kind.data, name.data, name.size)) {
      *out = i + 1;
      return PLN_OK;
    }
  return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                        "a device names the target '%.*s', which "
                        "is none of the compilation's",
                        (int)name.size, name.data ? name.data : "");
}

pln_status pln_device_read(pln_compilation *c, const pln_attr *attr,
                           pln_device *out) {
  pln_object_node node;
  pln_virtual_device device = {.type = -1, .id = -1};
  *out = 0;
  if (!attr || attr->kind != PLN_ATTR_OBJECT ||
      !object_node(attr->v.s, 0, &node))
    return PLN_OK;
  if (!pln_slice_is(node.type_key, "VirtualDevice"))
    return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                          "a device is a %.*s, not a "
                          "VirtualDevice",
                          (int)node.type_key.size, node.type_key.data);
  device.type = number_of(object_attr(&node, "device_type_int"));
  device.id = number_of(object_attr(&node, "virtual_device_id"));
  if (device.type == 0)
    device.type = -1;
  pln_slice scope = object_string(attr->v.s, &node, "memory_scope");
  if (scope.size)
    PLN_TRY(pln_symbol_intern(c->engine, scope, &device.scope));
  PLN_TRY(read_target(c, attr->v.s, &node, &device.target));
  return canonical(c, device, out);
}

pln_status pln_device_in_scope(pln_compilation *c, pln_symbol scope,
                               pln_device *out) {
  return intern_device(
      c, (pln_virtual_device){.type = -1, .id = -1, .scope = scope}, out);
}

/* --------------------------------------------------------------- combinations
 */

/* False if both are given and differ. */
static bool join_part(int64_t a, int64_t b, int64_t open, int64_t *out) {
  *out = a != open ? a : b;
  return a == open || b == open || a == b;
}

pln_status pln_device_join(pln_compilation *c, pln_device a, pln_device b,
                           pln_device *out) {
  const pln_virtual_device x = c->devices[a], y = c->devices[b];
  int64_t type, id, target, scope;
  *out = a;
  if (a == b || b == 0)
    return PLN_OK;
  *out = b;
  if (a == 0)
    return PLN_OK;
  *out = PLN_NO_DEVICE;
  if (!join_part(x.type, y.type, -1, &type) ||
      !join_part(x.id, y.id, -1, &id) ||
      !join_part(x.target, y.target, 0, &target) ||
      !join_part(x.scope, y.scope, 0, &scope))
    return PLN_OK;
  return canonical(c,
                   (pln_virtual_device){.type = type,
                                        .id = id,
                                        .target = (uint32_t)target,
                                        .scope = (pln_symbol)scope},
                   out);
}

pln_status pln_device_default(pln_compilation *c, pln_device a, pln_device b,
                              pln_device *out) {
  pln_virtual_device x = c->devices[a];
  const pln_virtual_device *y = &c->devices[b];
  if (x.type < 0)
    x.type = y->type;
  if (x.id < 0)
    x.id = y->id;
  if (!x.target && x.type == y->type)
    x.target = y->target;
  if (!x.scope)
    x.scope = y->scope;
  return canonical(c, x, out);
}

/* ------------------------------------------------------------------- writing
 */

/* A target being written: numbers of nodes are given out in TVM's order. */
typedef struct object_writer {
  pln_buffer *text;
  pln_status status;
  uint32_t n; /* the number of the next node */
} object_writer;

static void put(object_writer *w, const char *text) {
  if (w->status == PLN_OK)
    w->status = pln_buffer_text(w->text, text);
}

static void put_slice(object_writer *w, pln_slice text) {
  if (w->status == PLN_OK && text.size)
    w->status = pln_buffer_add(w->text, text.data, text.size);
}

static void put_number(object_writer *w, const char *before, int64_t n,
                       const char *after) {
  if (w->status == PLN_OK)
    w->status =
        pln_buffer_printf(w->text, "%s%lld%s", before, (long long)n, after);
}

/* Quotes and backslashes do not occur in targets; they are left out. */
static void put_plain(object_writer *w, pln_slice text) {
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] != '"' && text.data[i] != '\\' && text.data[i] >= ' ')
      put_slice(w, (pln_slice){text.data + i, 1});
}

static uint32_t put_string(object_writer *w, pln_slice text) {
  put(w, ", {\"type_key\": \"runtime.String\"");
  if (text.size) {
    put(w, ", \"repr_str\": \"");
    put_plain(w, text);
    put(w, "\"");
  }
  put(w, "}");
  return w->n++;
}

/* An Array or Map of the `n` nodes from `first` on; its keys were written. */
static void put_data(object_writer *w, uint32_t first, uint32_t n) {
  put(w, n ? ", \"data\": [" : "");
  for (uint32_t i = 0; i < n; i++)
    put_number(w, i ? ", " : "", first + i, "");
  put(w, n ? "]" : "");
  put(w, "}");
}

static uint32_t n_default_keys(const target_kind *kind) {
  return kind->keys[0] ? kind->keys[1] ? 2 : 1 : 0;
}

/* The parts of comma-separated text. */
static bool next_part(pln_slice text, size_t *at, pln_slice *out) {
  if (*at >= text.size)
    return false;
  const char *from = text.data + *at;
  const char *comma = memchr(from, ',', text.size - *at);
  *out = (pln_slice){from, comma ? (size_t)(comma - from) : text.size - *at};
  *at += out->size + 1;
  return true;
}

static bool are_default_keys(const target_kind *kind, pln_slice keys) {
  uint32_t n = 0;
  pln_slice part;
  for (size_t at = 0; next_part(keys, &at, &part); n++)
    if (n >= n_default_keys(kind) || !pln_slice_is(part, kind->keys[n]))
      return false;
  return n == 0 || n == n_default_keys(kind);
}

static uint32_t put_keys(object_writer *w, const target_kind *kind,
                         pln_slice keys, uint32_t defaults) {
  uint32_t array = w->n++, n = 0;
  pln_slice part;
  put(w, ", {\"type_key\": \"Array\"");
  if (are_default_keys(kind, keys)) {
    put_data(w, defaults, n_default_keys(kind));
    return array;
  }
  for (size_t at = 0; next_part(keys, &at, &part);)
    n++;
  put_data(w, w->n, n);
  for (size_t at = 0; next_part(keys, &at, &part);)
    put_string(w, part);
  return array;
}

static bool is_attribute(pln_slice name) {
  return !pln_slice_is(name, "keys") && !pln_slice_is(name, "host") &&
         !pln_slice_is(name, "tag");
}

static bool next_attribute(pln_slice text, size_t *at, pln_slice *name,
                           pln_slice *value) {
  pln_slice word;
  while (pln_target_next_word(text, at, &word))
    if (pln_target_read_attr(word, name, value) && is_attribute(*name))
      return true;
  return false;
}

static bool is_integer(pln_slice value) {
  for (size_t i = 0; i < value.size; i++)
    if (value.data[i] < '0' || value.data[i] > '9')
      return false;
  return value.size > 0 && value.size < 10;
}

static void put_attribute(object_writer *w, pln_slice value) {
  if (!is_integer(value)) {
    put_string(w, value);
    return;
  }
  put(w, ", {\"type_key\": \"IntImm\", \"attrs\": {\"dtype\": \"int32\", "
         "\"span\": 0, \"value\": \"");
  put_slice(w, value);
  put(w, "\"}}");
  w->n++;
}

static uint32_t put_attributes(object_writer *w, pln_slice text) {
  pln_slice name, value;
  uint32_t map = w->n++, n = 0;
  put(w, ", {\"type_key\": \"Map\"");
  for (size_t at = 0; next_attribute(text, &at, &name, &value); n++) {
    put(w, n ? ", \"" : ", \"keys\": [\"");
    put_plain(w, name);
    put(w, "\"");
  }
  put(w, n ? "]" : "");
  put_data(w, w->n, n);
  for (size_t at = 0; next_attribute(text, &at, &name, &value);)
    put_attribute(w, value);
  return map;
}

/* The nodes that targets of one text share. */
typedef struct target_parts {
  uint32_t kind, tag, keys, attrs, features;
} target_parts;

static uint32_t put_kind(object_writer *w, pln_slice name,
                         const target_kind *kind) {
  uint32_t node = w->n++, n = n_default_keys(kind);
  put_number(w,
             ", {\"type_key\": \"TargetKind\", \"attrs\": "
             "{\"default_device_type\": \"",
             kind->device_type, "\"");
  put_number(w, ", \"default_keys\": ", node + 2, "");
  put_number(w, ", \"name\": ", node + 1, "}}");
  put_string(w, name);
  w->n++;
  put(w, ", {\"type_key\": \"Array\"");
  put_data(w, w->n, n);
  for (uint32_t i = 0; i < n; i++)
    put_string(w, pln_text(kind->keys[i]));
  return node;
}

static target_parts put_parts(object_writer *w,
                              const pln_compile_device_target *t) {
  const target_kind *kind = kind_of(t->kind);
  target_parts p = {.kind = put_kind(w, t->kind, kind)};
  p.tag = put_string(w, pln_target_attr(t->text, "tag"));
  p.keys = put_keys(w, kind, pln_target_attr(t->text, "keys"), p.kind + 3);
  p.attrs = put_attributes(w, t->text);
  p.features = w->n++;
  put(w, ", {\"type_key\": \"Map\"}");
  return p;
}

/* The numbers of the parts are known once these are written, behind it. */
static void put_target(pln_buffer *out, object_writer *parts,
                       const target_parts *p, uint32_t host) {
  object_writer w = {.text = out, .status = parts->status};
  put_number(
      &w, ", {\"type_key\": \"Target\", \"attrs\": {\"attrs\": ", p->attrs, "");
  put_number(&w, ", \"features\": ", p->features, "");
  put_number(&w, ", \"host\": ", host, "");
  put_number(&w, ", \"keys\": ", p->keys, "");
  put_number(&w, ", \"kind\": ", p->kind, "");
  put_number(&w, ", \"tag\": ", p->tag, "}}");
  parts->status = w.status;
}

static void append(object_writer *w, pln_buffer *to, const pln_buffer *from) {
  if (w->status == PLN_OK && from->size)
    w->status = pln_buffer_add(to, from->data, from->size);
}

/* A target from the number w->n on; `own`: what another target of the same
 * text has written. */
static uint32_t put_whole_target(const pln_compilation *c, object_writer *w,
                                 uint32_t target, const target_parts *own);

static uint32_t put_host(const pln_compilation *c, object_writer *w,
                         const pln_compile_device_target *t,
                         const target_parts *parts) {
  const pln_compile_device_target *host = &c->targets[c->n_targets - 1];
  bool same = host->text.data == t->text.data;
  if (t->is_host)
    return 0;
  return put_whole_target(c, w, c->n_targets - 1, same ? parts : NULL);
}

/* Nests once: a host has no host. */
static uint32_t put_whole_target(const pln_compilation *c, object_writer *w,
                                 uint32_t target, const target_parts *own) {
  const pln_compile_device_target *t = &c->targets[target];
  pln_buffer rest;
  uint32_t node = w->n++;
  pln_buffer_init(&rest, c->engine);
  object_writer behind = {.text = &rest, .status = w->status, .n = w->n};
  target_parts parts = own ? *own : put_parts(&behind, t);
  uint32_t host = put_host(c, &behind, t, &parts);
  put_target(w->text, &behind, &parts, host);
  append(&behind, w->text, &rest);
  pln_buffer_free(&rest);
  w->status = behind.status;
  w->n = behind.n;
  return node;
}

/* The device comes first, but says the numbers of its target and scope. */
static void put_device(const pln_compilation *c, object_writer *w,
                       const pln_virtual_device *d) {
  pln_buffer rest;
  pln_buffer_init(&rest, c->engine);
  object_writer behind = {.text = &rest, .n = 1};
  uint32_t target =
      d->target ? put_whole_target(c, &behind, d->target - 1, NULL) : 0;
  uint32_t scope = put_string(
      &behind, d->scope ? pln_symbol_text(c->engine, d->scope) : pln_text(""));
  put_number(w,
             "[{\"type_key\": \"VirtualDevice\", \"attrs\": "
             "{\"device_type_int\": \"",
             d->type, "\"");
  put_number(w, ", \"memory_scope\": ", scope, "");
  put_number(w, ", \"target\": ", target, "");
  put_number(w, ", \"virtual_device_id\": \"", d->id, "\"}}");
  if (w->status == PLN_OK)
    w->status = behind.status;
  append(w, w->text, &rest);
  put(w, "]");
  pln_buffer_free(&rest);
}

pln_status pln_device_write(const pln_compilation *c, pln_device device,
                            pln_buffer *text, pln_attr *out) {
  object_writer w = {.text = text};
  text->size = 0;
  put_device(c, &w, &c->devices[device]);
  PLN_TRY(w.status);
  PLN_TRY(
      pln_object_build(c->engine, (pln_slice){text->data, text->size}, text));
  *out = (pln_attr){.kind = PLN_ATTR_OBJECT, .v.s = {text->data, text->size}};
  return PLN_OK;
}

const char *pln_device_describe(const pln_compilation *c, pln_device device,
                                char *text, size_t size) {
  const pln_virtual_device *d = &c->devices[device];
  pln_slice target =
      d->target ? c->targets[d->target - 1].kind : pln_text("any target");
  pln_slice scope =
      d->scope ? pln_symbol_text(c->engine, d->scope) : pln_text("");
  if (device == 0)
    (void)snprintf(text, size, "any device");
  else
    (void)snprintf(text, size, "device type %lld, id %lld (%.*s%s%.*s)",
                   (long long)d->type, (long long)d->id, (int)target.size,
                   target.data, scope.size ? ", memory " : "", (int)scope.size,
                   scope.data);
  return text;
}
