/* test_child_engine.c: child engines over a frozen parent: what is lent, what
 * is brought home, and function passes in several threads. */

#include "ir/worker/child_engine.h"
#include "oom.h"
#include "op/op.h"
#include "pass/parallel/parallel.h"

/* What a graph may name: symbolic dims, known values of shapes, attributes with
 * texts and lists, constants, type variables, data types, references, closures,
 * places. The two have names, types and attributes of their own. */
static const char one[] =
    "#[version = \"0.0.5\"]\n"
    "type Box[A] { Full(A), Empty, }\n"
    "def @first(%x: Tensor[(n, 3), float32], %y: Tensor[(n, 3), float32]) {\n"
    "  let %f = fn (%a: Tensor[(n, 3), float32]) { add(%a, %y) };\n"
    "  let %r = ref(%f(%x));\n"
    "  (transpose(ref_read(%r), axes=[1, 0]), 2)\n"
    "}\n";
static const char other[] =
    "#[version = \"0.0.5\"]\n"
    "type Box[A] { Full(A), Empty, }\n"
    "def @second[B](%x: B, %c: bool, %z: Tensor[(k, k + 1), float32]) {\n"
    "  if (%c) { (%x, concatenate((%z, %z), axis=1)) }\n"
    "  else { (%x, concatenate((%z, %z), axis=1)) }\n"
    "}\n"
    "def @third(%b: Box[Tensor[(m * 2), int64]]) {\n"
    "  match (%b) {\n"
    "    Full(%v) => reshape(%v, newshape=[2, -1]),\n"
    "    Empty => reshape(zeros(shape=[4], dtype=\"int64\"), newshape=[2, "
    "-1])\n"
    "  }\n"
    "}\n"
    "def @fourth(%q: Tensor[(p, 4), float32]) {\n"
    "  %0 = shape_of(%q, dtype=\"int64\");\n"
    "  (strided_slice(%q, begin=[0, 1], end=[1000, 3]), multiply(%0, 2i64))\n"
    "}\n";

static pln_status collect(void *ud, const char *data, size_t size) {
  return pln_buffer_write(ud, data, size);
}

static void print(pln_engine *engine, const pln_module *module,
                  pln_buffer *out) {
  pln_buffer_init(out, engine);
  CHECK_OK(pln_print_module(module, NULL, collect, out));
  CHECK_OK(pln_buffer_add(out, "", 1));
}

static pln_module *parse(pln_engine *engine, const char *text) {
  pln_module *module = NULL;
  if (!CHECK_OK(
          pln_parse_module(engine, pln_text(text), "here", NULL, &module)))
    print_diags(engine);
  return module;
}

/* A child over the engine, with what it may share. */
typedef struct home {
  pln_engine *engine, *child;
  pln_worker_group family;
} home;

static void open_home(home *h) {
  h->engine = pln_engine_new(NULL, NULL);
  pln_worker_group_begin(&h->family, h->engine);
}

static void begin_child(home *h) {
  h->child = pln_child_new(&h->family, pln_context_current(h->engine));
}

static void end_child(home *h) {
  pln_child_free(h->child);
  h->child = NULL;
}

static void close_home(home *h) {
  pln_worker_group_end(&h->family);
  pln_engine_free(h->engine);
}

/* ------------------------------------------------------------------ lending */

static void lends(void) {
  home h;
  pln_buffer here, there;
  open_home(&h);
  pln_module *module = parse(h.engine, other), *lent = NULL;
  size_t before = pln_engine_memory(h.engine, NULL);
  begin_child(&h);
  REQUIRE_OK(pln_borrow_module(h.child, module, &lent));
  CHECK(pln_module_engine(lent) == h.child);
  for (uint32_t i = 0; i < pln_module_count(lent); i++)
    CHECK_OK(pln_borrow_tensors(h.child, pln_module_function_at(lent, i)));
  print(h.child, lent, &there);
  CHECK_EQ_INT(pln_engine_memory(h.engine, NULL), before);
  print(h.engine, module, &here);
  CHECK_STR(there.data, here.data);
  pln_buffer_free(&here);
  pln_buffer_free(&there);
  pln_module_release(lent);
  end_child(&h);
  pln_module_release(module);
  close_home(&h);
}

static void lent_comes_back(void) {
  home h;
  pln_merge join;
  open_home(&h);
  pln_module *module = parse(h.engine, one);
  pln_graph *function = pln_module_function_at(module, 0), *lent = NULL;
  begin_child(&h);
  REQUIRE_OK(pln_borrow_graph(h.child, function, &lent));
  REQUIRE_OK(pln_merge_begin(&join, h.child));
  lent = pln_merge_graph(&join, lent);
  CHECK(lent == function);
  pln_graph_release(lent);
  pln_merge_end(&join);
  end_child(&h);
  pln_module_release(module);
  close_home(&h);
}

static void ids_go_on(void) {
  home h;
  pln_symbol known, met, new_one;
  open_home(&h);
  CHECK_OK(pln_symbol_intern(h.engine, pln_text("known"), &known));
  begin_child(&h);
  CHECK_OK(pln_symbol_intern(h.child, pln_text("known"), &met));
  CHECK_EQ_INT(met, known);
  CHECK_OK(pln_symbol_intern(h.child, pln_text("new one"), &new_one));
  CHECK_EQ_INT(new_one, pln_interner_count(h.engine->symbols) + 1);
  CHECK_STR(pln_symbol_text(h.child, known).data, "known");
  CHECK_STR(pln_symbol_text(h.child, new_one).data, "new one");
  CHECK(pln_op_find(h.child, pln_text("add")) == PLN_OP_ADD);
  end_child(&h);
  close_home(&h);
}

/* ------------------------------------------------------------------ joining */

static void bring_functions(home *h, const pln_merge *join, pln_module *made,
                            pln_module **all) {
  for (uint32_t i = 0; i < pln_module_count(made); i++) {
    pln_module *larger = NULL;
    pln_symbol name =
        pln_merged_id(&join->symbols, pln_module_name_at(made, i));
    pln_graph *g = pln_graph_retain(pln_module_function_at(made, i));
    g = pln_merge_graph(join, g);
    CHECK(pln_graph_engine(g) == h->engine);
    CHECK_OK(pln_graph_verify(g));
    CHECK_OK(pln_module_with(*all, name, g, &larger));
    pln_graph_release(g);
    pln_module_release(*all);
    *all = larger;
  }
}

/* What a child reads from a text of its own is, brought home, what the parent
 * would have read; two of them stand on the same parent. */
static void what_is_made_comes_home(void) {
  home h;
  pln_buffer wanted, got;
  pln_merge joins[2];
  pln_engine *children[2];
  pln_module *made[2];
  open_home(&h);
  pln_module *all = parse(h.engine, one);
  for (int i = 0; i < 2; i++) {
    begin_child(&h);
    children[i] = h.child;
    made[i] = parse(h.child, i == 0 ? other : one);
  }
  for (int i = 0; i < 2; i++)
    REQUIRE_OK(pln_merge_begin(&joins[i], children[i]));
  for (int i = 0; i < 2; i++) {
    bring_functions(&h, &joins[i], made[i], &all);
    pln_module_release(made[i]);
    pln_merge_end(&joins[i]);
    h.child = children[i];
    end_child(&h);
  }
  char whole[sizeof one + sizeof other];
  snprintf(whole, sizeof whole, "%s%s", one, strstr(other, "def @second"));
  pln_module *same = parse(h.engine, whole);
  print(h.engine, same, &wanted);
  print(h.engine, all, &got);
  CHECK_STR(got.data, wanted.data);
  pln_buffer_free(&wanted);
  pln_buffer_free(&got);
  pln_module_release(same);
  pln_module_release(all);
  close_home(&h);
}

/* ------------------------------------------------- constants and attributes */

static pln_status make_constant(pln_engine *e, const pln_tensor *tensor,
                                pln_graph **out) {
  pln_builder *b;
  pln_ref ref, f;
  pln_scope body;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_build_open(b, &body);
  if (status == PLN_OK)
    status = pln_build_constant(b, tensor, &ref);
  if (status == PLN_OK)
    status = pln_build_end(b, body, ref, 0);
  if (status == PLN_OK)
    status = pln_build_function(b, body, 0, 0, &f);
  if (status == PLN_OK)
    status = pln_builder_seal(b, f, out);
  pln_builder_free(b);
  return status;
}

static pln_tensor *new_tensor(pln_engine *e) {
  static const float elements[600] = {1, 2, 3};
  static const int64_t dims[] = {20, 30};
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_from_bytes(e, PLN_FLOAT32, 2, dims, elements,
                                 sizeof elements, &t));
  return t;
}

static pln_tensor *reshaped(const pln_tensor *from) {
  static const int64_t dims[] = {600};
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_reshaped(from, 1, dims, &t));
  return t;
}

static pln_graph *constant_in(pln_engine *e, pln_tensor *tensor) {
  pln_graph *g = NULL;
  CHECK_OK(make_constant(e, tensor, &g));
  pln_tensor_release(tensor);
  return g;
}

/* A view of what the parent has, and of what the child has. */
static void tensors_change_owners(void) {
  home h;
  pln_merge join;
  pln_tensor *lent = NULL;
  open_home(&h);
  pln_tensor *tensor = new_tensor(h.engine);
  begin_child(&h);
  REQUIRE_OK(pln_borrow_tensor(h.child, tensor, &lent));
  CHECK(lent != tensor && pln_tensor_equal(lent, tensor));
  CHECK(pln_tensor_hash(lent) == pln_tensor_hash(tensor));
  CHECK(!pln_tensor_writable(lent));
  pln_tensor *own = new_tensor(h.child);
  pln_graph *graphs[] = {constant_in(h.child, reshaped(lent)),
                         constant_in(h.child, reshaped(own)),
                         constant_in(h.child, pln_tensor_retain(lent))};
  pln_tensor_release(own);
  pln_tensor_release(lent);
  REQUIRE_OK(pln_merge_begin(&join, h.child));
  for (size_t i = 0; i < PLN_COUNT(graphs); i++)
    graphs[i] = pln_merge_graph(&join, graphs[i]);
  pln_merge_end(&join);
  end_child(&h);
  CHECK(graphs[0]->tensors[0]->view_of == tensor);
  CHECK(graphs[1]->tensors[0]->view_of->engine == h.engine);
  CHECK(graphs[2]->tensors[0] == tensor);
  pln_tensor_release(tensor);
  for (size_t i = 0; i < PLN_COUNT(graphs); i++) {
    const float *data = NULL;
    CHECK_OK(pln_tensor_data(graphs[i]->tensors[0], (const void **)&data));
    CHECK(data[0] == 1 && data[2] == 3);
    pln_graph_release(graphs[i]);
  }
  close_home(&h);
}

static pln_status holding(pln_engine *e, pln_tensor *tensor, pln_attrs *out) {
  pln_attr entry = {.kind = PLN_ATTR_TENSOR, .v.tensor = tensor};
  PLN_TRY(pln_symbol_intern(e, pln_text("value"), &entry.name));
  return pln_attrs_make(e, 1, &entry, out);
}

static void dictionaries_hold_lent_tensors(void) {
  home h;
  pln_merge join;
  pln_attrs known = 0, again = 0, own = 0;
  open_home(&h);
  pln_tensor *tensor = new_tensor(h.engine);
  CHECK_OK(holding(h.engine, tensor, &known));
  begin_child(&h);
  const pln_attr *entry = pln_attrs_find(h.child, known, "value");
  CHECK(entry->v.tensor->engine == h.child);
  CHECK_OK(holding(h.child, entry->v.tensor, &again));
  CHECK_EQ_INT(again, known);
  pln_tensor *made = new_tensor(h.child);
  CHECK_OK(holding(h.child, made, &own));
  CHECK(own > known);
  pln_tensor_release(made);
  REQUIRE_OK(pln_merge_begin(&join, h.child));
  own = pln_merged_id(&join.attrs, own);
  pln_merge_end(&join);
  end_child(&h);
  entry = pln_attrs_find(h.engine, own, "value");
  CHECK(entry->v.tensor->engine == h.engine && entry->v.tensor != tensor);
  pln_tensor_release(tensor);
  close_home(&h);
}

/* ---------------------------------------------------------- several threads */

/* tanh(... tanh(x + 0) + 0 ...), which SimplifyExpr takes the zeros from. */
static pln_status make_chain(pln_engine *e, uint32_t length, pln_graph **out) {
  const int64_t n = 4;
  const float zero = 0;
  pln_builder *b;
  pln_type type;
  pln_tensor *tensor = NULL;
  pln_ref x, c, f;
  pln_scope body;
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 1, &n, &type));
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_tensor_from_bytes(e, PLN_FLOAT32, 0, NULL, &zero,
                                            sizeof zero, &tensor);
  if (status == PLN_OK)
    status = pln_build_open(b, &body);
  if (status == PLN_OK)
    status = pln_build_param(b, 0, type, 0, &x);
  if (status == PLN_OK)
    status = pln_build_constant(b, tensor, &c);
  for (uint32_t i = 0; i < length && status == PLN_OK; i++) {
    pln_ref both[] = {x, c};
    status = i % 2 ? pln_build_call(b, PLN_OP_ADD, 0, 0, 2, both, &x)
                   : pln_build_call(b, PLN_OP_TANH, 0, 0, 1, &x, &x);
  }
  if (status == PLN_OK)
    status = pln_build_end(b, body, x, 0);
  if (status == PLN_OK)
    status = pln_build_function(b, body, 0, 0, &f);
  if (status == PLN_OK)
    status = pln_builder_seal(b, f, out);
  pln_tensor_release(tensor);
  pln_builder_free(b);
  return status;
}

static pln_status add_chain(pln_module **all, uint32_t i) {
  char name[16];
  pln_symbol symbol;
  pln_graph *g;
  pln_module *larger = NULL;
  pln_engine *e = pln_module_engine(*all);
  snprintf(name, sizeof name, "f%u", i);
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &symbol));
  PLN_TRY(make_chain(e, 700 + 100 * i, &g));
  pln_status status = pln_module_with(*all, symbol, g, &larger);
  pln_graph_release(g);
  PLN_TRY(status);
  pln_module_release(*all);
  *all = larger;
  return PLN_OK;
}

static pln_module *chains(pln_engine *e) {
  pln_module *all = NULL;
  CHECK_OK(pln_module_new(e, &all));
  for (uint32_t i = 0; i < 6; i++)
    CHECK_OK(add_chain(&all, i));
  return all;
}

static pln_status apply(pln_engine *e, const char *pipeline, int64_t threads,
                        const pln_module *module, pln_module **out) {
  pln_pass *pass = NULL;
  pln_context *context = NULL;
  pln_context_spec spec = {.opt_level = 3};
  pln_attr n = {.kind = PLN_ATTR_INT, .v.i = threads};
  PLN_TRY(pln_symbol_intern(e, pln_text("threads"), &n.name));
  PLN_TRY(pln_attrs_make(e, 1, &n, &spec.config));
  PLN_TRY(pln_context_new(e, &spec, &context));
  pln_status status = pln_context_enter(context);
  if (status == PLN_OK) {
    status = pln_pipeline_parse(e, pln_text(pipeline), &pass);
    if (status == PLN_OK)
      status = pln_pass_apply(pass, module, out);
    pln_pass_release(pass);
    CHECK_OK(pln_context_exit(context));
  }
  pln_context_release(context);
  return status;
}

static pln_status in_threads(pln_engine *e, int64_t threads,
                             const pln_module *module, pln_module **out) {
  return apply(e, "SimplifyExpr,functions{EliminateCommonSubexpr}", threads,
               module, out);
}

static void threads_change_nothing(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *module = chains(e), *alone = NULL, *together = NULL;
  pln_buffer wanted, got;
  REQUIRE_OK(in_threads(e, 1, module, &alone));
  REQUIRE_OK(in_threads(e, 3, module, &together));
  CHECK(e->passes->thread_pool == NULL); /* they went home */
  print(e, alone, &wanted);
  print(e, together, &got);
  CHECK_STR(got.data, wanted.data);
  pln_buffer_free(&wanted);
  pln_buffer_free(&got);
  pln_module_release(alone);
  pln_module_release(together);
  pln_module_release(module);
  pln_engine_free(e);
}

/* Counts the functions that were lent. */
static pln_status count_lent(pln_pass_run *run) {
  atomic_uint *lent = pln_run_ud(run);
  if (pln_run_engine(run)->parent)
    atomic_fetch_add(lent, 1);
  return PLN_OK;
}

static void counts_lent(pln_engine *e, const char *pipeline, atomic_uint *lent,
                        unsigned wanted) {
  pln_module *module = chains(e), *out = NULL;
  atomic_store(lent, 0);
  if (CHECK_OK(apply(e, pipeline, 3, module, &out)))
    pln_module_release(out);
  pln_module_release(module);
  CHECK_EQ_INT(atomic_load(lent), wanted);
}

static void light_work_stays_at_home(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  atomic_uint lent;
  pln_pass_spec spec = {.name = "Heavy",
                        .kind = PLN_PASS_FUNCTION,
                        .parallel = true,
                        .run = count_lent,
                        .ud = &lent};
  atomic_init(&lent, 0);
  CHECK_OK(pln_pass_register(e, &spec));
  spec.name = "Light";
  spec.light = true;
  CHECK_OK(pln_pass_register(e, &spec));
  counts_lent(e, "Heavy", &lent, 6);
  counts_lent(e, "Light", &lent, 0);
  counts_lent(e, "functions{Light,Light}", &lent, 0);
  counts_lent(e, "functions{Light,Heavy}", &lent, 12);
  pln_engine_free(e);
}

/* In threads allocations come in any order; what fails in one of them may be
 * made good by the caller's thread. */
static void memory_runs_out(void) {
  for (uint64_t at = 1; at < 4000; at += 1 + at / 8) {
    oom memory = {0};
    pln_engine *e = pln_engine_new(oom_alloc, &memory);
    pln_module *module = chains(e), *out = NULL;
    memory.persistent = at % 2 == 0;
    memory.fail_at = memory.calls + at;
    pln_status status = in_threads(e, 3, module, &out);
    CHECK(status == PLN_OK || status == PLN_ERR_NOMEM);
    memory.fail_at = 0;
    pln_module_release(out);
    pln_module_release(module);
    pln_engine_free(e);
    CHECK_EQ_INT(memory.blocks, 0);
  }
}

static const check_test tests[] = {
    {"a child reads its parent's module and writes nothing of it", lends},
    {"what was lent comes back as what it is", lent_comes_back},
    {"a child's ids follow its parent's", ids_go_on},
    {"what children make is what the parent would make",
     what_is_made_comes_home},
    {"tensors and views of them change owners", tensors_change_owners},
    {"dictionaries of a child hold borrowed tensors",
     dictionaries_hold_lent_tensors},
    {"passes in three threads do what one does", threads_change_nothing},
    {"what is done sooner than lent stays at home", light_work_stays_at_home},
    {"memory runs out in a thread", memory_runs_out},
};

CHECK_MAIN(tests)
