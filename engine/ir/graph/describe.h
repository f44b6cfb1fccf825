/* describe.h: one-line descriptions of nodes and types, for messages. */

#ifndef PLN_IR_GRAPH_DESCRIBE_H
#define PLN_IR_GRAPH_DESCRIBE_H

#include "ir/graph/graph.h"

typedef struct pln_description {
  char text[512];
} pln_description;

/* Both return the text of the description, truncated with "..." when long. */
const char *pln_describe_node(const pln_graph *graph, pln_ref node,
                              pln_description *out);
const char *pln_describe_type(pln_engine *engine, pln_type type,
                              pln_description *out);

/* Adds the note "at node 7: add(...)" to the last diagnostic. The graph may be
 * invalid; unreadable parts are left out. */
void pln_note_node(const pln_graph *graph, pln_ref node);

/* Adds the node to the last error. */
void pln_annotate_node(const pln_graph *graph, pln_ref node);
/* Adds the node of a function (0: of an expression) to the last error, with its
 * span in the parsed text. */
pln_status pln_annotate_node_of(const pln_graph *graph, pln_ref node,
                                pln_symbol function) PLN_CHECKED;

#endif
