/* relay/metadata/object.c: reads TVM objects that are kept as text.
 *
 * Called by the printer of the metadata section and by its reader, which makes
 * such texts. Their source is not trusted: text that is not of this form reads
 * as a list that ends early. */

#include "ir/relay/metadata/object.h"

static void skip_space(pln_slice s, size_t *at) {
  while (*at < s.size &&
         (s.data[*at] == ' ' || s.data[*at] == '\n' || s.data[*at] == ','))
    ++*at;
}

static bool skip_object_char(pln_slice s, size_t *at, char wanted) {
  skip_space(s, at);
  if (*at >= s.size || s.data[*at] != wanted)
    return false;
  ++*at;
  return true;
}

/* Reads a string literal with its quotes; empty if there is none. */
static pln_slice read_object_string(pln_slice s, size_t *at) {
  size_t from = *at;
  if (!skip_object_char(s, at, '"'))
    return (pln_slice){NULL, 0};
  from = *at - 1;
  for (; *at < s.size && s.data[*at] != '"'; ++*at)
    *at += s.data[*at] == '\\' && *at + 1 < s.size;
  if (*at >= s.size)
    return (pln_slice){NULL, 0};
  ++*at;
  return (pln_slice){s.data + from, *at - from};
}

static pln_slice read_object_number(pln_slice s, size_t *at) {
  skip_space(s, at);
  size_t from = *at;
  while (*at < s.size && s.data[*at] >= '0' && s.data[*at] <= '9')
    ++*at;
  return (pln_slice){s.data ? s.data + from : NULL, *at - from};
}

/* Reads the text between two brackets, without them. Brackets do not nest in
 * this format. */
static pln_slice read_object_list(pln_slice s, size_t *at, char open,
                                  char close) {
  if (!skip_object_char(s, at, open))
    return (pln_slice){NULL, 0};
  size_t from = *at;
  for (; *at < s.size && s.data[*at] != close; ++*at)
    if (s.data[*at] == '"') {
      if (read_object_string(s, at).size == 0)
        return (pln_slice){NULL, 0};
      --*at;
    }
  if (*at >= s.size)
    return (pln_slice){NULL, 0};
  ++*at;
  return (pln_slice){s.data + from, *at - 1 - from};
}

static bool is_name(pln_slice quoted, const char *name) {
  return quoted.size == strlen(name) + 2 &&
         !memcmp(quoted.data + 1, name, quoted.size - 2);
}

static bool read_object_field(pln_slice s, size_t *at, pln_object_node *out) {
  pln_slice name = read_object_string(s, at);
  if (name.size == 0 || !skip_object_char(s, at, ':'))
    return false;
  if (is_name(name, "type_key")) {
    pln_slice key = read_object_string(s, at);
    if (key.size < 2)
      return false;
    out->type_key = (pln_slice){key.data + 1, key.size - 2};
  } else if (is_name(name, "repr_str")) {
    out->text = read_object_string(s, at);
  } else if (is_name(name, "keys")) {
    out->keys = read_object_list(s, at, '[', ']');
  } else if (is_name(name, "data")) {
    out->data = read_object_list(s, at, '[', ']');
  } else if (is_name(name, "attrs")) {
    out->attrs = read_object_list(s, at, '{', '}');
  } else {
    return false;
  }
  return true;
}

bool pln_object_next(pln_slice object, size_t *at, pln_object_node *out) {
  *out = (pln_object_node){.type_key = {NULL, 0}};
  if (*at == 0 && !skip_object_char(object, at, '['))
    return false;
  if (!skip_object_char(object, at, '{'))
    return false;
  while (!skip_object_char(object, at, '}'))
    if (!read_object_field(object, at, out))
      return false;
  return out->type_key.data != NULL;
}

bool pln_object_entry(pln_slice list, size_t *at, pln_slice *name,
                      pln_slice *value) {
  *name = (pln_slice){NULL, 0};
  *value = read_object_string(list, at);
  if (value->size == 0)
    *value = read_object_number(list, at);
  else if (skip_object_char(list, at, ':')) {
    *name = *value;
    *value = read_object_string(list, at);
    if (value->size == 0)
      *value = read_object_number(list, at);
  }
  return value->size > 0;
}

/* ---------------------------------------------------------- TVM's references
 */

/* For each type key of objects that text can hold: the fields that refer to
 * other objects. */
static const struct {
  const char *type_key, *fields;
} references[] = {
    {"VirtualDevice", " memory_scope target "},
    {"Target", " attrs features host keys kind tag "},
    {"TargetKind", " default_keys name "},
    {"TargetTag", " name "},
    {"relay.Id", " name_hint "},
    {"relay.Var", " _checked_type_ span type_annotation vid virtual_device_ "},
    {"relay.Constant", " _checked_type_ span virtual_device_ "},
    {"relay.Tuple", " _checked_type_ fields span virtual_device_ "},
    {"relay.TupleGetItem", " _checked_type_ span tuple virtual_device_ "},
    {"relay.Call", " _checked_type_ args attrs op span type_args "
                   "virtual_device_ "},
    {"relay.Function", " _checked_type_ attrs body params ret_type span "
                       "type_params virtual_device_ "},
    {"relay.Let", " _checked_type_ body span value var virtual_device_ "},
    {"relay.If", " _checked_type_ cond false_branch span true_branch "
                 "virtual_device_ "},
    {"relay.TensorType", " shape span "},
    {"TensorType", " shape span "},
    {"TupleType", " fields span "},
    {"FuncType", " arg_types ret_type span type_constraints type_params "},
    {"TypeVar", " name_hint span "},
    {"GlobalTypeVar", " name_hint span "},
    {"TypeCall", " args func span "},
    {"relay.RefType", " span value "},
    {"PointerType", " element_type span "},
    {"IncompleteType", " span "},
    {"GlobalVar", " _checked_type_ name_hint span virtual_device_ "},
    {"Span", " source_name "},
    {"SourceName", " name "},
    {"DictAttrs", " __dict__ "},
    {"IntImm", " span "},
    {"FloatImm", " span "},
    {"tir.StringImm", " span value "},
    {"tir.Any", " span "},
    {"tir.Var", " name span type_annotation "},
    {"tir.SizeVar", " name span type_annotation "},
    {"tir.Add", " a b span "},
    {"tir.Sub", " a b span "},
    {"tir.Mul", " a b span "},
    {"tir.Div", " a b span "},
    {"tir.Mod", " a b span "},
    {"tir.FloorDiv", " a b span "},
    {"tir.FloorMod", " a b span "},
    {"tir.Min", " a b span "},
    {"tir.Max", " a b span "},
    {"tir.Cast", " span value "},
    {"ConstantMemoryPools", " pools "},
    {"WorkspaceMemoryPools", " pools "},
};

static bool has_word(const char *words, pln_slice word) {
  size_t n = word.size;
  for (const char *at = words; *at; at += strcspn(at + 1, " ") + 1)
    if (at[0] == ' ' && strlen(at + 1) > n && at[1 + n] == ' ' && n > 0 &&
        !memcmp(at + 1, word.data, n))
      return true;
  return false;
}

bool pln_object_refers(pln_slice type_key, pln_slice field) {
  for (size_t i = 0; i < PLN_COUNT(references); i++)
    if (pln_slice_is(type_key, references[i].type_key))
      return has_word(references[i].fields, field);
  return false;
}
