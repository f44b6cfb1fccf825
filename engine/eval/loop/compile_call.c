/* compile_call.c: translates calls of builtins, and of functions of the host.
 *
 * Called by compile_expr.c. A builtin without a value here is refused by its
 * name: those of devices, of threads that wait for each other, of the runtime's
 * structures. */

#include "eval/loop/number.h"
#include "eval/loop/translate.h"

/* How a builtin is translated. */
typedef enum call_form {
  FORM_NONE,
  FORM_FUNCTION, /* one or two floats: pln_loop_functions */
  FORM_BITS,     /* one instruction of integers, then wrapped */
  FORM_TEST,     /* an instruction for F32 and one for F64; 0 of integers */
  FORM_FIRST,    /* its first operand */
  FORM_OWN,      /* a function of this file */
  FORM_BRANCH,
  FORM_HOST, /* an extern: its name, then arguments */
  FORM_BARRIER
} call_form;

typedef pln_status (*emit_fn)(pln_translation *t, pln_ref ref);

typedef struct call_row {
  const char *name;
  uint8_t form;
  uint16_t op;
  emit_fn emit;
} call_row;

static const pln_ref *args_of(const pln_translation *t, pln_ref ref) {
  return pln_operands(t->g, &t->g->nodes[ref]);
}

static int32_t arg_cell(const pln_translation *t, pln_ref ref, uint32_t i) {
  return pln_loop_cell_of(t, args_of(t, ref)[i]);
}

/* An instruction whose result is the call's value. */
static pln_status call_value(pln_translation *t, pln_ref ref,
                             pln_loop_instr in) {
  uint32_t lanes = pln_prim_lanes(t->g, ref);
  PLN_TRY(pln_loop_new_cells(t, lanes, &in.to));
  in.lanes = lanes;
  PLN_TRY(pln_loop_emit(t, ref, in));
  return pln_loop_set(t, ref, in.to);
}

static pln_status normal_value(pln_translation *t, pln_ref ref,
                               pln_loop_instr in) {
  PLN_TRY(call_value(t, ref, in));
  return pln_loop_normalise(t, ref, pln_prim_dtype(t->g, ref),
                            pln_prim_lanes(t->g, ref),
                            pln_loop_cell_of(t, ref));
}

static const char *builtin_of(const pln_translation *t, pln_ref ref) {
  return pln_builtin_row(t->g->nodes[ref].data)->name;
}

static pln_status refuse_dtype(pln_translation *t, pln_ref ref) {
  return pln_loop_refuse(
      t, "builtin '%s' has no value of dtype %s", builtin_of(t, ref),
      pln_dtype_name(pln_prim_dtype(t->g, args_of(t, ref)[0])));
}

/* --------------------------------------------------------------- functions */

/* floor, ceil and others leave integers as they are; fabs does not. */
static pln_status integer_function(pln_translation *t, pln_ref ref,
                                   pln_slice name) {
  static const char *const same[] = {"floor", "ceil", "round", "nearbyint",
                                     "trunc"};
  if (pln_slice_is(name, "fabs"))
    return normal_value(
        t, ref,
        (pln_loop_instr){.op = PLN_LOOP_ABS_I64, .a = arg_cell(t, ref, 0)});
  for (size_t i = 0; i < PLN_COUNT(same); i++)
    if (pln_slice_is(name, same[i]))
      return pln_loop_set(t, ref, arg_cell(t, ref, 0));
  return refuse_dtype(t, ref);
}

static pln_status emit_function(pln_translation *t, pln_ref ref, pln_slice name,
                                uint32_t first) {
  int32_t one = pln_loop_find_function(name);
  int32_t two = pln_loop_find_function2(name);
  uint32_t kind = pln_loop_class(pln_prim_dtype(t->g, ref));
  if (kind < 3)
    return integer_function(t, ref, name);
  pln_loop_instr in = {.aux = (uint16_t)(one >= 0 ? one : two),
                       .a = arg_cell(t, ref, first)};
  if (one >= 0) {
    in.op = kind == 3 ? PLN_LOOP_FUNCTION_F32 : PLN_LOOP_FUNCTION_F64;
  } else {
    in.op = kind == 3 ? PLN_LOOP_FUNCTION2_F32 : PLN_LOOP_FUNCTION2_F64;
    in.b = arg_cell(t, ref, first + 1);
  }
  return normal_value(t, ref, in);
}

/* x * 2^y; y is a float or an integer. */
static pln_status emit_ldexp(pln_translation *t, pln_ref ref) {
  const pln_ref *o = args_of(t, ref);
  uint32_t kind = pln_loop_class(pln_prim_dtype(t->g, ref));
  pln_dtype power = pln_prim_dtype(t->g, o[1]);
  int32_t y = pln_loop_cell_of(t, o[1]), exponent, factor;
  uint32_t lanes = pln_prim_lanes(t->g, ref);
  if (kind < 3)
    return refuse_dtype(t, ref);
  if (pln_loop_class(power) < 3) {
    PLN_TRY(pln_loop_new_cells(t, lanes, &exponent));
    PLN_TRY(
        pln_loop_emit(t, ref,
                      (pln_loop_instr){.op = kind == 3 ? PLN_LOOP_I64_TO_F32
                                                       : PLN_LOOP_I64_TO_F64,
                                       .lanes = lanes,
                                       .to = exponent,
                                       .a = y}));
    y = exponent;
  }
  PLN_TRY(pln_loop_new_cells(t, lanes, &factor));
  PLN_TRY(pln_loop_emit(
      t, ref,
      (pln_loop_instr){
          .op = kind == 3 ? PLN_LOOP_FUNCTION_F32 : PLN_LOOP_FUNCTION_F64,
          .aux = (uint16_t)pln_loop_find_function(pln_text("exp2")),
          .lanes = lanes,
          .to = factor,
          .a = y}));
  return normal_value(
      t, ref,
      (pln_loop_instr){.op = kind == 3 ? PLN_LOOP_MUL_F32 : PLN_LOOP_MUL_F64,
                       .a = pln_loop_cell_of(t, o[0]),
                       .b = factor});
}

static pln_status emit_fma(pln_translation *t, pln_ref ref) {
  uint32_t kind = pln_loop_class(pln_prim_dtype(t->g, ref));
  if (kind < 3)
    return refuse_dtype(t, ref);
  return normal_value(
      t, ref,
      (pln_loop_instr){.op = kind == 3 ? PLN_LOOP_FMA_F32 : PLN_LOOP_FMA_F64,
                       .a = arg_cell(t, ref, 0),
                       .b = arg_cell(t, ref, 1),
                       .c = arg_cell(t, ref, 2)});
}

/* isnan and its like: `op` is for F32, `op` + 1 for F64. */
static pln_status emit_test(pln_translation *t, pln_ref ref, uint16_t op) {
  uint32_t kind = pln_loop_class(pln_prim_dtype(t->g, args_of(t, ref)[0]));
  int32_t value;
  if (kind >= 3)
    return call_value(t, ref,
                      (pln_loop_instr){.op = (uint16_t)(op + (kind == 4)),
                                       .a = arg_cell(t, ref, 0)});
  PLN_TRY(pln_loop_integer(t, op == PLN_LOOP_ISFINITE_F32, &value));
  return call_value(t, ref,
                    (pln_loop_instr){.op = PLN_LOOP_BROADCAST, .a = value});
}

/* -------------------------------------------------------------------- bits */

static pln_status emit_bits(pln_translation *t, pln_ref ref, uint16_t op) {
  pln_dtype dtype = pln_prim_dtype(t->g, args_of(t, ref)[0]);
  uint32_t n = t->g->nodes[ref].count;
  if (pln_loop_class(dtype) > 2 || !dtype)
    return refuse_dtype(t, ref);
  pln_loop_instr in = {.op = op,
                       .aux = (uint16_t)dtype,
                       .a = arg_cell(t, ref, 0),
                       .b = n > 1 ? arg_cell(t, ref, 1) : 0};
  PLN_TRY(normal_value(t, ref, in));
  if (op != PLN_LOOP_SHIFT_LEFT || dtype != PLN_INT32)
    return PLN_OK;
  int32_t cell = pln_loop_cell_of(t, ref);
  return pln_loop_emit(t, ref,
                       (pln_loop_instr){.op = PLN_LOOP_WRAP,
                                        .aux = (uint16_t)dtype,
                                        .lanes = pln_prim_lanes(t->g, ref),
                                        .to = cell,
                                        .a = cell});
}

static pln_status emit_shift_right(pln_translation *t, pln_ref ref) {
  bool is_u64 = pln_prim_dtype(t->g, ref) == PLN_UINT64;
  return emit_bits(
      t, ref, is_u64 ? PLN_LOOP_SHIFT_RIGHT_U64 : PLN_LOOP_SHIFT_RIGHT_I64);
}

static pln_status emit_reinterpret(pln_translation *t, pln_ref ref) {
  pln_ref operand = args_of(t, ref)[0];
  pln_dtype from = pln_prim_dtype(t->g, operand),
            to = pln_prim_dtype(t->g, ref);
  const pln_node *n = &t->g->nodes[operand];
  if (!to && n->kind == PLN_INT_IMM && pln_imm_bits(n) == 0)
    return pln_loop_set(t, ref, t->zero); /* the null pointer */
  if (!from || !to)
    return pln_loop_refuse(t, "a handle is not reinterpreted as a number");
  if (pln_dtype_bits(from) != pln_dtype_bits(to) ||
      pln_prim_lanes(t->g, operand) != pln_prim_lanes(t->g, ref))
    return pln_loop_refuse(t, "reinterpret: %s and %s differ in size",
                           pln_dtype_name(from), pln_dtype_name(to));
  return call_value(t, ref,
                    (pln_loop_instr){.op = PLN_LOOP_REINTERPRET,
                                     .aux = (uint16_t)(from * 64 + to),
                                     .a = arg_cell(t, ref, 0)});
}

static pln_status copy_lanes(pln_translation *t, pln_ref ref, int32_t from,
                             uint32_t lanes, int32_t *to) {
  PLN_TRY(pln_loop_new_cells(t, lanes, to));
  return pln_loop_emit(
      t, ref,
      (pln_loop_instr){
          .op = PLN_LOOP_COPY, .lanes = lanes, .to = *to, .a = from});
}

/* vectorlow, vectorhigh: one half; vectorcombine: two vectors in a row. */
static pln_status emit_part(pln_translation *t, pln_ref ref) {
  uint32_t lanes = pln_prim_lanes(t->g, ref);
  uint32_t of = pln_prim_lanes(t->g, args_of(t, ref)[0]);
  bool high = !strcmp(builtin_of(t, ref), "vectorhigh");
  if (lanes > of)
    return pln_loop_refuse(t, "half of a vector with too many lanes");
  return pln_loop_set(t, ref,
                      arg_cell(t, ref, 0) + (high ? (int32_t)(of - lanes) : 0));
}

static pln_status emit_combine(pln_translation *t, pln_ref ref) {
  const pln_ref *o = args_of(t, ref);
  uint32_t n = t->g->nodes[ref].count, total = 0;
  int32_t first = 0, part;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(copy_lanes(t, ref, pln_loop_cell_of(t, o[i]),
                       pln_prim_lanes(t->g, o[i]), &part));
    first = i ? first : part;
    total += pln_prim_lanes(t->g, o[i]);
  }
  if (total < pln_prim_lanes(t->g, ref))
    return pln_loop_refuse(t, "vectorcombine of too few lanes");
  return pln_loop_set(t, ref, first);
}

static pln_status emit_q_multiply_shift(pln_translation *t, pln_ref ref) {
  uint32_t lanes = pln_prim_lanes(t->g, ref);
  int32_t q, s;
  for (uint32_t i = 0; i < 4; i++)
    if (pln_prim_dtype(t->g, args_of(t, ref)[i]) != PLN_INT32 ||
        pln_prim_lanes(t->g, args_of(t, ref)[i]) != lanes)
      return refuse_dtype(t, ref);
  PLN_TRY(copy_lanes(t, ref, arg_cell(t, ref, 2), lanes, &q));
  PLN_TRY(copy_lanes(t, ref, arg_cell(t, ref, 3), lanes, &s));
  return call_value(t, ref,
                    (pln_loop_instr){.op = PLN_LOOP_Q_MULTIPLY_SHIFT,
                                     .a = arg_cell(t, ref, 0),
                                     .b = arg_cell(t, ref, 1),
                                     .c = q});
}

/* ---------------------------------------------------------------- pointers */

static pln_status emit_address_of(pln_translation *t, pln_ref ref) {
  pln_loop_access at;
  pln_ref load = args_of(t, ref)[0];
  if (t->g->nodes[load].kind != PLN_BUFFER_LOAD)
    return pln_loop_refuse(t, "address_of of what is no element");
  PLN_TRY(pln_loop_emit_access(t, load, 1, &at));
  return call_value(t, ref,
                    (pln_loop_instr){.op = PLN_LOOP_ADDRESS,
                                     .aux = (uint16_t)at.dtype,
                                     .a = at.handle,
                                     .b = at.index});
}

/* tvm_access_ptr(type, data, offset, extent, rw). */
static pln_status emit_access_ptr(pln_translation *t, pln_ref ref) {
  const pln_ref *o = args_of(t, ref);
  pln_dtype dtype = pln_prim_dtype(t->g, o[0]);
  if (!dtype || pln_prim_dtype(t->g, o[1]))
    return pln_loop_refuse(t, "tvm_access_ptr without a dtype");
  PLN_TRY(call_value(t, ref,
                     (pln_loop_instr){.op = PLN_LOOP_ADDRESS,
                                      .aux = (uint16_t)dtype,
                                      .a = arg_cell(t, ref, 1),
                                      .b = arg_cell(t, ref, 2)}));
  t->p->code[t->p->n_code - 1].lanes = pln_prim_lanes(t->g, o[0]);
  return PLN_OK;
}

static pln_status emit_isnullptr(pln_translation *t, pln_ref ref) {
  return call_value(t, ref,
                    (pln_loop_instr){.op = PLN_LOOP_EQ_I64,
                                     .a = arg_cell(t, ref, 0),
                                     .b = t->zero});
}

/* TVMBackendAllocWorkspace(device type, device, bytes, code, bits) */
static pln_status emit_workspace(pln_translation *t, pln_ref ref) {
  int32_t handle;
  PLN_TRY(pln_loop_emit_allocate(t, ref, PLN_UINT8, 1, arg_cell(t, ref, 2),
                                 &handle));
  return pln_loop_set(t, ref, handle);
}

static pln_status emit_nothing(pln_translation *t, pln_ref ref) {
  return pln_loop_set(t, ref, t->zero);
}

static pln_status emit_throw(pln_translation *t, pln_ref ref) {
  PLN_TRY(pln_loop_emit(
      t, ref,
      (pln_loop_instr){.op = PLN_LOOP_FAIL, .aux = PLN_LOOP_FAULT_THROW}));
  return pln_loop_set(t, ref, t->zero);
}

static pln_status emit_return(pln_translation *t, pln_ref ref) {
  PLN_TRY(pln_loop_emit(t, ref, (pln_loop_instr){.op = PLN_LOOP_END}));
  return pln_loop_set(t, ref, t->zero);
}

/* An assumption that does not hold ends the run: what passes make of it is not
 * defined then. */
static pln_status emit_assume(pln_translation *t, pln_ref ref) {
  int32_t at = (int32_t)t->p->n_code;
  PLN_TRY(pln_loop_emit(
      t, ref,
      (pln_loop_instr){.op = PLN_LOOP_JUMP_IF_TRUE, .a = arg_cell(t, ref, 0)}));
  PLN_TRY(pln_loop_emit(
      t, ref,
      (pln_loop_instr){.op = PLN_LOOP_FAIL, .aux = PLN_LOOP_FAULT_ASSUME}));
  pln_loop_land(t, at);
  return pln_loop_set(t, ref, t->one);
}

/* --------------------------------------------------------------- externals */

/* A function of C's library by its name, such as expf; else of the host. */
static bool find_library_function(pln_slice name, pln_slice *out) {
  *out = name;
  for (int round = 0; round < 2; round++) {
    if (pln_loop_find_function(*out) >= 0 || pln_loop_find_function2(*out) >= 0)
      return true;
    if (name.size == 0 || name.data[name.size - 1] != 'f')
      return false;
    out->size = name.size - 1;
  }
  return false;
}

static pln_status add_call(pln_translation *t, pln_ref ref, pln_symbol name,
                           int32_t args) {
  pln_loop_program *p = t->p;
  const pln_node *n = &t->g->nodes[ref];
  pln_loop_call call = {.name = name,
                        .n = n->count - 1,
                        .first = p->n_call_dtypes,
                        .result = pln_prim_dtype(t->g, ref)};
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->call_dtypes, &p->cap_call_dtypes,
                       (size_t)p->n_call_dtypes + call.n,
                       sizeof *p->call_dtypes));
  for (uint32_t i = 0; i < call.n; i++)
    p->call_dtypes[p->n_call_dtypes++] =
        pln_prim_dtype(t->g, args_of(t, ref)[1 + i]);
  PLN_TRY(pln_mem_grow(t->engine, (void **)&p->calls, &p->cap_calls,
                       (size_t)p->n_calls + 1, sizeof *p->calls));
  p->calls[p->n_calls] = call;
  return call_value(t, ref,
                    (pln_loop_instr){.op = PLN_LOOP_CALL,
                                     .a = args,
                                     .b = (int32_t)p->n_calls++});
}

static pln_status check_host_call(pln_translation *t, pln_ref ref,
                                  pln_slice name) {
  const pln_node *n = &t->g->nodes[ref];
  bool scalars =
      pln_prim_lanes(t->g, ref) == 1 && n->count <= PLN_LOOP_MAX_ARGS;
  bool known = t->options->call && t->options->knows(t->options->call_ud, name);
  for (uint32_t i = 1; i < n->count; i++)
    scalars &= pln_prim_lanes(t->g, args_of(t, ref)[i]) == 1 &&
               pln_prim_dtype(t->g, args_of(t, ref)[i]) != PLN_DTYPE_NONE;
  if (!known)
    return pln_loop_refuse(t, "external function '%s' is not known (%s)",
                           name.data, builtin_of(t, ref));
  return scalars ? PLN_OK
                 : pln_loop_refuse(t,
                                   "external function '%s' takes or returns "
                                   "more than scalars",
                                   name.data);
}

static pln_status emit_host_call(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_node *callee = n->count ? &t->g->nodes[args_of(t, ref)[0]] : NULL;
  pln_slice name, function;
  int32_t args, cell;
  if (!callee || callee->kind != PLN_STRING_IMM)
    return pln_loop_refuse(t, "a call of '%s' without a name",
                           builtin_of(t, ref));
  name = pln_symbol_text(t->engine, callee->data);
  if (!(t->options->call && t->options->knows(t->options->call_ud, name)) &&
      find_library_function(name, &function) &&
      pln_loop_class(pln_prim_dtype(t->g, ref)) >= 3 &&
      n->count - 1 == 1 + (pln_loop_find_function(function) < 0))
    return emit_function(t, ref, function, 1);
  PLN_TRY(check_host_call(t, ref, name));
  PLN_TRY(pln_loop_new_cells(t, n->count, &args));
  for (uint32_t i = 1; i < n->count; i++) {
    cell = args + (int32_t)i - 1;
    PLN_TRY(pln_loop_emit(t, ref,
                          (pln_loop_instr){.op = PLN_LOOP_COPY,
                                           .lanes = 1,
                                           .to = cell,
                                           .a = arg_cell(t, ref, i)}));
  }
  return add_call(t, ref, callee->data, args);
}

/* ------------------------------------------------------------------- table */

static const call_row rows[] = {
    {"ldexp", FORM_OWN, 0, emit_ldexp},
    {"fma", FORM_OWN, 0, emit_fma},
    {"isnan", FORM_TEST, PLN_LOOP_ISNAN_F32, NULL},
    {"isinf", FORM_TEST, PLN_LOOP_ISINF_F32, NULL},
    {"isfinite", FORM_TEST, PLN_LOOP_ISFINITE_F32, NULL},
    {"popcount", FORM_BITS, PLN_LOOP_POPCOUNT, NULL},
    {"clz", FORM_BITS, PLN_LOOP_CLZ, NULL},
    {"bitwise_and", FORM_BITS, PLN_LOOP_BIT_AND, NULL},
    {"bitwise_or", FORM_BITS, PLN_LOOP_BIT_OR, NULL},
    {"bitwise_xor", FORM_BITS, PLN_LOOP_BIT_XOR, NULL},
    {"bitwise_not", FORM_BITS, PLN_LOOP_BIT_NOT, NULL},
    {"shift_left", FORM_BITS, PLN_LOOP_SHIFT_LEFT, NULL},
    {"shift_right", FORM_OWN, 0, emit_shift_right},
    {"large_uint_imm", FORM_BITS, PLN_LOOP_LARGE_UINT, NULL},
    {"q_multiply_shift", FORM_OWN, 0, emit_q_multiply_shift},
    {"reinterpret", FORM_OWN, 0, emit_reinterpret},
    {"vectorhigh", FORM_OWN, 0, emit_part},
    {"vectorlow", FORM_OWN, 0, emit_part},
    {"vectorcombine", FORM_OWN, 0, emit_combine},
    {"type_annotation", FORM_OWN, 0, emit_nothing},
    {"likely", FORM_FIRST, 0, NULL},
    {"tvm_thread_invariant", FORM_FIRST, 0, NULL},
    {"if_then_else", FORM_BRANCH, 0, NULL},
    {"address_of", FORM_OWN, 0, emit_address_of},
    {"tvm_access_ptr", FORM_OWN, 0, emit_access_ptr},
    {"isnullptr", FORM_OWN, 0, emit_isnullptr},
    {"TVMBackendAllocWorkspace", FORM_OWN, 0, emit_workspace},
    {"TVMBackendFreeWorkspace", FORM_OWN, 0, emit_nothing},
    {"tvm_throw_last_error", FORM_OWN, 0, emit_throw},
    {"ret", FORM_OWN, 0, emit_return},
    {"assume", FORM_OWN, 0, emit_assume},
    {"prefetch", FORM_OWN, 0, emit_nothing},
    {"start_profile_intrinsic", FORM_OWN, 0, emit_nothing},
    {"end_profile_intrinsic", FORM_OWN, 0, emit_nothing},
    {"tvm_storage_sync", FORM_BARRIER, 0, emit_nothing},
    {"call_extern", FORM_HOST, 0, emit_host_call},
    {"call_pure_extern", FORM_HOST, 0, emit_host_call},
    {"tvm_call_packed", FORM_HOST, 0, emit_host_call},
    {"tvm_call_cpacked", FORM_HOST, 0, emit_host_call}};

static const call_row *find_row(const pln_node *n) {
  static const call_row function = {"", FORM_FUNCTION, 0, NULL};
  const char *name = n->data ? pln_builtin_row(n->data)->name : "";
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (!strcmp(name, rows[i].name))
      return &rows[i];
  if (pln_loop_find_function(pln_text(name)) >= 0 ||
      pln_loop_find_function2(pln_text(name)) >= 0)
    return &function;
  return NULL;
}

bool pln_loop_call_is_safe(const pln_graph *g, const pln_node *n) {
  const call_row *row = find_row(n);
  (void)g;
  return row && (row->form == FORM_FUNCTION || row->form == FORM_BITS ||
                 row->form == FORM_TEST || row->form == FORM_FIRST ||
                 row->form == FORM_BRANCH || row->emit == emit_shift_right ||
                 row->emit == emit_fma || row->emit == emit_reinterpret);
}

static pln_status refuse_call(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  if (n->data)
    return pln_loop_refuse(t, "builtin '%s' is not interpreted",
                           builtin_of(t, ref));
  pln_symbol name = t->g->nodes[args_of(t, ref)[0]].data;
  return pln_loop_refuse(t, "the call of function '%s' is not interpreted",
                         pln_symbol_text(t->engine, name).data);
}

/* The arguments that have values: not the name of a function, not what a
 * pointer to it needs no value of. */
static pln_status push_arguments(pln_translation *t, pln_ref ref,
                                 const call_row *row) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = args_of(t, ref);
  if (row->emit == emit_address_of && n->count == 1 &&
      t->g->nodes[o[0]].kind == PLN_BUFFER_LOAD)
    return pln_loop_push_access(t, o[0], 1);
  if (row->emit == emit_nothing || row->emit == emit_return)
    return PLN_OK;
  uint32_t skip = row->form == FORM_HOST && n->count > 0;
  return pln_loop_push_exprs(t, n->count - skip, o + skip);
}

/* Whether operands have the lanes of the result, as lane-wise builtins must. */
static pln_status check_lanes_of(pln_translation *t, pln_ref ref,
                                 const call_row *row) {
  const pln_node *n = &t->g->nodes[ref];
  const pln_ref *o = args_of(t, ref);
  bool own = row->emit == emit_ldexp || row->emit == emit_fma ||
             row->emit == emit_shift_right;
  bool same = row->form == FORM_FIRST || row->form == FORM_BRANCH;
  if (!own && (row->form == FORM_OWN || row->form == FORM_HOST ||
               row->form == FORM_BARRIER))
    return PLN_OK;
  for (uint32_t i = 0; i < n->count; i++) {
    bool condition = row->form == FORM_BRANCH && i == 0;
    bool agree = pln_prim_lanes(t->g, o[i]) == pln_prim_lanes(t->g, ref);
    if (same && !condition)
      agree &= pln_prim_dtype(t->g, o[i]) == pln_prim_dtype(t->g, ref);
    if (!agree && !(condition && pln_prim_lanes(t->g, o[i]) == 1))
      return pln_loop_refuse(t, "operands of '%s' are not of its dtype",
                             builtin_of(t, ref));
  }
  return PLN_OK;
}

pln_status pln_loop_visit_call(pln_translation *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  const call_row *row = find_row(n);
  int32_t args = n->data ? pln_builtin_row(n->data)->args : 0;
  if (!row)
    return refuse_call(t, ref);
  if (row->form == FORM_BARRIER && t->n_threads > 0)
    return pln_loop_refuse(t, "'%s' between threads that run one by one",
                           builtin_of(t, ref));
  if (args >= 0 && (uint32_t)args != n->count)
    return pln_loop_refuse(t, "builtin '%s' takes %d arguments, not %u",
                           builtin_of(t, ref), (int)args, n->count);
  PLN_TRY(check_lanes_of(t, ref, row));
  if (row->form == FORM_BRANCH && pln_prim_lanes(t->g, args_of(t, ref)[0]) == 1)
    return pln_loop_visit_branch(t, ref);
  PLN_TRY(pln_loop_push(t, (pln_loop_task){.what = PLN_LOOP_EMIT, .ref = ref}));
  return push_arguments(t, ref, row);
}

pln_status pln_loop_emit_call(pln_translation *t, pln_ref ref) {
  const call_row *row = find_row(&t->g->nodes[ref]);
  switch ((call_form)row->form) {
  case FORM_FUNCTION:
    return emit_function(t, ref, pln_text(builtin_of(t, ref)), 0);
  case FORM_BITS: return emit_bits(t, ref, row->op);
  case FORM_TEST: return emit_test(t, ref, row->op);
  case FORM_FIRST: return pln_loop_set(t, ref, arg_cell(t, ref, 0));
  case FORM_BRANCH: /* a condition for each lane */
    return call_value(t, ref,
                      (pln_loop_instr){.op = PLN_LOOP_SELECT,
                                       .aux = 1,
                                       .a = arg_cell(t, ref, 0),
                                       .b = arg_cell(t, ref, 1),
                                       .c = arg_cell(t, ref, 2)});
  case FORM_OWN:
  case FORM_HOST:
  case FORM_BARRIER: return row->emit(t, ref);
  case FORM_NONE: break;
  }
  return refuse_call(t, ref);
}
