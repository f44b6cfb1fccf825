/* test_tir.c: the loop level from C: building in scopes and freely, sealing,
 * verifying, rewriting, importing, equality, the script form. */

#include "graph_fixture.h"

/* ----------------------------------------------------------------- programs */

static pln_status symbol(pln_engine *e, const char *name, pln_symbol *out) {
  return pln_symbol_intern(e, pln_text(name), out);
}

static pln_status make_var(pln_builder *to, const char *name, pln_type type,
                           pln_ref *out) {
  pln_symbol s;
  PLN_TRY(symbol(to->engine, name, &s));
  return pln_build_var(to, s, type, 0, out);
}

/* A float32 buffer of 16 elements over a pointer of its own. */
static pln_status make_buffer(pln_builder *to, const char *name, pln_ref *out) {
  pln_engine *e = to->engine;
  pln_type element, index, pointer;
  pln_symbol global;
  pln_buffer_spec spec = {.rank = 1};
  pln_ref shape;
  PLN_TRY(pln_type_prim(e, PLN_FLOAT32, 1, &element));
  PLN_TRY(pln_type_prim(e, PLN_INT32, 1, &index));
  PLN_TRY(symbol(e, "global", &global));
  PLN_TRY(pln_type_make(e, PLN_TYPE_POINTER, global, 1, &element, &pointer));
  PLN_TRY(symbol(e, name, &spec.name));
  PLN_TRY(make_var(to, name, pointer, &spec.data));
  PLN_TRY(pln_build_int_imm(to, index, 16, &shape));
  PLN_TRY(pln_build_int_imm(to, index, 0, &spec.elem_offset));
  spec.type = element;
  spec.shape = &shape;
  return pln_build_buffer(to, &spec, out);
}

/* buffer[i] = buffer[i] + 1 */
static pln_status make_store(pln_builder *to, pln_ref buffer, pln_ref i,
                             pln_ref *out) {
  pln_ref load, one, sum;
  pln_type element;
  PLN_TRY(pln_type_prim(to->engine, PLN_FLOAT32, 1, &element));
  PLN_TRY(pln_build_prim(to,
                         &(pln_prim){.kind = PLN_BUFFER_LOAD,
                                     .n = 2,
                                     .operands = (pln_ref[]){buffer, i}},
                         &load));
  PLN_TRY(pln_build_float_imm(to, element, 1, &one));
  PLN_TRY(pln_build_folded(to, PLN_PRIM_ADD, load, one, &sum));
  return pln_build_prim(to,
                        &(pln_prim){.kind = PLN_BUFFER_STORE,
                                    .n = 3,
                                    .operands = (pln_ref[]){buffer, sum, i}},
                        out);
}

/* for i in range(16): the stores, twice */
static pln_status make_loop(pln_builder *to, pln_ref buffer, pln_ref *out) {
  pln_type index;
  pln_ref i, store, seq, bounds[2];
  PLN_TRY(pln_type_prim(to->engine, PLN_INT32, 1, &index));
  PLN_TRY(make_var(to, "i", index, &i));
  PLN_TRY(make_store(to, buffer, i, &store));
  PLN_TRY(pln_build_seq(to, 2, (pln_ref[]){store, store}, &seq));
  PLN_TRY(pln_build_int_imm(to, index, 0, &bounds[0]));
  PLN_TRY(pln_build_int_imm(to, index, 16, &bounds[1]));
  return pln_build_floating_stmt(
      to, &(pln_prim){.kind = PLN_FOR, .n = 2, .operands = bounds}, 1,
      &(pln_body){.n_params = 1, .params = &i, .stmt = seq}, out);
}

static pln_status make_function(pln_builder *to, pln_ref *out) {
  pln_type handle;
  pln_ref param, buffer, bind, loop, body;
  PLN_TRY(pln_type_prim(to->engine, PLN_DTYPE_NONE, 1, &handle));
  PLN_TRY(make_var(to, "A", handle, &param));
  PLN_TRY(make_buffer(to, "A", &buffer));
  PLN_TRY(pln_build_prim(to,
                         &(pln_prim){.kind = PLN_BUFFER_BIND,
                                     .n = 2,
                                     .operands = (pln_ref[]){param, buffer}},
                         &bind));
  PLN_TRY(make_loop(to, buffer, &loop));
  PLN_TRY(pln_build_seq(to, 2, (pln_ref[]){bind, loop}, &body));
  return pln_build_floating_stmt(
      to, &(pln_prim){.kind = PLN_PRIM_FUNC}, 1,
      &(pln_body){.n_params = 1, .params = &param, .stmt = body}, out);
}

static const char script[] =
    "# from tvm.script import tir as T\n\n@T.prim_func(private=True)\n"
    "def main(A: T.Buffer((16,), \"float32\")):\n"
    "    for i in range(16):\n"
    "        A[i] = A[i] + T.float32(1)\n"
    "        A[i] = A[i] + T.float32(1)";

static pln_status print_to(const pln_graph *g, pln_ref ref, pln_buffer *text) {
  pln_buffer_init(text, g->engine);
  return pln_print_node(g, ref, NULL, pln_buffer_write, text);
}

static bool text_is(const pln_buffer *text, const char *expected) {
  return text->size == strlen(expected) &&
         !memcmp(text->data, expected, text->size);
}

/* -------------------------------------------------------------------- tests */

static void statements_are_sealed_in_order(void) {
  begin();
  pln_ref fn = PLN_NONE;
  pln_graph *g = NULL;
  pln_buffer text;
  CHECK_OK(make_function(b, &fn));
  CHECK_OK(pln_builder_seal(b, fn, &g));
  CHECK_OK(pln_graph_verify(g));
  CHECK_EQ_INT(pln_node_kind(g, pln_graph_root(g)), PLN_PRIM_FUNC);
  CHECK_EQ_INT(pln_graph_n_scopes(g), 3);
  CHECK_OK(print_to(g, pln_graph_root(g), &text));
  CHECK(text_is(&text, script));
  pln_buffer_free(&text);
  pln_graph_release(g);
  end();
}

static pln_graph *sealed_copy(const pln_graph *g) {
  pln_builder *to;
  pln_ref ref;
  pln_graph *copy = NULL;
  CHECK_OK(pln_builder_new(g->engine, &to));
  CHECK_OK(pln_build_import(to, g, pln_graph_root(g), &ref));
  CHECK_OK(pln_builder_seal(to, ref, &copy));
  pln_builder_free(to);
  return copy;
}

static void a_copy_is_equal_and_hashes_alike(void) {
  begin();
  pln_ref fn = PLN_NONE, other = PLN_NONE;
  pln_graph *g = NULL, *h = NULL;
  bool equal = false;
  uint64_t x = 0, y = 1;
  CHECK_OK(make_function(b, &fn));
  CHECK_OK(make_function(b, &other));
  CHECK_OK(pln_builder_seal(b, fn, &g));
  CHECK_OK(pln_builder_seal(b, other, &h));
  CHECK_OK(pln_graph_equal(g, g->root, h, h->root, false, &equal));
  CHECK(equal);
  pln_graph *copy = sealed_copy(g);
  CHECK_OK(pln_graph_equal(g, g->root, copy, copy->root, false, &equal));
  CHECK(equal);
  CHECK_OK(pln_graph_hash(g, g->root, false, &x));
  CHECK_OK(pln_graph_hash(h, h->root, false, &y));
  CHECK(x == y);
  pln_graph_release(copy);
  pln_graph_release(g);
  pln_graph_release(h);
  end();
}

static pln_status two_for_one(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  const pln_graph *g = pln_rewrite_old(rw);
  (void)ud;
  if (pln_node_kind(g, old) != PLN_FLOAT_IMM)
    return PLN_OK;
  pln_builder *to = pln_rewrite_builder(rw);
  if (!to)
    return PLN_ERR_NOMEM;
  return pln_build_float_imm(to, pln_node_type(g, old), 2, node);
}

static pln_status rewrite_all(const pln_graph *g, pln_graph **out) {
  pln_mutator mutator = {.visit = two_for_one};
  return pln_graph_rewrite(g, &mutator, out);
}

static void rewriting_keeps_the_order_of_statements(void) {
  begin();
  pln_ref fn = PLN_NONE;
  pln_graph *g = NULL, *out = NULL;
  pln_buffer text;
  CHECK_OK(make_function(b, &fn));
  CHECK_OK(pln_builder_seal(b, fn, &g));
  CHECK_OK(rewrite_all(g, &out));
  CHECK_OK(pln_graph_verify(out));
  CHECK_OK(print_to(out, pln_graph_root(out), &text));
  CHECK(text.size == strlen(script));
  CHECK(text.size && !memchr(text.data, '!', text.size));
  pln_buffer_free(&text);
  pln_graph_release(out);
  pln_graph_release(g);
  end();
}

static void a_read_belongs_to_one_statement(void) {
  begin();
  pln_scope body;
  pln_ref buffer, store, again;
  pln_type index;
  CHECK_OK(pln_type_prim(engine, PLN_INT32, 1, &index));
  CHECK_OK(pln_build_open(b, &body));
  pln_ref i;
  CHECK_OK(make_var(b, "i", index, &i));
  CHECK_OK(make_buffer(b, "A", &buffer));
  CHECK_OK(make_store(b, buffer, i, &store));
  pln_ref value = pln_node_operands(pln_builder_graph(b), store)[1];
  CHECK_OK(
      pln_build_prim(b,
                     &(pln_prim){.kind = PLN_BUFFER_STORE,
                                 .n = 3,
                                 .operands = (pln_ref[]){buffer, value, i}},
                     &again));
  CHECK_OK(pln_build_end(b, body, again, 0));
  pln_ref fn;
  CHECK_OK(
      pln_build_stmt(b, &(pln_prim){.kind = PLN_PRIM_FUNC}, 1, &body, &fn));
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, fn, &g));
  CHECK_EQ_INT(pln_graph_verify(g), PLN_ERR_INVALID);
  pln_graph_release(g);
  end();
}

static void what_does_not_fit_is_refused(void) {
  begin();
  pln_ref buffer, imm, out;
  pln_type index;
  CHECK_OK(pln_type_prim(engine, PLN_INT32, 1, &index));
  CHECK_OK(make_buffer(b, "A", &buffer));
  CHECK_OK(pln_build_int_imm(b, index, 3, &imm));
  pln_ref pair[] = {buffer, imm};
  CHECK_EQ_INT(pln_build_binary(b, PLN_PRIM_ADD, buffer, imm, &out),
               PLN_ERR_TYPE);
  CHECK_EQ_INT(
      pln_build_prim(
          b, &(pln_prim){.kind = PLN_PRIM_ADD, .n = 1, .operands = pair}, &out),
      PLN_ERR_ARGUMENT);
  CHECK_EQ_INT(pln_build_prim(b, &(pln_prim){.kind = PLN_TUPLE}, &out),
               PLN_ERR_ARGUMENT);
  CHECK_EQ_INT(
      pln_build_prim(b, &(pln_prim){.kind = PLN_PRIM_CALL, .data = 9999}, &out),
      PLN_ERR_TYPE);
  CHECK_EQ_INT(pln_build_prim(b, &(pln_prim){.kind = PLN_REDUCE}, &out),
               PLN_ERR_TYPE);
  CHECK_EQ_INT(pln_build_prim(b, &(pln_prim){.kind = PLN_SHUFFLE}, &out),
               PLN_ERR_TYPE);
  CHECK_EQ_INT(pln_build_prim(b, &(pln_prim){.kind = PLN_BUFFER}, &out),
               PLN_ERR_TYPE);
  CHECK_EQ_INT(pln_build_seq(b, 0, NULL, &out), PLN_ERR_ARGUMENT);
  CHECK_EQ_INT(pln_build_floating_stmt(b, &(pln_prim){.kind = PLN_PRIM_FUNC}, 1,
                                       &(pln_body){.stmt = buffer}, &out),
               PLN_ERR_ARGUMENT);
  end();
}

static void builtins_have_names_and_numbers(void) {
  CHECK(pln_builtin_count() > 100);
  for (uint32_t i = 1; i <= pln_builtin_count(); i++)
    CHECK_EQ_INT(pln_builtin_find(pln_text(pln_builtin_name(i))), i);
  CHECK_EQ_INT(pln_builtin_find(pln_text("no such")), 0);
  uint32_t fma = pln_builtin_find(pln_text("fma"));
  CHECK_EQ_INT(pln_builtin_args(fma), 3);
  CHECK_EQ_INT(pln_builtin_call_kind(fma), PLN_CALL_PURE);
  CHECK_EQ_INT(pln_builtin_args(pln_builtin_find(pln_text("call_extern"))), -1);
  CHECK_EQ_INT(pln_builtin_call_kind(0), PLN_CALL_OPAQUE);
}

static void deep_nests_need_no_stack(void) {
  begin();
  pln_type index, boolean;
  pln_ref stmt, zero, one, truth, i;
  enum { DEPTH = 100000 };
  CHECK_OK(pln_type_prim(engine, PLN_INT32, 1, &index));
  CHECK_OK(pln_type_prim(engine, PLN_BOOL, 1, &boolean));
  CHECK_OK(pln_build_int_imm(b, index, 0, &zero));
  CHECK_OK(pln_build_int_imm(b, index, 7, &one));
  CHECK_OK(pln_build_int_imm(b, boolean, 1, &truth));
  CHECK_OK(pln_build_prim(
      b, &(pln_prim){.kind = PLN_EVALUATE, .n = 1, .operands = &zero}, &stmt));
  for (int k = 0; k < DEPTH / 2; k++) {
    CHECK_OK(make_var(b, "i", index, &i));
    CHECK_OK(pln_build_floating_stmt(
        b,
        &(pln_prim){
            .kind = PLN_FOR, .n = 2, .operands = (pln_ref[]){zero, one}},
        1, &(pln_body){.n_params = 1, .params = &i, .stmt = stmt}, &stmt));
    CHECK_OK(pln_build_floating_stmt(
        b, &(pln_prim){.kind = PLN_IF_THEN_ELSE, .n = 1, .operands = &truth}, 1,
        &(pln_body){.stmt = stmt}, &stmt));
  }
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, stmt, &g));
  CHECK_EQ_INT(pln_graph_n_scopes(g), DEPTH + 1);
  pln_graph *copy = sealed_copy(g), *out = NULL;
  bool equal = false;
  CHECK_OK(pln_graph_equal(g, g->root, copy, copy->root, false, &equal));
  CHECK(equal);
  CHECK_OK(rewrite_all(g, &out));
  pln_graph_release(out);
  pln_graph_release(copy);
  pln_graph_release(g);
  end();
}

/* ------------------------------------------------------------ out of memory */

static pln_status use_graph(const pln_graph *g) {
  pln_graph *out;
  bool equal;
  pln_buffer text;
  PLN_TRY(rewrite_all(g, &out));
  pln_status status =
      pln_graph_equal(g, g->root, out, out->root, false, &equal);
  if (status == PLN_OK) {
    status = print_to(out, out->root, &text);
    pln_buffer_free(&text);
  }
  pln_graph_release(out);
  return status;
}

static pln_status import_again(pln_engine *e, const pln_graph *g) {
  pln_builder *to;
  pln_graph *copy;
  pln_ref ref;
  PLN_TRY(pln_builder_new(e, &to));
  pln_status status = pln_build_import(to, g, g->root, &ref);
  if (status == PLN_OK)
    status = pln_builder_seal(to, ref, &copy);
  if (status == PLN_OK)
    pln_graph_release(copy);
  pln_builder_free(to);
  return status;
}

static pln_status define_anew(const pln_graph *g) {
  pln_graph *fresh;
  bool equal = false;
  PLN_TRY(pln_graph_well_formed(g));
  PLN_TRY(pln_tir_verify_ssa(g));
  PLN_TRY(pln_graph_alpha_rename(g, &fresh));
  pln_status status =
      pln_graph_equal(g, g->root, fresh, fresh->root, false, &equal);
  CHECK(status != PLN_OK || equal);
  pln_graph_release(fresh);
  return status;
}

static pln_status build_and_print(pln_engine *e, void *ud) {
  pln_builder *to;
  pln_graph *g;
  pln_ref fn;
  (void)ud;
  PLN_TRY(pln_builder_new(e, &to));
  pln_status status = make_function(to, &fn);
  if (status == PLN_OK)
    status = pln_builder_seal(to, fn, &g);
  pln_builder_free(to);
  if (status != PLN_OK)
    return status;
  status = use_graph(g);
  if (status == PLN_OK)
    status = import_again(e, g);
  if (status == PLN_OK)
    status = define_anew(g);
  pln_graph_release(g);
  return status;
}

static void memory_may_run_out_anywhere(void) {
  oom_sweep(build_and_print, NULL);
}

static const check_test tests[] = {
    {"statements are sealed in order", statements_are_sealed_in_order},
    {"a copy is equal and hashes alike", a_copy_is_equal_and_hashes_alike},
    {"rewriting keeps the order of statements",
     rewriting_keeps_the_order_of_statements},
    {"a read belongs to one statement", a_read_belongs_to_one_statement},
    {"what does not fit is refused", what_does_not_fit_is_refused},
    {"builtins have names and numbers", builtins_have_names_and_numbers},
    {"deep nests need no stack", deep_nests_need_no_stack},
    {"memory may run out anywhere", memory_may_run_out_anywhere},
};

CHECK_MAIN(tests)
