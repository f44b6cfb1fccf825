/* relay/print/attrs.c: prints attributes, `name=value, name=value`.
 *
 * Called by the printer for calls and functions. A call of a Relay operator has
 * Relay's attributes (relay/attr_conversion.c). Extensions beyond Relay: nested
 * dictionaries, bytes, references and types. */

#include "ir/op_info.h"
#include "ir/relay/metadata/references.h"

/* Dictionaries nest as a file says; deeper ones are cut short. */
enum { MAX_DEPTH = 16 };

/* A double that no float32 holds keeps all its digits. */
static void put_double(pln_writer *w, double value) {
  bool narrow = value != value || (double)(float)value == value;
  pln_put_float(w, value, narrow ? PLN_FLOAT32 : PLN_FLOAT64);
}

/* The operand that is meant; where the schema says so, its number alone. */
static void put_function(pln_writer *w, int64_t operand) {
  pln_put_text(w, w->schema_kinds ? "" : "function(");
  pln_put_int(w, operand);
  pln_put_text(w, w->schema_kinds ? "" : ")");
}

static void write_attr_element(pln_writer *w, const pln_attr *a, uint32_t i) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_FLOATS: put_double(w, a->v.floats[i]); break;
  case PLN_ATTR_STRINGS: pln_put_quoted(w, a->v.strings[i]); break;
  case PLN_ATTR_TENSORS: pln_put_meta_tensor(w, a->v.tensors[i]); break;
  case PLN_ATTR_TYPES: pln_put_type(w, a->v.types[i]); break;
  case PLN_ATTR_GRAPHS: put_function(w, a->v.ints[i]); break;
  default: pln_put_int(w, a->v.ints[i]); break;
  }
}

static void write_attr_list(pln_writer *w, const pln_attr *a) {
  pln_put_text(w, "[");
  for (uint32_t i = 0; i < a->count && !pln_writer_done(w); i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    write_attr_element(w, a, i);
  }
  pln_put_text(w, "]");
}

static void put_entries(pln_writer *w, pln_attrs attrs, int depth);

static void put_call(pln_writer *w, const char *function, pln_slice text) {
  pln_put_text(w, function);
  pln_put_text(w, "(");
  pln_put_quoted(w, text);
  pln_put_text(w, ")");
}

/* ref_attr("name", 2): the number is AttributeProto.type. */
static void put_ref(pln_writer *w, const pln_attr *a) {
  pln_put_text(w, "ref_attr(");
  pln_put_quoted(w, pln_symbol_text(w->engine, a->v.symbol));
  if (a->onnx_type) {
    pln_put_text(w, ", ");
    pln_put_int(w, a->onnx_type);
  }
  pln_put_text(w, ")");
}

static void put_items(pln_writer *w, pln_attrs list, int depth);

static void write_attr_value(pln_writer *w, const pln_attr *a, int depth) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_BOOL: pln_put_text(w, a->v.i ? "True" : "False"); break;
  case PLN_ATTR_OBJECT: pln_put_meta_object(w, a->v.s); break;
  case PLN_ATTR_LIST:
    pln_put_text(w, "[");
    put_items(w, a->v.dict, depth + 1);
    pln_put_text(w, "]");
    break;
  case PLN_ATTR_NONE: pln_put_text(w, "None"); break;
  case PLN_ATTR_GRAPH: put_function(w, a->v.i); break;
  case PLN_ATTR_INT: pln_put_int(w, a->v.i); break;
  case PLN_ATTR_FLOAT: put_double(w, a->v.f); break;
  case PLN_ATTR_STRING: pln_put_quoted(w, a->v.s); break;
  case PLN_ATTR_TENSOR: pln_put_meta_tensor(w, a->v.tensor); break;
  case PLN_ATTR_TYPE: pln_put_type(w, a->v.type); break;
  case PLN_ATTR_REF: put_ref(w, a); break;
  case PLN_ATTR_BYTES: put_call(w, "bytes", a->v.s); break;
  case PLN_ATTR_DICT:
    pln_put_text(w, "{");
    put_entries(w, a->v.dict, depth + 1);
    pln_put_text(w, "}");
    break;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: write_attr_list(w, a); break;
  case PLN_N_ATTR_KINDS: break;
  }
}

/* As TVM prints names: words joined by dots, "relay.reshape_only". */
static bool is_dotted(pln_slice name) {
  char before = '.';
  for (size_t i = 0; i < name.size; i++) {
    char c = name.data[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool digit = c >= '0' && c <= '9';
    if (before == '.' ? !letter : !letter && !digit && c != '.')
      return false;
    before = c;
  }
  return before != '.';
}

static void put_attr_name(pln_writer *w, pln_slice name) {
  if (is_dotted(name))
    pln_put(w, name.data, name.size);
  else
    pln_put_name(w, "", name);
  pln_put_text(w, "=");
}

static void put_attr(pln_writer *w, const pln_attr *a, int depth) {
  put_attr_name(w, pln_symbol_text(w->engine, a->name));
  write_attr_value(w, a, depth);
}

void pln_put_prefixed_attr(pln_writer *w, const char *prefix,
                           const pln_attr *attr) {
  pln_buffer name;
  pln_buffer_init(&name, w->engine);
  pln_status status = pln_buffer_text(&name, prefix);
  pln_slice rest = pln_symbol_text(w->engine, attr->name);
  if (status == PLN_OK)
    status = pln_buffer_add(&name, rest.data, rest.size);
  if (status == PLN_OK)
    put_attr_name(w, (pln_slice){name.data, name.size});
  else
    w->status = w->status ? w->status : status;
  pln_buffer_free(&name);
  write_attr_value(w, attr, 0);
}

void pln_put_attr(pln_writer *w, const pln_attr *attr) {
  put_attr(w, attr, 0);
}

static void put_entries(pln_writer *w, pln_attrs attrs, int depth) {
  uint32_t n = pln_attrs_count(w->engine, attrs);
  if (depth > MAX_DEPTH) {
    pln_put_text(w, n > 0 ? "..." : "");
    return;
  }
  for (uint32_t i = 0; i < n && !pln_writer_done(w); i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    put_attr(w, pln_attrs_at(w->engine, attrs, i), depth);
  }
}

static void put_items(pln_writer *w, pln_attrs list, int depth) {
  uint32_t n = pln_attrs_count(w->engine, list);
  if (depth > MAX_DEPTH) {
    pln_put_text(w, n > 0 ? "..." : "");
    return;
  }
  for (uint32_t i = 0; i < n && !pln_writer_done(w); i++) {
    pln_put_text(w, i > 0 ? ", " : "");
    write_attr_value(w, pln_attrs_at(w->engine, list, i), depth);
  }
}

/* ----------------------------------------------------- in a schema's order */

/* The next name of "axis:int=1 axes:ints"; empty at the end. */
static pln_slice next_name(const char **schema) {
  const char *at = *schema + strspn(*schema, " ");
  pln_slice name = {at, strcspn(at, ":= ")};
  *schema = at + strcspn(at, " ");
  return name;
}

static bool is_in_schema(const char *schema, pln_slice wanted) {
  for (pln_slice name = next_name(&schema); name.size > 0;
       name = next_name(&schema))
    if (pln_slice_equal(name, wanted))
      return true;
  return false;
}

static const pln_attr *find_attr(const pln_engine *engine, pln_attrs attrs,
                                 pln_slice name) {
  char text[64];
  if (name.size >= sizeof text)
    return NULL;
  memcpy(text, name.data, name.size);
  text[name.size] = '\0';
  return pln_attrs_find(engine, attrs, text);
}

void pln_put_attrs(pln_writer *w, pln_attrs attrs, const char *schema,
                   const char *before) {
  uint32_t n = pln_attrs_count(w->engine, attrs);
  const char *at = schema ? schema : "";
  if (n == 0)
    return;
  for (pln_slice name = next_name(&at); name.size > 0; name = next_name(&at)) {
    const pln_attr *a = find_attr(w->engine, attrs, name);
    if (!a)
      continue;
    pln_put_text(w, before);
    w->schema_kinds = true;
    put_attr(w, a, 0);
    w->schema_kinds = false;
    before = ", ";
  }
  for (uint32_t i = 0; i < n && !pln_writer_done(w); i++) {
    const pln_attr *a = pln_attrs_at(w->engine, attrs, i);
    if (schema && is_in_schema(schema, pln_symbol_text(w->engine, a->name)))
      continue;
    pln_put_text(w, before);
    put_attr(w, a, 0);
    before = ", ";
  }
}

void pln_put_results(pln_writer *w, uint32_t results, const char *before) {
  pln_put_text(w, before);
  pln_put_text(w, "n_results=");
  pln_put_int(w, results);
}

/* Relay's attributes, in TVM's order; how many results when Relay's operator
 * has another number. */
static void put_relay(pln_writer *w, pln_op op, uint32_t results,
                      pln_attrs core, const char *before) {
  const pln_relay_row *row = pln_relay_of(w->engine, op);
  pln_attrs relay;
  bool expressible;
  pln_status status =
      pln_relay_write(w->engine, op, core, &relay, &expressible);
  if (status != PLN_OK) {
    w->status = w->status ? w->status : status;
    return;
  }
  uint32_t n = pln_attrs_count(w->engine, relay);
  if (row->in_meta && expressible) {
    pln_put_text(w, before);
    pln_put_meta_attrs(w, row->type_key, relay);
    before = ", ";
    n = 0;
  }
  for (uint32_t i = 0; i < n && !pln_writer_done(w); i++) {
    pln_put_text(w, i > 0 ? ", " : before);
    put_attr(w, pln_attrs_at(w->engine, relay, i), 0);
  }
  if (pln_relay_n_results(w->engine, row, 0, core) != results)
    pln_put_results(w, results, n > 0 ? ", " : before);
}

/* The core's attributes; how many results when there are several. */
static void put_core(pln_writer *w, pln_op op, uint32_t results,
                     pln_attrs attrs, const char *before) {
  pln_put_attrs(w, attrs, pln_op_row(w->engine, op)->attrs, before);
  if (results != pln_op_n_results(w->engine, op, attrs))
    pln_put_results(w, results,
                    pln_attrs_count(w->engine, attrs) > 0 ? ", " : before);
}

void pln_put_op_attrs(pln_writer *w, pln_op op, uint32_t results,
                      pln_attrs attrs, const char *before) {
  if (pln_relay_of(w->engine, op))
    put_relay(w, op, results, attrs, before);
  else
    put_core(w, op, results, attrs, before);
}

pln_status pln_print_attrs(const pln_engine *engine, pln_attrs attrs,
                           pln_write_fn write, void *ud) {
  pln_writer w;
  pln_writer_init(&w, (pln_engine *)(uintptr_t)engine, 0, write, ud);
  pln_put_attrs(&w, attrs, NULL, "");
  return pln_writer_end(&w);
}
