/* describe.h: nodes and types in a line, for messages. */

#ifndef PLN_IR_GRAPH_DESCRIBE_H
#define PLN_IR_GRAPH_DESCRIBE_H

#include "ir/graph/graph.h"

typedef struct pln_description {
  char text[512];
} pln_description;

/* Both return the description's text, cut off with "..." when it is long. */
const char *pln_describe_node(const pln_graph *graph, pln_ref node,
                              pln_description *out);
const char *pln_describe_type(pln_engine *engine, pln_type type,
                              pln_description *out);

/* Adds the note "at node 7: add(...)" to what was just reported; of a graph
 * that breaks the rules, too: what cannot be read is left out. */
void pln_note_node(const pln_graph *graph, pln_ref node);

/* Adds the node to the error that was just reported. */
void pln_annotate_node(const pln_graph *graph, pln_ref node);
/* Adds the node of a function (0: of an expression) to the error that was just
 * reported, and where it stands in the text that it was read from. */
pln_status pln_annotate_node_of(const pln_graph *graph, pln_ref node,
                                pln_symbol function) PLN_CHECKED;

#endif
