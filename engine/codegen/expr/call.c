/* call.c: writes calls of builtins, and of functions of other libraries.
 *
 * Called by expr.c. A builtin without a row here is refused by its name: those
 * of devices, of threads that wait for each other, of TVM's runtime. */

#include "codegen/expr/call.h"

typedef enum call_form {
  FORM_FUNCTION, /* of floats: of C's library, or a helper */
  FORM_LANES,    /* a function of this file for each lane */
  FORM_FIRST,    /* its first operand */
  FORM_BRANCH,
  FORM_OWN /* a function of this file */
} call_form;

typedef void (*own_fn)(pln_cw *w, pln_ref ref);

typedef struct call_row {
  const char *name;
  uint8_t form;
  bool safe; /* it may be evaluated although its value is not needed */
  pln_c_lane_fn lane;
  own_fn own;
} call_row;

static const pln_ref *args_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static const char *builtin_of(const pln_cw *w, pln_ref ref) {
  uint32_t builtin = w->g->nodes[ref].data;
  return builtin ? pln_builtin_row(builtin)->name : "";
}

/* ------------------------------------------------------------- lane by lane */

enum { MOST_LANE_ARGS = 4 };

static bool agrees(pln_cw *w, pln_ref ref, uint32_t lanes) {
  const pln_node *n = &w->g->nodes[ref];
  bool ok = n->count <= MOST_LANE_ARGS && n->count > 0;
  for (uint32_t i = 0; ok && i < n->count; i++)
    ok = pln_prim_lanes(w->g, args_of(w, ref)[i]) == lanes;
  if (!ok)
    pln_c_refuse(w, "operands of '%s' are not of its lanes",
                 builtin_of(w, ref));
  return ok;
}

/* The text of a chunk of a call, lane by lane. */
static pln_c_text chunk_by_lanes(pln_cw *w, pln_ref ref, pln_c_lane_fn lane,
                                 const pln_c_value *args, uint32_t first,
                                 uint32_t part, uint32_t mask) {
  uint32_t n_args = w->g->nodes[ref].count;
  pln_c_text texts[64], lane_args[MOST_LANE_ARGS];
  for (uint32_t k = 0; k < part; k++) {
    bool reads = false;
    for (uint32_t i = 0; i < n_args; i++) {
      lane_args[i] = pln_c_lane(w, &args[i], first + k);
      reads |= lane_args[i].reads;
    }
    texts[k] = lane(w, ref, lane_args);
    if (part > 1)
      texts[k] = pln_c_textf(w, PLN_C_CALL, "%s", pln_c_arg(w, texts[k]));
    texts[k].reads = reads;
  }
  return pln_c_chunk_from_lanes(w, pln_prim_dtype(w->g, ref), mask && part > 1,
                                part, texts);
}

static void emit_lanes(pln_cw *w, pln_ref ref, pln_c_lane_fn lane) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t lanes = pln_prim_lanes(w->g, ref);
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  pln_c_value args[MOST_LANE_ARGS] = {0};
  bool splat = lanes > 1, whole = pln_c_is_vector_function(w, ref);
  if (!agrees(w, ref, lanes))
    return;
  for (uint32_t i = 0; i < n->count; i++) {
    args[i] = pln_c_value_of(w, args_of(w, ref)[i]);
    splat &= args[i].form == PLN_C_SPLAT;
  }
  pln_c_value out =
      pln_c_new_value(w, dtype, lanes, splat ? PLN_C_SPLAT : PLN_C_PLAIN);
  for (uint32_t i = 0; i < n->count && lanes > 1 && !splat; i++)
    args[i] = pln_c_named(w, pln_c_plain(w, args[i]));
  uint32_t chunks = splat ? 1 : pln_c_n_chunks(w, lanes);
  out.mask = dtype == PLN_BOOL && lanes > 1 && w->width > 1 && !splat;
  for (uint32_t c = 0, first = 0; c < chunks; c++) {
    uint32_t part = splat ? 1 : pln_c_chunk_lanes(w, lanes, c);
    bool is_vector = whole && part > 1;
    pln_c_add_text(
        w, &out,
        is_vector
            ? pln_c_vector_function(w, ref, part, pln_c_text_at(w, args, c))
            : chunk_by_lanes(w, ref, lane, args, first, part, out.mask));
    first += part;
  }
  pln_c_set(w, ref, out);
}

/* vectorlow, vectorhigh, vectorcombine: lanes of the operands in a row. */
static void emit_parts(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  uint32_t lanes = pln_prim_lanes(w->g, ref), total = 0, skip = 0;
  for (uint32_t i = 0; i < n->count; i++)
    total += pln_prim_lanes(w->g, args_of(w, ref)[i]);
  pln_c_text *all = pln_arena_new(&w->arena, (total + 1) * sizeof *all);
  if (!all)
    pln_c_fail(w, pln_nomem(w->engine));
  if (!all || total < lanes) {
    pln_c_refuse(w, "'%s' of too few lanes", builtin_of(w, ref));
    return;
  }
  for (uint32_t i = 0, at = 0; i < n->count; i++) {
    pln_c_value part =
        pln_c_named(w, pln_c_plain(w, pln_c_value_of(w, args_of(w, ref)[i])));
    for (uint32_t k = 0; k < pln_prim_lanes(w->g, args_of(w, ref)[i]); k++)
      all[at++] = pln_c_lane(w, &part, k);
  }
  if (!strcmp(builtin_of(w, ref), "vectorhigh"))
    skip = pln_prim_lanes(w->g, args_of(w, ref)[0]) - lanes;
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  pln_c_value out = pln_c_new_value(w, dtype, lanes, PLN_C_PLAIN);
  out.mask = dtype == PLN_BOOL && lanes > 1 && w->width > 1;
  for (uint32_t i = 0, at = 0; at < lanes; i++) {
    uint32_t part = pln_c_chunk_lanes(w, lanes, i);
    pln_c_add_text(w, &out,
                   pln_c_chunk_from_lanes(w, dtype, out.mask && part > 1, part,
                                          all + skip + at));
    at += part;
  }
  pln_c_set(w, ref, out);
}

/* ---------------------------------------------------------------- pointers */

static void set_handle(pln_cw *w, pln_ref ref, pln_c_text text) {
  pln_c_set(w, ref, pln_c_scalar(w, PLN_DTYPE_NONE, text));
}

static void emit_address_of(pln_cw *w, pln_ref ref) {
  set_handle(w, ref, pln_c_address(w, args_of(w, ref)[0]));
}

/* tvm_access_ptr(type, data, offset, extent, rw). */
static void emit_access_ptr(pln_cw *w, pln_ref ref) {
  const pln_ref *o = args_of(w, ref);
  pln_dtype dtype = pln_prim_dtype(w->g, o[0]);
  pln_c_value data = pln_c_value_of(w, o[1]), at = pln_c_value_of(w, o[2]);
  if (!pln_c_has_dtype(dtype) || data.dtype) {
    pln_c_refuse(w, "tvm_access_ptr without a dtype");
    return;
  }
  at = pln_c_offset(w, PLN_PRIM_MUL, at,
                    pln_c_int_value(w, PLN_INT64, pln_prim_lanes(w->g, o[0])));
  set_handle(w, ref,
             pln_c_textf(w, PLN_C_COMPOUND, "(void *)((%s *)%s + %s)",
                         pln_c_memory_name(dtype),
                         pln_c_arg(w, pln_c_text_at(w, &data, 0)),
                         pln_c_arg(w, pln_c_text_at(w, &at, 0))));
}

static void emit_isnullptr(pln_cw *w, pln_ref ref) {
  pln_c_value value = pln_c_value_of(w, args_of(w, ref)[0]);
  pln_c_set(
      w, ref,
      pln_c_scalar(w, PLN_BOOL,
                   pln_c_textf(w, PLN_C_COMPOUND, "%s == 0",
                               pln_c_arg(w, pln_c_text_at(w, &value, 0)))));
}

static void emit_nothing(pln_cw *w, pln_ref ref) {
  pln_c_set(w, ref, pln_c_int_value(w, PLN_INT32, 0));
}

/* prefetch(address, 1 for a write, locality from 0 to 3, 1 for data): what says
 * otherwise is left out, as it has no effect. */
static bool is_prefetch_of_data(const pln_cw *w, pln_ref ref) {
  const pln_ref *o = args_of(w, ref);
  static const uint64_t most[] = {1, 3, 1};
  if (w->g->nodes[ref].count != 4 ||
      pln_prim_dtype(w->g, o[0]) != PLN_DTYPE_NONE)
    return false;
  for (uint32_t i = 0; i < PLN_COUNT(most); i++) {
    const pln_node *n = &w->g->nodes[o[1 + i]];
    if (n->kind != PLN_INT_IMM || (uint64_t)pln_imm_bits(n) > most[i])
      return false;
  }
  return pln_imm_bits(&w->g->nodes[o[3]]) == 1;
}

static void emit_prefetch(pln_cw *w, pln_ref ref) {
  const pln_ref *o = args_of(w, ref);
  if (is_prefetch_of_data(w, ref)) {
    pln_c_value address = pln_c_value_of(w, o[0]);
    pln_c_use(w, PLN_C_HELPER_PREFETCH, PLN_C_F32, 1);
    pln_c_line(w, "pl_prefetch(%s, %d, %d);",
               pln_c_arg(w, pln_c_text_at(w, &address, 0)),
               (int)pln_imm_bits(&w->g->nodes[o[1]]),
               (int)pln_imm_bits(&w->g->nodes[o[2]]));
  }
  emit_nothing(w, ref);
}

static void emit_throw(pln_cw *w, pln_ref ref) {
  pln_c_line(w, "return %d;", PLN_C_THROW);
  emit_nothing(w, ref);
}

static void emit_return(pln_cw *w, pln_ref ref) {
  if (w->region.outer)
    pln_c_refuse(w, "a return from inside of a parallel loop");
  pln_c_line(w, "return %d;", PLN_C_OK);
  emit_nothing(w, ref);
}

static void emit_assume(pln_cw *w, pln_ref ref) {
  pln_c_set(w, ref, pln_c_int_value(w, PLN_BOOL, 1));
}

/* --------------------------------------------------------------- externals */

/* "T name(T, T);" for the unit, once. */
static void declare_extern(pln_cw *w, pln_ref ref, pln_slice name,
                           const char *result) {
  const pln_node *n = &w->g->nodes[ref];
  pln_c_text list = pln_c_textf(w, PLN_C_NAME, n->count > 1 ? "" : "void");
  pln_symbol symbol = w->g->nodes[args_of(w, ref)[0]].data, text;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_dtype dtype = pln_prim_dtype(w->g, args_of(w, ref)[i]);
    if (dtype ? !pln_c_has_dtype(dtype) : false)
      pln_c_refuse(w, "an argument of '%s' of dtype %s", name.data,
                   pln_dtype_name(dtype));
    list = pln_c_textf(w, PLN_C_NAME, "%s%s%s", list.data, i > 1 ? ", " : "",
                       pln_c_type_name(dtype));
  }
  const char *line = pln_c_textf(w, PLN_C_NAME, "extern %s%s%s(%s);\n", result,
                                 result[strlen(result) - 1] == '*' ? "" : " ",
                                 name.data, list.data)
                         .data;
  if (w->status != PLN_OK)
    return;
  pln_c_fail(w, pln_symbol_intern(w->engine, pln_text(line), &text));
  uint32_t known = pln_idmap_get(w->externs, symbol);
  if (w->status != PLN_OK || known == text)
    return;
  if (known)
    pln_c_refuse(w, "external function '%s' is called with other types before",
                 name.data);
  pln_c_fail(w, pln_idmap_set(w->externs, symbol, text));
  if (w->status == PLN_OK)
    pln_c_fail(w, pln_buffer_text(&w->declarations, line));
}

static bool is_word(pln_slice name) {
  bool ok = name.size > 0 && !(name.data[0] >= '0' && name.data[0] <= '9');
  for (size_t i = 0; i < name.size; i++) {
    char c = name.data[i];
    ok &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          (c >= '0' && c <= '9') || c == '_';
  }
  return ok;
}

static bool extern_name(pln_cw *w, pln_ref ref, pln_slice *name) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_node *callee = n->count ? &w->g->nodes[args_of(w, ref)[0]] : NULL;
  *name = callee && callee->kind == PLN_STRING_IMM
              ? pln_symbol_text(w->engine, callee->data)
              : pln_text("");
  if (is_word(*name))
    return true;
  pln_c_refuse(w, "a call of '%s' without a name that C has",
               builtin_of(w, ref));
  return false;
}

/* A function of C's library by its name, such as expf. */
static bool library_call(pln_cw *w, pln_ref ref, pln_slice name) {
  const pln_node *n = &w->g->nodes[ref];
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  pln_c_text args[2];
  uint32_t wanted;
  if (!pln_c_is_function(name, &wanted) && name.size > 1 &&
      name.data[name.size - 1] == 'f')
    name.size--;
  if (!pln_c_is_function(name, &wanted) || !pln_c_is_float(dtype) ||
      n->count - 1 != wanted || pln_prim_lanes(w->g, ref) != 1)
    return false;
  for (uint32_t i = 0; i < wanted; i++) {
    pln_c_value value = pln_c_value_of(w, args_of(w, ref)[1 + i]);
    args[i] = pln_c_text_at(w, &value, 0);
  }
  pln_c_set(w, ref,
            pln_c_scalar(w, dtype,
                         pln_c_call_function(w, name, dtype, wanted, args)));
  return true;
}

static void emit_extern(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  pln_dtype dtype = pln_prim_dtype(w->g, ref);
  bool nothing = pln_type_get_kind(w->engine, n->type) == PLN_TYPE_PRIM &&
                 dtype == PLN_DTYPE_NONE;
  pln_slice name;
  if (!extern_name(w, ref, &name) || library_call(w, ref, name))
    return;
  const pln_c_callee *callee =
      pln_c_find_callee(w, w->g->nodes[args_of(w, ref)[0]].data);
  if (pln_c_is_reserved(name.data))
    pln_c_refuse(w, "external function '%s' has a name that is taken",
                 name.data);
  if (!callee)
    declare_extern(w, ref, name, nothing ? "void" : pln_c_type_name(dtype));
  pln_c_text list = pln_c_textf(w, PLN_C_NAME, "%s", "");
  for (uint32_t i = 1; i < n->count; i++) {
    pln_c_value arg = pln_c_value_of(w, args_of(w, ref)[i]);
    if (arg.lanes != 1)
      pln_c_refuse(w, "external function '%s' takes a vector", name.data);
    list = pln_c_textf(w, PLN_C_NAME, "%s%s%s%s", list.data, i > 1 ? ", " : "",
                       arg.dtype ? "" : "(void *)",
                       pln_c_arg(w, pln_c_text_at(w, &arg, 0)));
  }
  if (callee) {
    pln_c_call_callee(w, callee, n->count - 1, list.data);
    pln_c_set(w, ref, pln_c_int_value(w, dtype, 0));
    return;
  }
  pln_c_text call = pln_c_textf(w, PLN_C_CALL, "%s(%s)", name.data, list.data);
  if (nothing) {
    pln_c_line(w, "%s;", call.data);
    emit_nothing(w, ref);
    return;
  }
  pln_c_set(
      w, ref,
      pln_c_scalar(w, dtype, pln_c_name(w, pln_c_type_name(dtype), call)));
}

/* ------------------------------------------------------------------- table */

static const call_row rows[] = {
    {"ldexp", FORM_LANES, false, pln_c_ldexp_lane, NULL},
    {"fma", FORM_LANES, true, pln_c_fma_lane, NULL},
    {"isnan", FORM_LANES, true, pln_c_test_lane, NULL},
    {"isinf", FORM_LANES, true, pln_c_test_lane, NULL},
    {"isfinite", FORM_LANES, true, pln_c_test_lane, NULL},
    {"popcount", FORM_LANES, true, pln_c_count_lane, NULL},
    {"clz", FORM_LANES, true, pln_c_count_lane, NULL},
    {"bitwise_and", FORM_LANES, true, pln_c_bitwise_lane, NULL},
    {"bitwise_or", FORM_LANES, true, pln_c_bitwise_lane, NULL},
    {"bitwise_xor", FORM_LANES, true, pln_c_bitwise_lane, NULL},
    {"bitwise_not", FORM_LANES, true, pln_c_bitwise_lane, NULL},
    {"shift_left", FORM_LANES, true, pln_c_shift_lane, NULL},
    {"shift_right", FORM_LANES, true, pln_c_shift_lane, NULL},
    {"large_uint_imm", FORM_LANES, true, pln_c_large_lane, NULL},
    {"q_multiply_shift", FORM_LANES, false, pln_c_q_lane, NULL},
    {"reinterpret", FORM_LANES, true, pln_c_reinterpret_lane, NULL},
    {"vectorhigh", FORM_OWN, false, NULL, emit_parts},
    {"vectorlow", FORM_OWN, false, NULL, emit_parts},
    {"vectorcombine", FORM_OWN, false, NULL, emit_parts},
    {"type_annotation", FORM_OWN, false, NULL, emit_nothing},
    {"likely", FORM_FIRST, true, NULL, NULL},
    {"tvm_thread_invariant", FORM_FIRST, true, NULL, NULL},
    {"if_then_else", FORM_BRANCH, true, NULL, NULL},
    {"address_of", FORM_OWN, false, NULL, emit_address_of},
    {"tvm_access_ptr", FORM_OWN, false, NULL, emit_access_ptr},
    {"isnullptr", FORM_OWN, false, NULL, emit_isnullptr},
    {"tvm_throw_last_error", FORM_OWN, false, NULL, emit_throw},
    {"ret", FORM_OWN, false, NULL, emit_return},
    {"assume", FORM_OWN, false, NULL, emit_assume},
    {"prefetch", FORM_OWN, false, NULL, emit_prefetch},
    {"start_profile_intrinsic", FORM_OWN, false, NULL, emit_nothing},
    {"end_profile_intrinsic", FORM_OWN, false, NULL, emit_nothing},
    {"call_extern", FORM_OWN, false, NULL, emit_extern},
    {"call_pure_extern", FORM_OWN, false, NULL, emit_extern}};

static const call_row *find_row(const pln_node *n) {
  static const call_row function = {"", FORM_FUNCTION, true,
                                    pln_c_function_lane, NULL};
  const char *name = n->data ? pln_builtin_row(n->data)->name : "";
  uint32_t n_args;
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (!strcmp(name, rows[i].name))
      return &rows[i];
  return pln_c_is_function(pln_text(name), &n_args) ? &function : NULL;
}

bool pln_c_call_is_safe(const pln_node *n) {
  const call_row *row = find_row(n);
  return row && row->safe;
}

static void refuse_call(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  if (n->data) {
    pln_c_refuse(w, "builtin '%s' is not written as C", builtin_of(w, ref));
    return;
  }
  pln_symbol name = w->g->nodes[args_of(w, ref)[0]].data;
  pln_c_refuse(w, "the call of function '%s' is not written as C",
               pln_symbol_text(w->engine, name).data);
}

/* The memory of a function of the unit is measured before its arguments are
 * written, which are not known where that is. */
static void size_callee(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_node *name = n->count ? &w->g->nodes[args_of(w, ref)[0]] : NULL;
  const pln_c_callee *callee = NULL;
  if (name && name->kind == PLN_STRING_IMM)
    callee = pln_c_find_callee(w, name->data);
  if (callee)
    pln_c_size_callee(w, callee, ref);
}

static void push_arguments(pln_cw *w, pln_ref ref, const call_row *row) {
  const pln_node *n = &w->g->nodes[ref];
  const pln_ref *o = args_of(w, ref);
  bool is_extern = row->own == emit_extern;
  if (is_extern)
    size_callee(w, ref);
  if (row->own == emit_address_of) {
    if (n->count == 1 && w->g->nodes[o[0]].kind == PLN_BUFFER_LOAD)
      pln_c_push_access(w, o[0], 1);
    else
      pln_c_refuse(w, "address_of of what is no element");
  } else if (row->own == emit_access_ptr) {
    pln_c_push_exprs(w, 2, o + 1);
  } else if (row->own == emit_prefetch) {
    if (is_prefetch_of_data(w, ref))
      pln_c_push_exprs(w, 1, o);
  } else if (row->own != emit_nothing && row->own != emit_return &&
             row->own != emit_assume) {
    pln_c_push_exprs(w, n->count - (is_extern && n->count > 0), o + is_extern);
  }
}

void pln_c_visit_call(pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  const call_row *row = find_row(n);
  int32_t args = n->data ? pln_builtin_row(n->data)->args : 0;
  if (!row) {
    refuse_call(w, ref);
    return;
  }
  if (args >= 0 && (uint32_t)args != n->count) {
    pln_c_refuse(w, "builtin '%s' takes %d arguments, not %u",
                 builtin_of(w, ref), (int)args, n->count);
    return;
  }
  if (row->form == FORM_BRANCH &&
      pln_prim_lanes(w->g, args_of(w, ref)[0]) == 1) {
    pln_c_visit_branch(w, ref);
    return;
  }
  if (row->form == FORM_BRANCH && pln_c_is_masked(w, ref)) {
    pln_c_visit_masked(w, ref);
    return;
  }
  pln_c_push(w, (pln_c_task){.what = PLN_C_EMIT, .ref = ref});
  push_arguments(w, ref, row);
}

void pln_c_emit_call(pln_cw *w, pln_ref ref) {
  const call_row *row = find_row(&w->g->nodes[ref]);
  switch ((call_form)row->form) {
  case FORM_FUNCTION:
  case FORM_LANES: emit_lanes(w, ref, row->lane); break;
  case FORM_FIRST:
    pln_c_set(w, ref, pln_c_value_of(w, args_of(w, ref)[0]));
    break;
  case FORM_BRANCH: pln_c_select(w, ref, args_of(w, ref)); break;
  case FORM_OWN: row->own(w, ref);
  }
}
