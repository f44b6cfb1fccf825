/* first_order_function.c: copies a function, or a function literal with its
 * captures as parameters, to first-order form.
 *
 * Called by Defunctionalization for each instance. Nodes are copied in order of
 * evaluation with a stack of frames: a scope, or the body of a literal that is
 * called. What always holds: an image belongs to the instance being built and
 * can be seen where its node can; functions as values are built when they are
 * first used, in the scope in which they stood; the type of a copy is that of
 * the old node with type variables bound and function types converted. */

#include "transform/functional/defunctionalization.h"

#include "ir/graph/module.h"
#include "ir/infer/type_args.h"
#include "transform/functional/expression_tree.h"
#include "transform/transform.h"

/* Limit on the nodes of one function: a literal that calls another one twice
 * doubles what is copied. */
enum { MOST_NODES = 1 << 22 };

typedef struct first_order_frame {
  pln_ref at, end; /* old nodes to copy */
  pln_scope next;  /* next row of the old scope table to open */
  pln_scope row;   /* the old scope */
  pln_scope image; /* the new one, or PLN_NONE: the body of a call */
  pln_ref call;
  pln_type bound; /* of the frame below */
} first_order_frame;

typedef struct first_order {
  pln_defunc *d;
  pln_engine *engine;
  const pln_graph *g;
  pln_defunc_source *s;
  uint32_t function; /* index in the module */
  uint32_t number;   /* of the instance, from 1 on */
  pln_ref begin;     /* the first node of the function */
  pln_type bound;
  pln_builder *b;
  pln_scope top; /* the new scope of the function */
  first_order_frame *frames;
  uint32_t n_frames, cap_frames;
  pln_ref *operands; /* scratch */
  uint32_t cap_operands;
} first_order;

/* ------------------------------------------------------------------- images
 */

static void set_image(first_order *f, pln_ref old, pln_ref image) {
  f->s->map[old] = image;
  f->s->instance[old] = f->number;
}

static pln_ref image_of(const first_order *f, pln_ref old) {
  return f->s->instance[old] == f->number ? f->s->map[old] : PLN_NONE;
}

/* The old type with its type variables bound. */
static pln_status bound_type(const first_order *f, pln_type type,
                             pln_type *out) {
  return pln_defunc_substitute(f->d, f->bound, type, out);
}

static pln_status new_type(const first_order *f, pln_ref old, pln_type *out) {
  PLN_TRY(bound_type(f, f->g->nodes[old].type, out));
  return *out ? pln_closure_convert(&f->d->closures, *out, out) : PLN_OK;
}

static bool is_generic(const first_order *f, pln_ref old) {
  return pln_type_n_vars(f->engine, f->g->nodes[old].type) > 0;
}

static pln_status refuse(const first_order *f, pln_ref old, const char *why) {
  return pln_refuse_node(f->g, old, "Defunctionalization", why);
}

/* --------------------------------------------------------- values of functions
 */

static pln_status value_of(first_order *f, pln_ref old, pln_type type,
                           pln_ref *out);

/* A call of the constructor with the captures of a literal, or none. */
static pln_status construct(first_order *f, uint32_t closure, pln_ref literal,
                            pln_ref *out) {
  const pln_closure *c = &f->d->closures.closures[closure];
  pln_type type = c->type;
  pln_symbol name = c->constructor;
  const pln_captures *all = &f->s->captures;
  uint32_t n = 0, size = pln_type_n_parts(f->engine, type) - 1;
  pln_ref *args = pln_mem_new(f->engine, (size + (size_t)1) * sizeof *args);
  pln_ref callee;
  if (!args)
    return pln_nomem(f->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = size ? all->head[literal] : PLN_NONE;
       i != PLN_NONE && status == PLN_OK; i = all->list[i].next)
    if (!pln_defunc_is_copied(&f->g->nodes[all->list[i].node]))
      status = value_of(f, all->list[i].node, 0, &args[n++]);
  if (status == PLN_OK)
    status = pln_build_constructor(f->b, name, type, &callee);
  if (status == PLN_OK)
    status = pln_build_apply(f->b, callee, 0, 0, size, args, out);
  pln_mem_free(f->engine, args, (size + (size_t)1) * sizeof *args);
  return status;
}

/* `type`: what the use of a generic function expects; 0: not known. */
static pln_status function_type(first_order *f, pln_ref old, pln_type type,
                                pln_type *out) {
  PLN_TRY(bound_type(f, f->g->nodes[old].type, out));
  if (!*out || is_generic(f, old))
    *out = type;
  if (*out && pln_type_get_kind(f->engine, *out) == PLN_TYPE_FUNC &&
      !pln_type_n_vars(f->engine, *out))
    return PLN_OK;
  return refuse(f, old,
                "a polymorphic function is used as a value of a type "
                "that is not known");
}

static pln_status build_atom_value(first_order *f, pln_ref old, pln_type type,
                                   pln_ref *out) {
  uint32_t closure;
  PLN_TRY(function_type(f, old, type, &type));
  PLN_TRY(pln_defunc_atom(f->d, f->g, old, type, &closure));
  PLN_TRY(pln_builder_derive(f->b, f->g, old));
  return construct(f, closure, PLN_NONE, out);
}

static pln_status literal_closure(first_order *f, pln_ref old, pln_type type,
                                  uint32_t *closure) {
  pln_type vars = f->g->scopes[f->g->nodes[old].data].type_params;
  pln_type bound = f->bound, args;
  uint32_t n;
  if (vars) {
    PLN_TRY(pln_defunc_match(f->d, f->g->nodes[old].type, type, &args));
    PLN_TRY(pln_defunc_extend(f->d, bound, vars,
                              pln_type_all_parts(f->engine, args, &n), &bound));
  }
  return pln_defunc_literal(f->d, f->function, old, bound, type, closure);
}

/* In the scope of the literal; that of a generic one is built for each use. */
static pln_status build_literal_value(first_order *f, pln_ref old,
                                      pln_type type, pln_ref *out) {
  uint32_t closure;
  pln_scope in = f->b->in;
  PLN_TRY(function_type(f, old, type, &type));
  PLN_TRY(literal_closure(f, old, type, &closure));
  PLN_TRY(pln_build_in(f->b, f->s->owner[old]));
  PLN_TRY(pln_builder_derive(f->b, f->g, old));
  PLN_TRY(construct(f, closure, old, out));
  PLN_TRY(pln_build_in(f->b, in));
  if (!is_generic(f, old))
    set_image(f, old, *out);
  return PLN_OK;
}

static pln_status copy_constant(first_order *f, pln_ref old, pln_ref *out) {
  PLN_TRY(pln_build_in(f->b, f->top));
  PLN_TRY(pln_copy_atom(f->b, f->g, old, out));
  set_image(f, old, *out);
  return pln_build_in(f->b, PLN_NONE);
}

static bool is_literal_here(const first_order *f, pln_ref old) {
  const pln_node *n = &f->g->nodes[old];
  return n->kind == PLN_FUNCTION && f->g->scopes[n->data].begin >= f->begin;
}

static pln_status value_of(first_order *f, pln_ref old, pln_type type,
                           pln_ref *out) {
  *out = image_of(f, old);
  if (*out != PLN_NONE)
    return PLN_OK;
  switch ((pln_kind)f->g->nodes[old].kind) {
  case PLN_GLOBAL_VAR:
  case PLN_CONSTRUCTOR:
  case PLN_OP: return build_atom_value(f, old, type, out);
  case PLN_CONSTANT:
  case PLN_ABSENT: return copy_constant(f, old, out);
  default: break;
  }
  if (is_literal_here(f, old))
    return build_literal_value(f, old, type, out);
  return refuse(f, old,
                "a polymorphic function is used inside of another "
                "function literal");
}

/* -------------------------------------------------------------------- nodes
 */

static pln_status need_operands(first_order *f, size_t n) {
  return pln_mem_grow(f->engine, (void **)&f->operands, &f->cap_operands, n + 1,
                      sizeof *f->operands);
}

/* The type of a copy: inferred, and completed by what the old one says. */
static pln_status complete_type(first_order *f, pln_ref old, pln_ref image) {
  pln_type type, met;
  bool conflict;
  pln_type *own = &f->b->graph->nodes[image].type;
  PLN_TRY(new_type(f, old, &type));
  if (!type || type == *own)
    return PLN_OK;
  PLN_TRY(pln_type_meet(f->engine, *own, type, &met, &conflict));
  if (conflict)
    return PLN_OK;
  f->b->graph->nodes[image].type = met;
  pln_type_digest_record(f->b->graph, image);
  return PLN_OK;
}

static pln_status finish_node(first_order *f, pln_ref old, pln_ref image) {
  PLN_TRY(complete_type(f, old, image));
  set_image(f, old, image);
  return PLN_OK;
}

static pln_status copy_plain(first_order *f, pln_ref old) {
  const pln_node *n = &f->g->nodes[old];
  pln_node copy = *n;
  pln_ref image;
  PLN_TRY(need_operands(f, n->count));
  for (uint32_t i = 0; i < n->count; i++) {
    PLN_TRY(value_of(f, pln_operand(f->g, old, i), 0, &image));
    f->operands[i] = image;
  }
  copy.type = 0;
  PLN_TRY(pln_builder_import_origin(f->b, f->g, old, &f->b->origin));
  PLN_TRY(pln_builder_add(f->b, &copy, n->count, f->operands, &image));
  return finish_node(f, old, image);
}

static pln_status copy_var(first_order *f, pln_ref old) {
  const pln_node *n = &f->g->nodes[old];
  pln_type type;
  pln_ref image;
  if (f->s->bound[old] && is_generic(f, old))
    return refuse(f, old, "a polymorphic function is bound to a variable");
  PLN_TRY(new_type(f, old, &type));
  PLN_TRY(pln_builder_import_origin(f->b, f->g, old, &f->b->origin));
  PLN_TRY(pln_build_var(f->b, n->attrs, type, f->s->bound[old] ? 0 : n->data,
                        &image));
  set_image(f, old, image);
  return PLN_OK;
}

static pln_status copy_let(first_order *f, pln_ref old) {
  pln_ref var = pln_operand(f->g, old, 0), value, let;
  PLN_TRY(value_of(f, pln_operand(f->g, old, 1), 0, &value));
  PLN_TRY(pln_builder_import_origin(f->b, f->g, old, &f->b->origin));
  return pln_build_let(f->b, image_of(f, var), value, &let);
}

static pln_status add_param(first_order *f, pln_ref old) {
  const pln_node *n = &f->g->nodes[old];
  pln_type type;
  pln_ref image;
  PLN_TRY(new_type(f, old, &type));
  PLN_TRY(pln_builder_import_origin(f->b, f->g, old, &f->b->origin));
  PLN_TRY(pln_build_param(f->b, n->attrs, type, 0, &image));
  set_image(f, old, image);
  return PLN_OK;
}

/* -------------------------------------------------------------------- calls
 */

/* The arguments behind the place of a first operand; `type`: the function type
 * that they are given to, or 0. */
static pln_status map_args(first_order *f, pln_ref call, pln_type type) {
  const pln_node *n = &f->g->nodes[call];
  uint32_t parts = type ? pln_type_n_parts(f->engine, type) : 0;
  PLN_TRY(need_operands(f, n->count));
  for (uint32_t i = 1; i < n->count; i++) {
    pln_type expected =
        i < parts ? pln_type_part_at(f->engine, type, i - 1) : 0;
    pln_ref arg;
    PLN_TRY(value_of(f, pln_operand(f->g, call, i), expected, &arg));
    f->operands[i] = arg;
  }
  return PLN_OK;
}

/* The type arguments of a call as a tuple, or 0, and the callee's type for
 * them. Of data without elements they may be unknown. */
static pln_status callee_type(first_order *f, pln_ref call, pln_type *args,
                              pln_type *out) {
  pln_type type = f->g->nodes[pln_operand(f->g, call, 0)].type;
  uint32_t n = pln_type_n_vars(f->engine, type), k, all;
  *args = 0;
  if (n == 0)
    return bound_type(f, type, out);
  PLN_TRY(pln_call_type_args(f->g, call, args));
  PLN_TRY(bound_type(f, *args, args));
  PLN_TRY(pln_type_generic(f->engine, type, 0, out));
  const pln_type *vars = pln_type_all_parts(f->engine, type, &all) +
                         pln_type_n_parts(f->engine, type);
  return pln_type_substitute(f->engine, *out, n, vars,
                             pln_type_all_parts(f->engine, *args, &k), out);
}

/* Type arguments are written if they were before. */
static pln_status apply(first_order *f, pln_ref call, pln_ref callee,
                        pln_type args, uint32_t n, const pln_ref *operands) {
  const pln_node *node = &f->g->nodes[call];
  pln_attrs attrs = node->attrs;
  pln_ref image;
  uint32_t k = 0;
  const pln_type *types = NULL;
  if (pln_written_type_args(f->engine, attrs)) {
    PLN_TRY(pln_attrs_without(f->engine, attrs, "type_args", &attrs));
    if (args) {
      PLN_TRY(pln_closure_convert(&f->d->closures, args, &args));
      types = pln_type_all_parts(f->engine, args, &k);
    }
  }
  PLN_TRY(pln_builder_import_origin(f->b, f->g, call, &f->b->origin));
  PLN_TRY(pln_build_apply_with_types(f->b, callee, k, types, attrs,
                                     node->results, n, operands, &image));
  return finish_node(f, call, image);
}

/* Data that holds functions by its definition would need another
 * definition. */
static pln_status check_constructor(first_order *f, pln_ref old,
                                    pln_symbol name) {
  uint32_t index, type;
  pln_type signature, plain;
  bool found;
  type = pln_module_find_constructor(f->d->module, name, &index);
  if (type == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_module_constructor_type(f->d->module, type, index, &signature));
  PLN_TRY(pln_type_generic(f->engine, signature, 0, &plain));
  for (uint32_t i = 0; i < pln_type_n_parts(f->engine, plain); i++) {
    PLN_TRY(pln_has_function(&f->d->closures,
                             pln_type_part_at(f->engine, plain, i), &found));
    if (found)
      return refuse(f, old, "its data type is defined with functions in it");
  }
  return PLN_OK;
}

/* The image of a callee that is a name; a function of the module with functions
 * in its signature becomes an instance of it, without type arguments. */
static pln_status map_name(first_order *f, pln_ref callee, pln_type type,
                           pln_type *args, pln_ref *out) {
  const pln_node *n = &f->g->nodes[callee];
  pln_type converted;
  uint32_t i, instance;
  PLN_TRY(pln_closure_convert_parts(&f->d->closures, type, &converted));
  if (n->kind == PLN_CONSTRUCTOR)
    PLN_TRY(check_constructor(f, callee, n->data));
  if (n->kind != PLN_GLOBAL_VAR || converted == type)
    return pln_copy_atom(f->b, f->g, callee, out);
  i = pln_module_find(f->d->module, n->data);
  if (i == PLN_NONE ||
      !pln_pass_applies(pln_module_function_at(f->d->module, i)))
    return refuse(f, callee,
                  "it has functions in its signature, and no body "
                  "to be rewritten");
  PLN_TRY(pln_defunc_specialize(f->d, i, *args, &instance));
  *args = 0;
  const pln_defunc_instance *in = &f->d->instances[instance];
  return pln_build_global_var(f->b, in->name, in->type, out);
}

static pln_status call_name(first_order *f, pln_ref call) {
  pln_ref callee = pln_operand(f->g, call, 0), image;
  pln_type args, type;
  PLN_TRY(callee_type(f, call, &args, &type));
  PLN_TRY(map_args(f, call, type));
  PLN_TRY(map_name(f, callee, type, &args, &image));
  return apply(f, call, image, args, f->g->nodes[call].count - 1,
               f->operands + 1);
}

/* A call of a value: of the function that applies closures of its type. */
static pln_status call_value(first_order *f, pln_ref call) {
  pln_ref callee = pln_operand(f->g, call, 0), value, name;
  pln_type type;
  uint32_t index;
  PLN_TRY(function_type(f, callee, 0, &type));
  PLN_TRY(value_of(f, callee, 0, &value));
  PLN_TRY(map_args(f, call, type));
  f->operands[0] = value;
  PLN_TRY(pln_closure_type_find(&f->d->closures, type, &index));
  const pln_closure_type *t = &f->d->closures.types[index];
  PLN_TRY(pln_build_global_var(f->b, t->apply, t->apply_type, &name));
  return apply(f, call, name, 0, f->g->nodes[call].count, f->operands);
}

static pln_status push_frame(first_order *f, first_order_frame frame) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->frames, &f->cap_frames,
                       (size_t)f->n_frames + 1, sizeof *f->frames));
  f->frames[f->n_frames++] = frame;
  return PLN_OK;
}

/* Copies the body of a literal in the place of its call. */
static pln_status call_literal(first_order *f, pln_ref call) {
  pln_ref callee = pln_operand(f->g, call, 0);
  pln_scope body = f->g->nodes[callee].data;
  const pln_scope_row *row = &f->g->scopes[body];
  pln_type args, type, before = f->bound;
  uint32_t n;
  PLN_TRY(callee_type(f, call, &args, &type));
  PLN_TRY(map_args(f, call, type));
  for (uint32_t i = 0; i < row->n_params; i++)
    set_image(f, row->begin + i, f->operands[i + 1]);
  if (args)
    PLN_TRY(pln_defunc_extend(f->d, f->bound, row->type_params,
                              pln_type_all_parts(f->engine, args, &n),
                              &f->bound));
  return push_frame(f, (first_order_frame){.at = row->begin + row->n_params,
                                           .end = row->end,
                                           .next = body + 1,
                                           .row = body,
                                           .image = PLN_NONE,
                                           .call = call,
                                           .bound = before});
}

static pln_status copy_call(first_order *f, pln_ref old) {
  const pln_node *n = &f->g->nodes[old];
  if (!pln_has_callee(n))
    return copy_plain(f, old);
  pln_ref callee = pln_operand(f->g, old, 0);
  pln_kind kind = (pln_kind)f->g->nodes[callee].kind;
  if (kind == PLN_GLOBAL_VAR || kind == PLN_CONSTRUCTOR)
    return call_name(f, old);
  return is_literal_here(f, callee) ? call_literal(f, old) : call_value(f, old);
}

/* ------------------------------------------------------------------- owners
 */

static pln_status build_match(first_order *f, pln_ref old, pln_ref data,
                              pln_ref *out) {
  const pln_attr *mark =
      pln_attrs_find(f->engine, f->g->nodes[old].attrs, "complete");
  uint32_t n = pln_node_n_scopes(f->g, old);
  size_t size = (n + (size_t)1) * sizeof(pln_scope);
  pln_scope *arms = pln_mem_new(f->engine, size);
  if (!arms)
    return pln_nomem(f->engine);
  pln_scope arm = f->g->nodes[old].data;
  for (uint32_t i = 0; i < n; i++, arm = f->g->scopes[arm].next)
    arms[i] = f->s->scopes[arm];
  pln_status status =
      pln_build_match(f->b, data, mark && mark->v.i, n, arms, out);
  pln_mem_free(f->engine, arms, size);
  return status;
}

static pln_status build_owner(first_order *f, pln_ref old, pln_ref *out) {
  const pln_node *n = &f->g->nodes[old];
  const pln_scope *images = f->s->scopes;
  pln_ref data = PLN_NONE;
  if (n->count)
    PLN_TRY(value_of(f, pln_operand(f->g, old, 0), 0, &data));
  PLN_TRY(pln_builder_import_origin(f->b, f->g, old, &f->b->origin));
  switch ((pln_kind)n->kind) {
  case PLN_FUNCTION:
    return pln_build_function(f->b, images[n->data], n->attrs, 0, out);
  case PLN_LET_BLOCK: return pln_build_let_block(f->b, images[n->data], out);
  case PLN_IF:
    return pln_build_if(f->b, data, images[n->data],
                        images[f->g->scopes[n->data].next], n->attrs,
                        n->results, out);
  case PLN_MATCH: return build_match(f, old, data, out);
  default: return refuse(f, old, "it cannot be copied");
  }
}

static pln_status copy_owner(first_order *f, pln_ref old) {
  pln_ref image;
  if (f->g->nodes[old].kind == PLN_FUNCTION && !f->s->of_operator[old]) {
    f->s->owner[old] = pln_builder_current_scope(f->b);
    f->s->instance[old] = 0; /* its value is built when it is used */
    return PLN_OK;
  }
  PLN_TRY(build_owner(f, old, &image));
  if (f->g->nodes[old].kind != PLN_FUNCTION)
    return finish_node(f, old, image);
  set_image(f, old, image);
  return PLN_OK;
}

/* ------------------------------------------------------------------- frames
 */

/* The pattern of an arm of a Match, whose variables have images. */
static pln_status copy_pattern(first_order *f, pln_scope arm) {
  const pln_scope_row *row = &f->g->scopes[arm];
  PLN_TRY(pln_copy_pattern(f->b, f->g, arm, f->s->map));
  for (pln_ref ref = row->begin + row->n_params; ref < row->end; ref++) {
    const pln_node *n = &f->g->nodes[ref];
    if (n->kind == PLN_CLAUSE)
      break;
    if (n->kind == PLN_PATTERN_CONSTRUCTOR)
      PLN_TRY(check_constructor(f, ref, n->data));
    if (pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN)
      PLN_TRY(complete_type(f, ref, f->s->map[ref]));
  }
  return PLN_OK;
}

static pln_status open_scope(first_order *f, const first_order_frame *below) {
  pln_scope old = below->next;
  const pln_scope_row *row = &f->g->scopes[old];
  first_order_frame frame = {.at = row->begin + row->n_params,
                             .end = row->end,
                             .next = old + 1,
                             .row = old,
                             .call = PLN_NONE,
                             .bound = f->bound};
  PLN_TRY(pln_build_open(f->b, &frame.image));
  f->s->scopes[old] = frame.image;
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(add_param(f, row->begin + i));
  if (f->g->nodes[row->owner].kind == PLN_MATCH)
    PLN_TRY(copy_pattern(f, old));
  return push_frame(f, frame);
}

/* Goes on at a literal itself, behind its scopes. Rows are sorted by begin. */
static void skip_literal(const first_order *f, first_order_frame *frame,
                         pln_ref literal) {
  pln_scope low = frame->next, high = f->g->n_scopes;
  while (low < high) {
    pln_scope middle = low + (high - low) / 2;
    if (f->g->scopes[middle].begin <= literal)
      low = middle + 1;
    else
      high = middle;
  }
  frame->next = low;
  frame->at = literal;
}

static pln_status begin_row(first_order *f, first_order_frame *frame) {
  pln_ref owner = f->g->scopes[frame->next].owner;
  if (f->g->nodes[owner].kind != PLN_FUNCTION || f->s->of_operator[owner])
    return open_scope(f, frame);
  skip_literal(f, frame, owner);
  return PLN_OK;
}

static pln_status end_frame(first_order *f) {
  first_order_frame frame = f->frames[f->n_frames - 1];
  const pln_scope_row *row = &f->g->scopes[frame.row];
  pln_ref result;
  PLN_TRY(value_of(f, row->result, 0, &result));
  f->n_frames--;
  f->bound = frame.bound;
  if (frame.call != PLN_NONE) {
    set_image(f, frame.call, result);
    return PLN_OK;
  }
  f->frames[f->n_frames - 1].at = frame.end;
  f->frames[f->n_frames - 1].next = frame.next;
  return pln_build_end(f->b, frame.image, result, row->attrs);
}

static pln_status copy_node(first_order *f, pln_ref old) {
  const pln_node *n = &f->g->nodes[old];
  if (f->b->graph->n_nodes > MOST_NODES)
    return pln_diag_error(f->engine, PLN_ERR_LIMIT, NULL,
                          "Defunctionalization: a function would have more "
                          "than %u nodes",
                          (unsigned)MOST_NODES);
  if (pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN)
    return PLN_OK; /* copied with the scope */
  if (pln_owns(n))
    return copy_owner(f, old);
  switch ((pln_kind)n->kind) {
  case PLN_GLOBAL_VAR:
  case PLN_CONSTRUCTOR:
  case PLN_OP:
  case PLN_CONSTANT:
  case PLN_ABSENT: return PLN_OK; /* when they are used */
  case PLN_VAR: return copy_var(f, old);
  case PLN_LET: return copy_let(f, old);
  case PLN_CALL: return copy_call(f, old);
  case PLN_MATCH: return copy_owner(f, old); /* without arms */
  default: return copy_plain(f, old);
  }
}

/* The first frame ends the loop: its result is left to the caller. */
static pln_status copy_body(first_order *f) {
  for (;;) {
    first_order_frame *frame = &f->frames[f->n_frames - 1];
    bool inside = frame->next < f->g->n_scopes &&
                  f->g->scopes[frame->next].begin == frame->at &&
                  f->g->scopes[frame->next].owner < frame->end;
    if (inside)
      PLN_TRY(begin_row(f, frame));
    else if (frame->at < frame->end)
      PLN_TRY(copy_node(f, frame->at++));
    else if (f->n_frames > 1)
      PLN_TRY(end_frame(f));
    else
      return PLN_OK;
  }
}

/* -------------------------------------------------------------- an instance
 */

/* The captures of a literal as parameters. */
static pln_status add_captures(first_order *f, pln_ref literal) {
  const pln_captures *c = &f->s->captures;
  for (uint32_t i = c->head[literal]; i != PLN_NONE; i = c->list[i].next) {
    pln_ref node = c->list[i].node, image;
    const pln_node *n = &f->g->nodes[node];
    pln_symbol name = n->kind == PLN_VAR ? n->attrs : 0;
    pln_type type;
    if (pln_defunc_is_copied(n))
      continue;
    if (!name)
      PLN_TRY(pln_symbol_intern(f->engine, pln_text("c"), &name));
    PLN_TRY(new_type(f, node, &type));
    PLN_TRY(pln_builder_derive(f->b, f->g, node));
    PLN_TRY(pln_build_param(f->b, name, type, 0, &image));
    set_image(f, node, image);
  }
  return PLN_OK;
}

/* In the body of a literal, its own name is the value that was called, made
 * again. */
static pln_status bind_self(first_order *f, pln_ref literal, uint32_t closure) {
  pln_ref self = f->s->captures.self[literal], value;
  if (self == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_builder_derive(f->b, f->g, literal));
  PLN_TRY(construct(f, closure, literal, &value));
  set_image(f, self, value);
  return PLN_OK;
}

static pln_status build_function(first_order *f, const pln_defunc_instance *in,
                                 pln_ref *out) {
  pln_scope body = f->g->nodes[in->node].data;
  const pln_scope_row *row = &f->g->scopes[body];
  pln_ref result;
  PLN_TRY(pln_build_open(f->b, &f->top));
  if (in->closure != PLN_NONE)
    PLN_TRY(add_captures(f, in->node));
  for (uint32_t i = 0; i < row->n_params; i++)
    PLN_TRY(add_param(f, row->begin + i));
  if (in->closure != PLN_NONE)
    PLN_TRY(bind_self(f, in->node, in->closure));
  PLN_TRY(push_frame(f, (first_order_frame){.at = row->begin + row->n_params,
                                            .end = row->end,
                                            .next = body + 1,
                                            .row = body,
                                            .image = f->top,
                                            .call = PLN_NONE,
                                            .bound = f->bound}));
  PLN_TRY(copy_body(f));
  PLN_TRY(value_of(f, row->result, 0, &result));
  PLN_TRY(pln_build_end(f->b, f->top, result, row->attrs));
  PLN_TRY(pln_builder_import_origin(f->b, f->g, in->node, &f->b->origin));
  return pln_build_function(
      f->b, f->top, f->g->nodes[in->node].attrs,
      pln_type_part_at(f->engine, in->type,
                       pln_type_n_parts(f->engine, in->type) - 1),
      out);
}

static pln_status build_graph(first_order *f, pln_defunc_instance in,
                              pln_graph **out) {
  pln_ref root;
  PLN_TRY(pln_builder_new(f->engine, &f->b));
  pln_builder_module(f->b, f->d->module);
  f->b->lenient = pln_module_was_onnx(f->d->module);
  if (f->g->origins)
    f->b->graph->origins = pln_origins_retain(f->g->origins);
  PLN_TRY(build_function(f, &in, &root));
  return pln_builder_seal(f->b, root, out);
}

pln_status pln_first_order_function(pln_defunc *d, uint32_t instance) {
  pln_defunc_instance in = d->instances[instance];
  first_order f = {.d = d,
                   .engine = d->engine,
                   .function = in.function,
                   .number = instance + 1,
                   .bound = in.bound};
  pln_graph *graph = NULL;
  PLN_TRY(pln_defunc_source_of(d, in.function, &f.s));
  f.g = f.s->graph;
  f.begin = f.g->scopes[f.g->nodes[in.node].data].begin;
  pln_status status = build_graph(&f, in, &graph);
  pln_builder_free(f.b);
  pln_mem_free(d->engine, f.frames, f.cap_frames * sizeof *f.frames);
  pln_mem_free(d->engine, f.operands, f.cap_operands * sizeof *f.operands);
  d->instances[instance].graph = graph;
  return status;
}
