---@meta perilune
--- What editors show: every name of `require "perilune"`, in LuaCATS.

--- A failure or remark. tostring() prints it as a compiler does.
---@class perilune.Diag
---@field severity "note"|"warning"|"error"
---@field code "memory"|"argument"|"type"|"format"|"io"|"unsupported"|"limit"|"name"|"invalid"|"callback"
---@field message string one sentence
---@field text string as a compiler prints it
---@field span? { source?: string, line?: string, row?: integer, column?: integer, end_column?: integer }
---@field notes perilune.Diag[] of a failed pass: the node, the hook, the place in the pipeline
---@field pass? string the pass written in Lua that raised it
---@field cause? any what the script raised
---@field traceback? string

---@alias perilune.TypeKind
---| "incomplete"|"tensor"|"tuple"|"func"|"ref"|"var"
---| "call"|"sequence"|"optional"|"map"|"sparse"|"opaque"
---| "global_var"|"relation"|"hole"|"prim"|"pointer"

--- The type of an expression. One object a type: == and table keys work. A list that
--- it gives (shape, parts, ...) is a fresh copy: changing it does not change the type.
---@class perilune.Type
---@field kind perilune.TypeKind
---@field dtype? string nil when not known
---@field rank? integer nil when not known
---@field shape? (integer|string)[] an integer, "?" or an expression such as "N+1"
---@field parts perilune.Type[] fields; parameters and the result; the element type
---@field name? string
---@field params? perilune.Type[] func
---@field ret_type? perilune.Type func
---@field type_params? perilune.Type[] func
---@field constraints? perilune.Type[] func
---@field element? perilune.Type ref, sequence, optional, sparse, pointer
---@field var_kind? string var: "Type", "ShapeVar", ...
---@field lanes? integer prim, and of a tensor's elements
---@field n_inputs? integer relation
---@field attrs? perilune.Attrs relation
local Type = {}
--- Calls f with each distinct part, then with the type itself.
---@param f fun(part: perilune.Type)
function Type:visit(f) end
--- The type with f(part) in place of each part, parts first; nil leaves one as it is.
---@param f fun(part: perilune.Type): (perilune.Type|string|nil)
---@return perilune.Type
function Type:map(f) end
--- The type with others in place of type variables.
---@param map { [perilune.Type]: perilune.Type|string }
---@return perilune.Type
function Type:substitute(map) end
--- The type that both must be, or nil.
---@param other perilune.Type|string
---@return perilune.Type?
function Type:unify(other) end

--- Attributes of a call or function: a read-only table; pairs in order of names.
---@class perilune.Attrs
---@field [string] any

--- An operator: callable, with operands and a last table of attributes. Names in it
--- are those of `attrs` or of `relay`; one that only `relay` has makes the call mean
--- what Relay's text would: `op.sum(x, { axis = 1 })` drops the axis,
--- `op.sum(x, { axes = { 1 } })` keeps it, as ONNX does.
---@class perilune.Op
---@field name string
---@field doc string
---@field attrs string the schema: "axis:int=1 axes:ints"
---@field relay? string Relay's, in its text's order: "axis>axes:ints= keepdims:bool=0"
---@field min_args integer
---@field max_args? integer nil: any number
---@field traits { [string]: true }
---@field has_kernel boolean whether it can be evaluated
---@field registered boolean whether a script or the host registered it; then it has these, too:
---@field args? { name: string, optional: boolean, variadic: boolean }[]
---@field results? integer
---@field onnx? { domain: string, op_type: string, since_version: integer }
---@overload fun(...: perilune.Operand|table): perilune.Node

--- What a script assigns to pl.ops["my.op"].
---@class perilune.OperatorSpec
--- The operands in order: "x", "bias?" (optional), "xs..." (any number, at least one; the last one), "xs...?".
---@field args? (string|{ name: string, optional?: boolean, variadic?: boolean })[]
--- Attributes: a default, whose kind is the attribute's, or a description. Without a default and not required an
--- attribute may be missing.
---@field attrs? { [string]: integer|number|string|boolean|any[]|perilune.OperatorAttribute }
--- How results are typed: like the first operand, like another one, by broadcasting, or by a function: it is called when
--- the dtypes and ranks of all operands are known, with their types by number and by name (nil: omitted), and the
--- attributes with their defaults. It gives a type or its text, one for each result; nil: unknown; nil and a reason: the
--- call is wrong. Without it: like the first operand for the trait elementwise, broadcasting for broadcast, else unknown.
---@field infer? "same"|"broadcast"|{ same_as: string|integer }|fun(types: table, attrs: perilune.Attrs): any, ...
--- Computes a call: the tensors of its operands by number and by name, and the attributes; gives a tensor, a number or a
--- nested table for each result. nil and a reason: there is no result, and the call is not folded.
---@field eval? fun(inputs: table, attrs: perilune.Attrs): any, ...
--- "pure" (unless one of the next two), "stateful", "random"; "commutative", "associative", "idempotent"; for FuseOps one
--- of "elementwise", "broadcast", "injective", "reduce", "opaque". "values": operands and the result may also be tuples
--- and sequences, which are tables of their parts, and optionals and maps; such calls are not folded.
---@field traits? string[]|{ [string]: boolean }
---@field results? integer|string[] how many; a call with several gives a tuple
---@field doc? string
---@field onnx? perilune.OperatorNode

---@class perilune.OperatorAttribute
---@field kind? "int"|"bool"|"float"|"string"|"tensor"|"type"|"ints"|"floats"|"strings" the default's unless given
---@field default? any
---@field required? boolean

--- The node of a custom domain that a call is in ONNX.
---@class perilune.OperatorNode
---@field domain string
---@field op_type string
---@field since_version? integer the first version of the domain that has it: 1
---@field inputs? string[] all operands, in the order of the node's inputs
---@field attributes? { [string]: string } attributes that ONNX names otherwise

--- How a tensor differs from the expected one.
---@class perilune.Difference
---@field what? "dtype"|"shape"|"elements" nil: it does not
---@field largest number the largest difference of two elements, of those that agree too
---@field differing integer number of elements that do not agree
---@field index? integer[] of the first of them, as Tensor:get takes it
---@field got? string that element
---@field expected? string

---@class perilune.CheckOptions
---@field rounds? integer rounds with generated inputs: 6, with data 0
---@field seed? integer of the first round; 1
---@field dims? table<string, integer> fixed sizes of symbolic dims
---@field shapes? table<string|integer, (integer|"?")[]> of inputs by name or position: fixed sizes
---@field example? table<string|integer, integer[]> where the search for sizes begins
---@field data? table<string|integer, any>[] sets of values by name or position of the input; missing ones are generated
---@field rtol? number 1e-5
---@field atol? number 1e-5
---@field scaled? boolean true
---@field units? integer 0

---@class perilune.EqualOptions
---@field map_free_vars? boolean free variables may be mapped to each other
---@field contents? boolean constants over 1 KiB are compared by content

--- A dense array of elements. `t == u` compares handles; `t:equal(u)` compares elements.
---@class perilune.Tensor
---@field dtype string
---@field shape integer[] a fresh copy: changing it does not change the tensor
---@field rank integer
---@field size integer number of elements
---@field bytes integer
---@field splat boolean whether all elements are one stored element
local Tensor = {}
--- Nested tables, or the value of a scalar.
---@return any
function Tensor:to_table() end
--- Little-endian elements, row by row.
---@return string
function Tensor:to_bytes() end
--- One element; indices from 1.
---@param ... integer
---@return any
function Tensor:get(...) end
---@param other perilune.Tensor
---@return boolean
function Tensor:equal(other) end
--- Whether the tensor is the expected one within a tolerance, and how it differs.
---@param expected perilune.Tensor
---@param options? { rtol?: number, atol?: number, scaled?: boolean }
---@return boolean ok
---@return perilune.Difference how
function Tensor:compare(expected, options) end
---@param path string
---@return true? ok
---@return perilune.Diag? diag
function Tensor:save_npy(path) end
---@return string? bytes
---@return perilune.Diag? diag
function Tensor:to_npy() end
function Tensor:close() end

--- What constructors take as an operand: numbers become constants of the other
--- operand's dtype, tables and tensors constants, nil the omitted operand.
---@alias perilune.Operand perilune.Node|perilune.Tensor|number|boolean|table|nil

--- How text is made. `constants`: "complete" (the default) has the elements of all, and of those
--- over 1 MiB that lie in a file its name and their place; "embedded" has the elements of all;
--- "brief" has dtype, shape and a hash of those over 64 elements, and the place of those over 1 MiB
--- in a file. `hash_references`: references to constants show the hash and no number, for comparing
--- texts. `limit`: cut off after about that many bytes. `metadata` = false: no metadata section.
--- `verbose_expr`: a PrimExpr stands behind declarations of what it uses.
---@class perilune.TextOptions
---@field constants? "complete"|"embedded"|"brief"
---@field hash_references? boolean
---@field limit? integer
---@field metadata? boolean
---@field verbose_expr? boolean

--- A part of a text; rows and columns are from 1, columns in bytes. The end is behind the last character.
---@class perilune.Span
---@field source? string
---@field row? integer
---@field column? integer
---@field end_row? integer
---@field end_column? integer

--- A node of a function: a view, unique per graph, usable as a table key. Which
--- fields there are depends on `kind`; node[i] is operand i, #node their number.
--- A list that it gives (args, params, fields, ...) is a fresh copy: changing it does
--- not change the node.
---@class perilune.Node
---@field kind perilune.Kind
---@field type perilune.Type
---@field span? perilune.Span where it stands in the text that it was parsed from, or that a pass says
---@field op? perilune.Op Call
---@field callee? perilune.Node Call of an expression
---@field args? perilune.Node[] Call
---@field attrs perilune.Attrs Call, Function
---@field n_results integer 0: a plain value; k: a tuple of k results
---@field fields? perilune.Node[] Tuple
---@field tuple? perilune.Node TupleGetItem
---@field dtype? string TIR: "int32", "float32x4", "handle"
---@field value? any IntImm, FloatImm, StringImm: the number or text; else an operand
---@field lanes? integer Ramp, Broadcast
---@field builtin? string PrimCall of a builtin
---@field iter_type? integer IterVar
---@field stmts? perilune.Node[] TIR: the statements of its (first) body
---@field loop_var? perilune.Node For
---@field shape? perilune.Node[] Buffer
---@field strides? perilune.Node[] Buffer
---@field elem_offset? perilune.Node Buffer
---@field result? perilune.Node[] CommReducer: what it makes of its lhs and rhs
---@field identity_element? perilune.Node[] CommReducer
---@field source? perilune.Node|perilune.Node[] MatchBuffer: its region; Reduce: what it reduces
---@field init? perilune.Node[] Reduce: what it starts from
---@field axis? perilune.Node[] Reduce: IterVars
---@field value_index? integer Reduce, from 0
---@field index? integer TupleGetItem, from 0
---@field params? perilune.Node[] Function
---@field body? perilune.Node Function, Let, LetBlock, For
---@field scope_attrs? perilune.Attrs of the first scope: an ONNX graph's name, input_names, output_names
---@field ret_type? perilune.Type Function
---@field type_params? perilune.Type[] Function
---@field clauses? perilune.Node[] Match
---@field complete? boolean Match: its arms cover every value
---@field lhs? perilune.Node|perilune.Node[] Clause: its pattern; CommReducer: Vars
---@field rhs? perilune.Node|perilune.Node[] Clause: what its arm evaluates to; CommReducer: Vars
---@field patterns? perilune.Node[] PatternConstructor, PatternTuple
---@field constructor? string PatternConstructor
---@field cond? perilune.Node If
---@field true_branch? perilune.Node If
---@field false_branch? perilune.Node If
---@field var? perilune.Node Let, PatternVar
---@field value? perilune.Node Let, RefCreate, RefWrite
---@field ref? perilune.Node RefRead, RefWrite
---@field name? string Var, GlobalVar, Constructor
---@field data? perilune.Tensor|perilune.Node Constant; Match
---@field known? any the integers a shape-like value is known to hold
---@field effect "none"|"reads"|"writes"|"unknown"
---@operator add(perilune.Operand): perilune.Node
---@operator sub(perilune.Operand): perilune.Node
---@operator mul(perilune.Operand): perilune.Node
---@operator div(perilune.Operand): perilune.Node
---@operator idiv(perilune.Operand): perilune.Node
---@operator mod(perilune.Operand): perilune.Node
---@operator pow(perilune.Operand): perilune.Node
---@operator unm: perilune.Node
---@operator call(...): perilune.Node
local Node = {}
--- The nodes inside a function (or another owner of scopes), in the order of
--- evaluation, parameters first.
---@return fun(): perilune.Node?
function Node:nodes() end
--- A picture in the language of Graphviz: `dot -Tsvg`.
---@return string
function Node:dot() end
--- The node and all it needs as JSON: nodes, scopes, types, attributes.
---@return string
function Node:json() end
--- The complete Relay text, which pl.parse_expr reads back: the program and the constants that it
--- refers to. tostring(node) has the constants too, but of large ones without the elements.
---@param options? perilune.TextOptions
---@return string
function Node:text(options) end
--- What made the node, newest first: passes and their rules, at the end where it came from. A merged node has two
--- in `from`; the history goes on with the one that stayed. Where nodes change again and again, the oldest changes are
--- left out: there are at most 16 a node, over a whole graph.
---@return perilune.HistoryRow[]
function Node:history() end
--- A copy with other fields; attributes are merged.
---@param changes table
---@return perilune.Node
function Node:with(changes) end
--- Field `index`, from 0, of a tuple-valued node.
---@param index integer
---@return perilune.Node
function Node:get(index) end
--- All results of a tuple-valued node.
---@return perilune.Node ...
function Node:unpack() end
---@return true? ok
---@return perilune.Diag? diag
function Node:verify() end
---@param other perilune.Operand
---@return perilune.Node
function Node:less(other) end
---@param other perilune.Operand
---@return perilune.Node
function Node:less_equal(other) end
---@param other perilune.Operand
---@return perilune.Node
function Node:greater(other) end
---@param other perilune.Operand
---@return perilune.Node
function Node:greater_equal(other) end
---@param other perilune.Operand
---@return perilune.Node
function Node:equal(other) end
---@param other perilune.Operand
---@return perilune.Node
function Node:logical_and(other) end
---@param other perilune.Operand
---@return perilune.Node
function Node:logical_or(other) end
---@return perilune.Node
function Node:logical_not() end

--- The definition of an algebraic data type.
---@class perilune.DataType
---@field name string
---@field vars perilune.Type[] its type variables
---@field extern boolean
---@field constructors { name: string, inputs: perilune.Type[], type: perilune.Type }[]

--- An immutable map from names to functions. `mod == other` compares handles.
---@class perilune.Module
---@field functions { [string]: perilune.Node } a view, which pairs and # work on; it never changes
---@field names string[]
---@field attrs perilune.Attrs
---@field types { [string|integer]: perilune.DataType } in order, and by name
---@field [string] perilune.Node
local Module = {}
--- With functions added or replaced, all at once. Callers of one whose signature changes are typed
--- again; raises with the call when one does not fit any more, and with a constructor that the
--- module does not define, or with other fields: types come first (with_type).
---@param functions { [string]: perilune.Node }
---@return perilune.Module
function Module:with(functions) end
--- Without a function, or without those in a list: one copy for all of them.
---@param name string|string[]
---@return perilune.Module
function Module:without(name) end
---@param attrs table
---@return perilune.Module
function Module:with_attrs(attrs) end
--- With a data type added, or replaced under its name. Variables are type variables or
--- names for new ones, which the texts of inputs may use.
---@param definition { name: string, vars?: (string|perilune.Type)[], extern?: boolean, constructors?: table[] }
--- each of its constructors: { name = string, inputs = list of types or texts }
---@return perilune.Module
function Module:with_type(definition) end
--- A number for a symbolic dim, in every type.
---@param name string
---@param size integer
---@return perilune.Module? mod
---@return perilune.Diag? diag
function Module:fix_dim(name, size) end
--- The complete Relay text, which pl.parse reads back equal. tostring(mod) is for people: it has
--- dtype, shape and a hash in place of the elements of constants over 64 elements.
---@param options? perilune.TextOptions
---@return string
function Module:text(options) end
--- Dims for an input of main, "?" for one that stays as it is. Symbols that they tell (N, or
--- 2*N+1) have that size in every type.
---@param input string
---@param dims (integer|"?")[]
---@return perilune.Module? mod
---@return perilune.Diag? diag
function Module:fix_shape(input, dims) end
--- A picture in the language of Graphviz, functions and scopes as clusters.
---@return string
function Module:dot() end
--- All functions as JSON: nodes, scopes, types, attributes.
---@return string
function Module:json() end
function Module:close() end

---@class perilune.PassInfo
---@field name string
---@field opt_level integer
---@field required string[]
---@field traceable boolean it records its decisions itself (tuning passes); a trace does not note it
---@field parallel boolean it may run in several threads
---@field form "primitive"|"sequential"|"fixpoint"|"try"|"if_changed"|"functions"

---@class perilune.Option
---@field name string
---@field type "boolean"|"integer"|"number"|"string"|"integers"|"numbers"|"strings"|"table"
---@field default any
---@field doc string
---@field choices string? of strings: the values they may have, "a|b"
---@field least number? of numbers
---@field most number?
---@field fields perilune.Option[]? of a table

--- An option as a script declares it; its type is the default's. Where a name stands
--- for it, a default alone will do: options = { depth = 3 }.
---@class perilune.OptionSpec
---@field name? string
---@field default? boolean|number|string|integer[]|number[]|string[]
---@field type? string needed for an empty list ("integers", "numbers" or "strings"), and for
--- numbers whose default is whole ("number", "numbers")
---@field doc? string
---@field choices? string|string[]
---@field least? number
---@field most? number
---@field fields? table in place of a default: options of which it is made

--- A pass: called with a module, and a context to run in.
---@class perilune.Pass
---@field info perilune.PassInfo
---@field name string
---@field kind "module"|"function"|"prim_func"|"sequential"
---@field opt_level integer
---@field required string[]
---@field cacheable boolean results may be kept and given again
---@field changes_spans boolean a result that differs in spans only is a change
---@field handles? perilune.Feature[] the features of programs that it handles; nil: all
---@field skips_unhandled boolean programs with others stay as they are
---@field doc string
---@field source string? of a pass written in Lua: the chunk it comes from, "@deploy.lua"
---@field options perilune.Attrs as given
---@field option_rows perilune.Option[]
---@field form "primitive"|"sequential"|"fixpoint"|"try"|"if_changed"|"functions"
---@field passes perilune.Pass[] of what is made of passes
---@field otherwise perilune.Pass[]? of a try: the passes of `else`
---@field rounds integer? of a fixpoint: the most it runs
---@field [string] any of a pass of a class: what its instance has
---@overload fun(mod: perilune.Module, ctx?: perilune.Context): perilune.Module

--- A class of passes; calling it makes one, with the arguments of `init`.
---@class perilune.PassClass
---@field name string
---@field kind? "function"|"module"|"prim_func"
---@field opt_level? integer
---@field required? string[]
---@field traceable? boolean
---@field heuristic? boolean the contrary of traceable
---@field changes_spans? boolean
---@field doc? string
---@field options? (perilune.OptionSpec|any)[]
---@field init? fun(self: table, ...)
---@field run fun(self: table, fn: perilune.Node, mod: perilune.Module, ctx: perilune.Context): perilune.Node?
---@overload fun(...): perilune.Pass

---@class perilune.PassSpec
---@field name? string
---@field kind? "function"|"module"|"prim_func"
---@field opt_level? integer
---@field required? string[]
---@field traceable? boolean
--- It may run in several threads (config key `threads`): it looks at nothing but its function and at types. A function of
--- a file, which each thread loads again, without arguments, into a Lua state of its own: upvalues are not shared.
---@field parallel? boolean
---@field cache? boolean the result depends on the function, the options and the source only
--- Spans are part of the result: one that differs from the input in nothing else is a change. Without this
--- it is an equal copy, and the input stays.
---@field changes_spans? boolean
--- The features of programs (pl.features) that it handles; all unless it is given. A function (of a
--- module pass: a module) with another one is an error, or stays as it is with `unhandled = "skip"`.
---@field handles? perilune.Feature[]
---@field unhandled? "refuse"|"skip"
---@field doc? string
---@field options? (perilune.OptionSpec|any)[] rows in order, or name = row, or name = default
---@field run fun(fn: perilune.Node, mod: perilune.Module, ctx: perilune.Context): perilune.Node?

---@class perilune.PassConstructor
---@field name string
---@field kind string
---@field opt_level integer
---@field required string[]
---@field doc string
---@field options perilune.Option[]
---@overload fun(options?: table): perilune.Pass

--- Hooks are plain functions, called without the instrument. What they have to
--- remember stands in locals around them; other fields are for whoever reads them:
---     local seen = {}
---     local mine = { seen = seen, before = function(_, info) seen[#seen + 1] = info.name end }
---@class perilune.Instrument
---@field name? string
---@field enter? fun(ctx: perilune.Context)
---@field exit? fun(ctx: perilune.Context)
---@field should_run? fun(mod: perilune.Module, info: perilune.PassInfo, pass: perilune.Pass): boolean
---@field before? fun(mod: perilune.Module, info: perilune.PassInfo, pass: perilune.Pass)
---@field after? fun(mod: perilune.Module, info: perilune.PassInfo, pass: perilune.Pass)

--- What pl.context takes.
---@class perilune.ContextSpec
---@field opt_level? integer 2 when not given
---@field required? string[]
---@field disabled? string[]
---@field only? string[]
---@field instruments? perilune.Instrument[]
---@field config? table registered keys, "key.field", "Pass.option" or Pass = { option = value }
---@field target? perilune.Target|string|table
---@field trace? perilune.tune.Trace|perilune.Module what passes did is recorded in it (pl.tune.tracing)
---@field trace_stack? perilune.tune.Trace[]
---@field make_traceable? string[]
---@field tuning_api_database? perilune.tune.Database

--- What passes run in.
---@class perilune.Context
---@field opt_level integer
---@field required string[]
---@field disabled string[] "FoldConstant:2" is the second time that a run comes to one
---@field only string[] when not empty, no other pass of a sequential runs
---@field instruments perilune.Instrument[]
---@field config perilune.Attrs
---@field target? perilune.Target
local Context = {}
--- Enters; the value leaves at the end of a <close> scope.
---@return perilune.Context
function Context:enter() end
function Context:exit() end
--- Lets go of it and its instruments; not while it is entered.
function Context:close() end
---@param instruments perilune.Instrument[]
function Context:override_instruments(instruments) end
--- In the body of a pass: adds to a count that the report shows.
---@param key string
---@param n? integer 1
function Context:note(key, n) end
--- What the config says of a key or "key.field", else its default.
---@param key string
---@return any
function Context:get(key) end
--- In the body of a pass: one of its options.
---@param name string
---@return any
function Context:option(name) end
--- In the body of a pass: whether a rule may be applied; it is counted. Ask before
--- its answer is used. Mutators ask by themselves.
---@param name string
---@param node? perilune.Node what it is about
---@return boolean allowed
function Context:rule(name, node) end

--- Builds scope by scope; scopes are numbers.
---@class perilune.Builder
local Builder = {}
---@return integer scope
function Builder:open() end
---@param name string
---@param type? string|perilune.Type
---@return perilune.Node
function Builder:param(name, type) end
---@param scope integer
---@param result perilune.Operand
---@param attrs? table
function Builder:finish(scope, result, attrs) end
---@param scope? integer nil: the innermost open one
function Builder:at(scope) end
---@param scope integer
---@param ret_type? string|perilune.Type
---@param attrs? table
---@return perilune.Node
function Builder:func(scope, ret_type, attrs) end
---@param cond perilune.Operand
---@param then_scope integer
---@param else_scope integer
---@param attrs? table
---@param n_results? integer
---@return perilune.Node
function Builder:if_(cond, then_scope, else_scope, attrs, n_results) end
---@param name string
---@param type? string|perilune.Type
---@return perilune.Node
function Builder:var(name, type) end
---@param var perilune.Node
---@param value perilune.Operand
---@return perilune.Node
function Builder:let(var, value) end
---@param scope integer
---@return perilune.Node
function Builder:let_block(scope) end
---@param min perilune.Operand
---@param extent perilune.Operand
---@param scope integer
---@return perilune.Node
function Builder:loop(min, extent, scope) end
---@param node perilune.Node
function Builder:keep(node) end
---@param node perilune.Node
---@param name string
function Builder:name(node, name) end
--- Calls f(...); constructors inside append to this builder.
---@generic T
---@param f fun(...): T
---@return T
function Builder:run(f, ...) end
--- The node in a sealed graph; the builder is spent.
---@param root perilune.Operand
---@return perilune.Node
function Builder:seal(root) end

---@class perilune.ReportRow
---@field name string
---@field changed boolean
---@field depth integer
---@field seconds number
---@field nodes integer
---@field counts perilune.Attrs
---@field run integer its number since the call began, from 1
---@field applications integer of rules, that it asked for

---@class perilune.Statistics: perilune.Instrument
---@field passes { name: string, runs: integer, changed: integer, seconds: number, counts: table<string, integer> }[]
---@field rules perilune.RuleRow[]
local Statistics = {}
--- The rules that were never applied, of passes that ran.
---@return perilune.RuleRow[]
function Statistics:unused() end

--- A row of node:history(): a change has `from`, the source has `source`. What is not known is nil.
---@class perilune.HistoryRow
---@field pass? string nil: it was made outside of passes
---@field rule? string nil: the pass named none
---@field run? integer the number of the pass's run in its outermost call
---@field application? integer the number of the rule application in that run, of those asked for of its function
---@field from? string[] the sources of what it was made from
---@field source? string all that follows in a line: "node 'a' (Conv), model.onnx", "net.relay:3:5", "build.lua:7"
---@field name? string of a value
---@field node? string of a node of an ONNX model, or of its first output
---@field op? string of a node of an ONNX model
---@field file? string
---@field line? integer
---@field column? integer

---@class perilune.RuleRow
---@field pass string
---@field rule string
---@field tried integer as far as rules are watched; at least how often it had an answer
---@field applied integer
---@field refused integer for a limit
---@field seconds number when rules are watched; of many tries from a sample
---@field last? integer the number of the last node it was applied to

---@class perilune
---@field _VERSION string
---@field op { [string]: any } operators as nested tables
--- Operators by name, for pairs. What a script assigns under a new name is an operator like those of the library; it is
--- never replaced or removed.
---@field ops { [string]: perilune.Op|perilune.OperatorSpec }
---@field passes { [string]: perilune.PassConstructor|perilune.PassSpec|nil }
---@field pipelines { [string]: perilune.Pass? } the pipelines that come with the library
---@field config { [string]: perilune.Option|perilune.OptionSpec|nil }
--- What passes require of a program, provide, destroy and undo, by name; assigning says it of one.
---@field pass_properties { [string]: perilune.PassProperties|nil }
local pl = {}

---@param name string
---@param type? string|perilune.Type|table
---@return perilune.Node
function pl.var(name, type) end
---@param value number|boolean|string|table|perilune.Tensor
---@param dtype? string integers int64, floats float32, unless said
---@return perilune.Node
function pl.const(value, dtype) end
---@param ... perilune.Operand fields, or one list of them
---@return perilune.Node
function pl.tuple(...) end
--- A function. The last three may come as one table, { ret_type =, attrs =, type_params = }. Attributes
--- that are called as TVM's are (Primitive, Compiler, global_symbol, relay.reshape_only) may stand beside
--- these options; those of other names belong into attrs.
---@param params perilune.Node[]
---@param body perilune.Operand
---@param ret_type? string|perilune.Type|table
---@param attrs? table
---@param type_params? perilune.Type[] type variables: a generic function
---@return perilune.Node
function pl.func(params, body, ret_type, attrs, type_params) end
---@param var perilune.Node
---@param value perilune.Operand
---@param body perilune.Operand
---@return perilune.Node
function pl.let(var, value, body) end
---@param cond perilune.Operand
---@param then_value perilune.Operand
---@param else_value perilune.Operand
---@return perilune.Node
function pl.if_(cond, then_value, else_value) end
--- The first arm whose pattern fits. Patterns are nodes; a Var binds, "_" fits
--- everything, a list is a tuple. Clauses of another Match are arms too. There
--- may be no arms; nothing fits such a Match.
---@alias perilune.Pattern perilune.Node|"_"|perilune.Pattern[]
---@param data perilune.Operand
---@param arms (perilune.Node|{ [1]: perilune.Pattern, [2]: perilune.Operand })[]
---@param options? { complete?: boolean } false: other values may come
---@return perilune.Node
function pl.match(data, arms, options) end
---@param name string
---@param type? string|perilune.Type
---@return perilune.Node
function pl.global(name, type) end
---@param callee perilune.Node|perilune.Op|string
---@param args perilune.Operand[]
---@param attrs? table
---@return perilune.Node
function pl.call(callee, args, attrs) end
---@param spec string|perilune.Type|table
---@return perilune.Type
function pl.type(spec) end

--- The types that follow from what is known; nil and a diagnostic when they contradict
--- each other. The very same value when there is nothing to find.
---@generic T: perilune.Module|perilune.Node
---@param a T
---@param mod? perilune.Module what an expression's globals and constructors are
---@return T?
---@return perilune.Diagnostic?
function pl.infer_type(a, mod) end

--- The gradient of a function of tensors: a function of the same parameters that returns
--- the result and a tuple of the gradients with respect to them; and the module with the
--- gradients of the functions that it calls.
---@param fn perilune.Node a Function, or a GlobalVar of `mod`
---@param options? { mod?: perilune.Module, mode?: "higher_order"|"first_order" }
---@return perilune.Node
---@return perilune.Module
function pl.gradient(fn, options) end

--- The function in first-order form: functions that are values are data, and calls of
--- them calls of functions of the module; and the module with the types and functions
--- that were made, whose @main it is.
---@param fn perilune.Node a Function, or a GlobalVar of `mod`
---@param mod? perilune.Module the functions that it calls
---@return perilune.Node
---@return perilune.Module
function pl.defunctionalization(fn, mod) end

--- The kind of a type; nil and a diagnostic when a part of it is of another kind than
--- its place wants.
---@param spec string|perilune.Type|table
---@param mod? perilune.Module knows the data types
---@return "Type"|"ShapeVar"|"BaseType"|"Constraint"|"AdtHandle"|"TypeData"|nil
---@return perilune.Diagnostic?
function pl.check_kind(spec, mod) end

--- Patterns of the cases that no arm of a Match covers, none when it is complete; nil and a
--- diagnostic when a constructor is not known.
---@param match perilune.Node
---@param mod? perilune.Module has the data types
---@return perilune.Node[]?
---@return perilune.Diagnostic?
function pl.unmatched_cases(match, mod) end
---@param functions? { [string]: perilune.Node }
---@param attrs? table
---@return perilune.Module
function pl.module(functions, attrs) end
---@return perilune.Builder
function pl.builder() end
---@param path string NAME.relay is Relay text, all else an ONNX model
---@return perilune.Module? mod
---@return perilune.Diag? diag
function pl.load(path) end
---@param mod perilune.Module
---@param path string NAME.relay is written as Relay text, all else as an ONNX model
---@param options? { external_data?: boolean, external_threshold?: integer, embed_data?: boolean, opset?: integer, value_info?: boolean }
---@return true? ok
---@return perilune.Diag? diag
function pl.save(mod, path, options) end
---What a text may refer to beside what stands in it.
---@class perilune.TextOptions
---@field name? string what messages call the text
---@field init_module? perilune.Module its functions and data types can be named; a module that is read has them too
--- Entries of the metadata behind those of the text's own, by type key: of "relay.Constant"
--- tensors or Constants, of others objects as attributes have them.
---@field init_meta? { [string]: any[] }
---Reads a module from Relay text. The diagnostic is the text's first error; the others are its notes.
---@param text string
---@param name? string|perilune.TextOptions what messages call the text
---@return perilune.Module? mod
---@return perilune.Diag? diag
function pl.parse(text, name) end
---Reads one expression from Relay text.
---@param text string
---@param name? string|perilune.TextOptions what messages call the text
---@return perilune.Node? node
---@return perilune.Diag? diag
function pl.parse_expr(text, name) end
--- Structural equality. Of two expressions, a constructor without a type is that of its name,
--- whatever the other's type; two modules must define it alike.
---@param a any
---@param b any
---@param options? perilune.EqualOptions
---@return boolean
function pl.equal(a, b, options) end
---@param a perilune.Module|perilune.Node|perilune.Type
---@param options? perilune.EqualOptions
---@return integer
function pl.hash(a, options) end
---@param fn perilune.Node
---@return table<perilune.Node, perilune.Node>
function pl.dominators(fn) end
--- Whether ToBasicBlockNormalForm has nothing to bind; false comes with a node that several
--- blocks need.
---@param a perilune.Node|perilune.Module
---@return boolean holds
---@return perilune.Node? node
function pl.is_basic_block_normal_form(a) end
--- A function with less in place of some of its nodes: a new free variable, zeros, the value of a
--- let, operand k, or branch k of an If. pl.verify checks whether the result is valid.
---@param fn perilune.Node
---@param changes table<perilune.Node, "free"|"zero"|"value"|integer>
---@return perilune.Node
function pl.shrink(fn, changes) end
---@param a any
---@param b any
---@param options? perilune.EqualOptions
---@return string? text nil when they are equal; else where they differ first, and how
---@return perilune.Node? a the nodes that differ
---@return perilune.Node? b
function pl.mismatch(a, b, options) end
---@generic T
---@param a T
---@param b T
---@param options? perilune.EqualOptions
---@return T
function pl.assert_equal(a, b, options) end
---@param a perilune.Module|perilune.Node
---@return true? ok
---@return perilune.Diag? diag
function pl.verify(a) end
---@param a perilune.Module|perilune.Node
---@return true? ok
---@return perilune.Diag? diag
function pl.well_formed(a) end
--- TVM's default lowering: the module that the passes of phases 0 to 3 make, in the current
--- context (tir.disable_vectorize, tir.disable_storage_rewrite, tir.disable_cse_tir,
--- tir.instrument_bound_checkers, tir.noalias, tir.add_lower_pass).
---@param x perilune.Node|perilune.Module|table a PrimFunc, a module, or what has a method to_module(args, name)
---@param options? { name?: string, simple_mode?: boolean, args?: table }
---@return perilune.Module
function pl.lower(x, options) end
--- Whether both compute the same on generated inputs, in several rounds.
--- Floats may differ by atol + rtol * |expected|, both no less than `units`
--- units in the last place of the dtype; atol counts as often as the largest
--- magnitude expected, at least once, unless `scaled` is false. Rounds that both
--- refuse are not compared.
---@param a perilune.Node|perilune.Module
---@param b perilune.Node|perilune.Module
---@param options? perilune.CheckOptions
---@return true? ok
---@return perilune.Diag|{ rounds: integer, compared: integer, refused: integer, elements: integer, reason?: string } diag_or_report
function pl.check(a, b, options) end

--- A predicate on modules; raises when it cannot decide.
---@class perilune.Predicate
---@field name string
---@field reference? perilune.Module what the oracle compares with
local Predicate = {}
---@param mod perilune.Module
---@return boolean good
---@return string? message why not
function Predicate:holds(mod) end
--- The same question for modules that were made of `reference`.
---@param reference perilune.Module
---@return perilune.Predicate
function Predicate:against(reference) end

---@class perilune.OracleOptions : perilune.CheckOptions
---@field prepare? fun(mod: perilune.Module): perilune.Module what both go through first
---@field skip? boolean of the instrument: results that cannot be compared are passed over, not refused

---@alias perilune.Question "verify"|"oracle"|string|perilune.Predicate
---| fun(mod: perilune.Module): boolean?, (string|perilune.Diag)?
---| { shell: string, format?: "onnx"|"relay" }

--- Whether a module is correct: "verify" (well-formed), "oracle" (it computes what the reference
--- does), "FILE.lua" (a script that returns a function), a function, or { shell = "command {}" },
--- where {} is a file with the module and status 0 means correct.
---@param what perilune.Question
---@param options? perilune.OracleOptions of the oracle
---@return perilune.Predicate
function pl.predicate(what, options) end

--- The run of a pass that breaks a module. tostring() describes it; describe { colour = } does so
--- for a terminal.
---@class perilune.Bisection
---@field pass string
---@field nth integer the pass's nth run
---@field place? perilune.Diag a note: the element of the pipeline
---@field run integer its number among all runs of passes
---@field runs integer how many there were
---@field before perilune.Module the last module for which the predicate holds
---@field after? perilune.Module nil: the pass failed
---@field rule? string the rule whose application breaks it; nil: none does
---@field application? integer its number among those of the run
---@field applications? integer that the run asks for; nil: it failed
---@field node_before? string where `good` and `bad` differ first
---@field node_after? string
---@field good perilune.Module without that application; without a rule: before
---@field bad? perilune.Module with it; without a rule: after
---@field functions string[] that differ
---@field message string what the predicate says, or the failure
---@field failure? perilune.Diag
---@field mended? integer with `every`: the run behind which the predicate holds again
---@field mended_by? string its pass
---@field asked integer questions
---@field pipelines integer runs of the pipeline

---@class perilune.BisectOptions
---@field context? perilune.Context what to run in: the current one
---@field every? boolean asks behind each run: for what is mended again

--- Which run of a pass, and application of a rule, makes the predicate fail, or fails itself; nil and a diagnostic when the
--- predicate fails from the start, or never. Without a predicate the run is looked for that fails.
---@param pipeline perilune.Pass|string|table
---@param mod perilune.Module
---@param question? perilune.Question
---@param options? perilune.BisectOptions
---@return perilune.Bisection?
---@return perilune.Diag?
function pl.bisect(pipeline, mod, question, options) end
--- What a reproducer says: a failure of passes in a file. The file is Relay text;
--- comments in front of it hold the rest.
---@class perilune.Reproducer
---@field module perilune.Module
---@field pipeline string
---@field context table for pl.context, but that instruments are names
---@field scripts { name: string, source: string, arguments: table }[] whose passes the pipeline has
---@field seed? integer
---@field failure? { code: string, text: string }
---@field version? string of what wrote it
---@field whole? string the pipeline that `pipeline` is a part of
---@field ran? string what of it had run
---@field lost? string what the text does not say of the module

pl.reproducer = {}
--- Writes one: { module =, pipeline = (a pass or its text), context =, scripts =, seed =,
--- failure =, whole =, ran =, embed = (large weights, too) }. What is not given is as
--- it is now. The config key `reproducer` (a path) has one written when passes fail,
--- from the pass that failed, or (`reproducer.from` = "input") the whole pipeline.
---@param path string
---@param spec table
---@return true?
---@return perilune.Diag? diag
function pl.reproducer.write(path, spec) end
--- Reads one, and runs nothing.
---@param path string
---@return perilune.Reproducer?
---@return perilune.Diag? diag
function pl.reproducer.read(path) end
--- The same from a text, which messages call `name`.
---@param text string
---@param name? string
---@return perilune.Reproducer?
---@return perilune.Diag? diag
function pl.reproducer.parse(text, name) end
--- Whether a text begins like a reproducer.
---@param text string
---@return boolean
function pl.reproducer.is(text) end
--- What one says, ready to be run, for pl.bisect and pl.reduce: its scripts are run for their
--- passes, the seed is set. nil and the failure when that cannot be; then the remarks.
---@param what string|perilune.Reproducer a path, or what was read
---@param options? { config?: table, arguments?: table } instead of what it says
---@return { module: perilune.Module, pipeline: perilune.Pass, context: perilune.Context }?
---@return any failure
---@return string[] remarks
function pl.reproducer.open(what, options) end
--- Runs one: its scripts for their passes, then the pipeline: true and the module, or
--- false and the error; and remarks: other versions, what is missing.
---@param what string|perilune.Reproducer a path, or what was read
---@param options? { config?: table, arguments?: table } instead of what it says
---@return boolean ok
---@return perilune.Module|perilune.Diag
---@return string[] remarks
function pl.reproducer.replay(what, options) end
--- A module and a pipeline made small. tostring() describes it.
---@class perilune.Reduction
---@field pipeline? perilune.Pass
---@field message string what is wrong
---@field nodes integer
---@field nodes_before integer
---@field passes? integer
---@field passes_before? integer
---@field tries integer
---@field seconds number
---@field stopped? "time"|"interrupted" it might be smaller
---@class perilune.ReduceOptions
---@field pipeline? perilune.Pass|string|table what runs before the predicate is asked
---@field context? perilune.Context what it runs in: the current one
---@field seconds? number stops after that time with the best result so far
---@field progress? fun(job: { module: perilune.Module, pipeline?: perilune.Pass, tries: integer })
--- Reduces a module and a pipeline while the failure stays: the pipeline fails, or the predicate
--- does not hold for its result. Nil and a diagnostic when there is no failure.
---@param mod perilune.Module
---@param question? perilune.Question nil: the pipeline fails
---@param options? perilune.ReduceOptions
---@return perilune.Reduction?
---@return perilune.Diag?
function pl.reduce(mod, question, options) end
---@class perilune.EvalCall a call of pl.eval as a table: the callee and its arguments, then options
---@field [integer] any
---@field threads? integer the most threads that kernels use; 0: one for each processor; by default the
--- config key `threads`. Results have the same bits with any number of threads.
---@field profile? perilune.Profile gets a row for each call of an operator
---@field n? integer the number of elements, where some are nil
--- Runs a function, the module's main, or an expression without free variables.
---@param callee perilune.Node|perilune.Module|perilune.EvalCall
---@param ... perilune.Tensor|number|boolean|string|table|nil a table of tensors for a sequence; one from keys to values for a map
---@return perilune.Tensor|table|nil ... a table for a sequence or a map, nil for an empty optional
function pl.eval(callee, ...) end
---@class perilune.ProfileRow a call of an operator in a run
---@field node perilune.Node
---@field begin number seconds since the run began
---@field seconds number
---@field macs integer multiply-accumulates by the operator's definition
---@field flops integer two for each of them, or one for each element of a loop or a reduction
---@field bytes integer of operands and results
---@field source? string where the node comes from: "node 'a' (Conv)"
---@class perilune.ProfileGroup: perilune.ProfileRow rows added up
---@field name string
---@field calls integer
---@field key any the node, or the operator's name
---@class perilune.Profile tostring shows a table by operator and one by node
---@field rows perilune.ProfileRow[] in the order of the calls
local Profile = {}
--- By operator, the longest first.
---@return perilune.ProfileGroup[]
function Profile:operators() end
--- By node, the longest first.
---@return perilune.ProfileGroup[]
function Profile:nodes() end
--- The seconds of all calls.
---@return number
function Profile:total() end
---@param most? integer how many nodes are shown (20)
---@return string
function Profile:text(most) end
---@return string # a list of { op, node, begin, seconds, macs, flops, bytes }
function Profile:json() end
---@return string # Trace Event Format of Chrome
function Profile:trace() end
--- An empty profile, for pl.eval { fn, ..., profile = profile }.
---@return perilune.Profile
function pl.profile() end
--- What a call of an operator computes by its definition: multiply-accumulates and operations, from the types of operands and
--- results; texts where dims are symbolic, nil where they are unknown.
---@param node perilune.Node
---@return integer|string|nil macs
---@return integer|string|nil flops
function pl.cost(node) end
--- The multiply-accumulates of all calls, each counted once (TVM: relay.analysis.get_total_mac_number), and how many calls
--- are left out because a dim is open.
---@param program perilune.Module|perilune.Node
---@return integer macs
---@return integer open
function pl.get_total_mac_number(program) end
--- The seed of random operators; sets it when given. Each call of pl.eval draws anew from it, so that one and the same
--- call gives one and the same result. Operators with an attribute `seed` follow that one. An engine begins with 0.
---@param seed? integer
---@return integer seed
function pl.seed(seed) end
---@param spec perilune.PassSpec
---@return perilune.Pass
function pl.function_pass(spec) end
---@param spec perilune.PassSpec
---@return perilune.Pass
function pl.module_pass(spec) end
--- A pass over PrimFuncs; nil from its body removes the function.
---@param spec perilune.PassSpec
---@return perilune.Pass
function pl.prim_func_pass(spec) end
--- A class of passes: methods and state, and what a pass is described by.
---@param class perilune.PassClass
---@return perilune.PassClass
function pl.pass_class(class) end
---@param spec table passes, names and functions; name, opt_level, required
---@return perilune.Pass
function pl.sequential(spec) end
--- Runs passes again and again until they change nothing; passes that undo each other end it with a warning.
---@param spec table passes, names and functions; rounds: the most it runs, 1 to 1000 (100)
---@return perilune.Pass
function pl.fixpoint(spec) end
--- Runs passes that may fail: after a failure the module is as before, a warning is reported, and `otherwise` runs.
---@param spec table passes, names and functions; otherwise: a list of such
---@return perilune.Pass
function pl.try(spec) end
--- Runs passes only when the element before it in a list changed something.
---@param spec table passes, names and functions
---@return perilune.Pass
function pl.if_changed(spec) end
--- Takes each function through all of the passes before it goes on to the next; passes over functions only.
---@param spec table passes, names and functions
---@return perilune.Pass
function pl.functions(spec) end
--- A pipeline from its text; raises a diagnostic with a caret.
---@param text string
---@return perilune.Pass
function pl.pipeline(text) end
--- What a rule's function is given: the nodes and values that its pattern bound, by the names of the variables, and the
--- matched node as `root`. Lists of dims are tables of integers and symbolic texts; `?rest...` is a table of nodes.
---@class perilune.Match
---@field root perilune.Node
---@field [string] perilune.Node|perilune.Node[]|integer|number|string|boolean|table
--- A rule: a text `[name:] pattern => replacement [where condition]`, or a table of it. [1] is the pattern (or all of the
--- text), [2] the replacement: a text, or a function that gives a node, a number, a tensor, or nil for no replacement.
--- engine/rule/README.md has the language.
---@class perilune.RuleSpec
---@field [1] string|perilune.DFPattern|perilune.RuleExpression of a pattern object, the match has match[object] as well
---@field [2]? string|perilune.RuleExpression|fun(match: perilune.Match): perilune.Answer
---@field name? string by default the text's name, else its pattern
---@field where? string|fun(match: perilune.Match): boolean?
---@field reason? string why it is right
---@field source? string where it is known from
---@field proof? "exact"|"reassociates"|"approximates" how results compare to the original; exact by default
---@field grows? boolean it may build more calls than it removes; without it such a replacement is refused
---@field relay? boolean it holds for calls in Relay's form, too; without it the pattern means ONNX's definition of operators that ONNX has
---@field example? perilune.RuleExample|perilune.RuleExample[] programs for Rules:check to begin with
--- Relay text of a function, "fn (%x: Tensor[(N, 3), float32]) { ... }", of definitions, or a function that makes an
--- expression of operands that it asks for.
---@alias perilune.RuleExample string|fun(g: perilune.ProgramGenerator): perilune.Node
--- What the function of an example is given. Its choices are random, and recorded to make a counterexample smaller.
---@class perilune.ProgramGenerator
---@field op table pl.op
local ProgramGenerator = {}
--- A parameter.
---@param dtype string
---@param shape integer[]
---@return perilune.Node
function ProgramGenerator:var(dtype, shape) end
--- A constant of random numbers.
---@param dtype string
---@param shape integer[]
---@return perilune.Node
function ProgramGenerator:constant(dtype, shape) end
--- A scalar constant.
---@param value number|boolean
---@param dtype string
---@return perilune.Node
function ProgramGenerator:number(value, dtype) end
--- A vector of int64.
---@param ... integer
---@return perilune.Node
function ProgramGenerator:ints(...) end
--- An extent from 0 to 5.
---@return integer
function ProgramGenerator:extent() end
--- An extent from 1 to 4.
---@return integer
function ProgramGenerator:size() end
---@param rank? integer
---@return integer[]
function ProgramGenerator:shape(rank) end
--- An integer from 0 to n - 1.
---@param n integer
---@return integer
function ProgramGenerator:below(n) end
--- An element of a list, whose first ones are the simplest.
---@generic T
---@param list T[]
---@return T
function ProgramGenerator:pick(list) end
--- A dtype of floats.
---@return string
function ProgramGenerator:float_dtype() end
--- What a run counted of a rule.
---@class perilune.RuleCount
---@field name string
---@field tried integer nodes that it was compared with
---@field matches integer nodes that its pattern matched
---@field refused integer matches that its condition refused
---@field applied integer
---@field last? string where it was applied last
---@field seconds? number with the option `timed`
--- What the check of a rule found. `status` is "unchecked" where no program was made that the rule applies to, which
--- `reason` says; cases: the programs that were generated, fired: those on which it was applied and compared.
---@class perilune.RuleCheck
---@field name string
---@field proof string
---@field cases integer
---@field fired integer
---@field status "passed"|"failed"|"unchecked"
---@field reason? string
---@field counterexample? perilune.RuleCounterexample
--- A small program that a rule changes: its text before and after, the inputs, what both give, and the seed that makes
--- the rule fail at the first case.
---@class perilune.RuleCounterexample
---@field program string
---@field rewritten? string
---@field inputs { name: string, text: string, tensor: perilune.Tensor }[]
---@field constants { name: string, text: string, tensor: perilune.Tensor }[] those that the text has by number
---@field before? string
---@field after? string
---@field difference string
---@field seed integer
---@class perilune.RuleOptions
---@field exact? boolean only rules of that proof
---@field share? boolean equal computations become one node
---@field lets? boolean patterns match through variables of lets (true)
---@field naive? boolean without the decision tree
---@field timed? boolean
---@field opset? integer
---@field only? string[]
---@field finite_math? boolean conditions may take it that no value is infinite or NaN
---@field associative_math? boolean that sums and products of floats may be computed in any order
---@field microsoft? boolean that operators of com.microsoft are wanted
--- A set of rules; it is called with a function or module and gives the rewritten one, the same if nothing changed. It
--- stands for a pass over functions wherever one is expected, and may be the `run` of a pass. As a pass it obeys the config
--- keys rules.exact, rules.lets and rules.only.
---@class perilune.Rules
---@field name string
---@field rules table[] name, text, file, row, reason, source, proof, grows, relay of each
---@operator call(perilune.Node|perilune.Module): perilune.Node|perilune.Module
---@operator len: integer
local Rules = {}
--- Applies the rules until none applies: the rewritten program, and what was counted. Options: exact (only rules of that
--- proof), share (equal computations become one node), lets (patterns match through variables of lets whose values have no
--- effect: true by default), naive (without the decision tree, which gives the same), opset (the version of ai.onnx that conditions see;
--- by default the module's), only (names: no other rule runs).
---@param program perilune.Node|perilune.Module
---@param options? perilune.RuleOptions
---@return perilune.Node|perilune.Module
---@return perilune.RuleCount[]
function Rules:apply(program, options) end
--- Checks each rule by evaluation: generates programs that its pattern matches, applies the rule alone, and compares what
--- both compute, bit by bit for proof "exact" (except for the sign of zero), else within a tolerance on tame numbers. Gives
--- the results, which as text show counterexamples, and whether all passed. Options: cases (100 comparisons a rule), seed
--- (1), only (names of rules), progress (called with each result).
---@param options? { cases?: integer, seed?: integer, only?: string[], progress?: fun(result: perilune.RuleCheck) }
---@return perilune.RuleCheck[]
---@return boolean
function Rules:check(options) end
--- A set of rewrite rules, matched in C: pl.rules(list), or pl.rules "name" (list). The first rule that matches a node is
--- applied, operands first, and its result is looked at again. Raises a diagnostic that shows the place in the text.
---@param first string|(string|perilune.RuleSpec)[]
---@return perilune.Rules
---@overload fun(name: string): fun(list: (string|perilune.RuleSpec)[]): perilune.Rules
function pl.rules(first) end
--- Patterns and replacements of rules as expressions of Lua: { e.op.add(x, 0), x } with x = e.var "x". Immutable; tostring
--- gives the text in the language of rules.
---@class perilune.RuleExpression
---@field [string] perilune.RuleExpression shape, rank, dtype, ... of a variable
---@field [integer] perilune.RuleExpression an element of a list, from 0 on
---@operator add(any): perilune.RuleExpression
---@operator sub(any): perilune.RuleExpression
---@operator mul(any): perilune.RuleExpression
---@operator div(any): perilune.RuleExpression
---@operator unm: perilune.RuleExpression
---@operator bor(any): perilune.RuleExpression
pl.rule_expression = {}
--- Calls of operators: op.NAME(operands..., attributes), op.nn.relu(x).
---@type table<string, any>
pl.rule_expression.op = {}
--- Functions of conditions and attributes: fn.sublist(x.shape, 0, 2).
---@type table<string, fun(...: any): perilune.RuleExpression>
pl.rule_expression.fn = {}
--- Matches any node.
---@return perilune.RuleExpression
function pl.rule_expression.any() end
--- A variable, which matches any node, or those that fulfil a constraint such as "const"; in an attribute its value.
---@param name string
---@param constraint? string
---@return perilune.RuleExpression
function pl.rule_expression.var(name, constraint) end
--- Binds what an expression matches to a name.
---@param name string
---@param pattern perilune.RuleExpression
---@return perilune.RuleExpression
function pl.rule_expression.bind(name, pattern) end
--- A constant of a number or a list of integers, in replacements.
---@param value number|integer[]|perilune.RuleExpression
---@return perilune.RuleExpression
function pl.rule_expression.constant(value) end
--- TVM's dataflow pattern language by TVM's names (relay.dataflow_pattern). A pattern object matches one node in a match.
pl.dataflow_pattern = {}
--- A pattern: immutable, compared by identity. Its fields are those of TVM's class of the name in `kind` (op and args of a
--- CallPattern, left and right of an AltPattern, ...). `p(a, b)` matches a call of p, `p(nil)` one with any arguments;
--- `a | b` either, a first. As text it is in the language of rules, as far as that has it.
---@class perilune.DFPattern
---@field kind string "ExprPattern", "CallPattern", ...
---@field [string] any
---@operator call(...): perilune.DFPattern
---@operator add(perilune.DFPattern|perilune.Node): perilune.DFPattern
---@operator sub(perilune.DFPattern|perilune.Node): perilune.DFPattern
---@operator mul(perilune.DFPattern|perilune.Node): perilune.DFPattern
---@operator div(perilune.DFPattern|perilune.Node): perilune.DFPattern
---@operator unm: perilune.DFPattern
---@operator bor(perilune.DFPattern): perilune.DFPattern
local DFPattern = {}
--- p, or f of it: p | f(p).
---@param f (fun(p: perilune.DFPattern): perilune.DFPattern)|perilune.DFPattern
---@return perilune.DFPattern
function DFPattern:optional(f) end
--- dominates(parent, path, self); the path is anything by default.
---@param parent perilune.DFPattern
---@param path? perilune.DFPattern
---@return perilune.DFPattern
function DFPattern:dominates(parent, path) end
---@param type_ perilune.Type|string
---@return perilune.DFPattern
function DFPattern:has_type(type_) end
---@param dtype string
---@return perilune.DFPattern
function DFPattern:has_dtype(dtype) end
---@param shape (integer|string)[]
---@return perilune.DFPattern
function DFPattern:has_shape(shape) end
--- Has all of these attributes: an operator TOpPattern, TNonComputational or TOpIsStateful; a call its own and their
--- defaults; a function its own.
---@param attrs table<string, any>
---@return perilune.DFPattern
function DFPattern:has_attr(attrs) end
--- Wildcards only: from now on it matches what `target` does, which may contain the wildcard.
---@param target perilune.DFPattern
function DFPattern:redirect_to(target) end
--- lets: a variable that a let binds to a value without an effect is that value, as in graph normal form; false by
--- default, as in TVM.
---@class perilune.DFOptions
---@field lets? boolean
--- Whether an expression or operator matches.
---@param expr perilune.Node|perilune.Op
---@param options? perilune.DFOptions
---@return boolean
function DFPattern:match(expr, options) end
--- What each pattern object matched, or nil.
---@param expr perilune.Node|perilune.Op
---@param options? perilune.DFOptions
---@return table<perilune.DFPattern, (perilune.Node|perilune.Op)[]>?
function DFPattern:extract_matched_expr(expr, options) end
--- A callback of a rewrite: the node as it was, the same with rewritten operands, and what each pattern object matched (in
--- the new program). It gives the node to use instead, or nil.
---@alias perilune.NodeMap table<perilune.DFPattern, (perilune.Node|perilune.Op)[]>
---@alias perilune.DFRewrite fun(pre: perilune.Node, post: perilune.Node, node_map: perilune.NodeMap): perilune.Answer
--- Rewrites by one function; see pl.dataflow_pattern.rewrite.
---@param callback perilune.DFRewrite
---@param expr perilune.Node|perilune.Module
---@param mod? perilune.Module
---@param options? perilune.DFOptions
---@return perilune.Node|perilune.Module
function DFPattern:rewrite(callback, expr, mod, options) end
--- Each match becomes a call of a new function with the attribute PartitionedFromPattern and those given; `check` gets the
--- root of a match and says whether it is to be one.
---@param expr perilune.Node|perilune.Module
---@param attrs? table<string, any>
---@param check? fun(root: perilune.Node): boolean?
---@param options? perilune.DFOptions
---@return perilune.Node|perilune.Module
function DFPattern:partition(expr, attrs, check, options) end
---@class perilune.DFPatternCallbackSpec
---@field pattern perilune.DFPattern
---@field callback perilune.DFRewrite
---@field require_type? boolean infer types first
---@field rewrite_once? boolean do not use it again after the first round in which it changed something
---@field name? string in reports and messages
---@class perilune.DFPatternCallback: perilune.DFPatternCallbackSpec
local DFPatternCallback = {}
---@param expr perilune.Node|perilune.Module
---@param mod? perilune.Module
---@param options? perilune.DFOptions
---@return perilune.Node|perilune.Module
function DFPatternCallback:rewrite(expr, mod, options) end
---@param spec perilune.DFPatternCallbackSpec
---@return perilune.DFPatternCallback
function pl.dataflow_pattern.DFPatternCallback(spec) end
--- Rewrites by callbacks, round after round, until a round changes nothing; raises after 100 rounds. The same program comes
--- back if nothing changed.
---@param callbacks perilune.DFPatternCallbackSpec|perilune.DFPatternCallbackSpec[]
---@param expr perilune.Node|perilune.Module
---@param mod? perilune.Module gives the types of global functions
---@param options? perilune.DFOptions
---@return perilune.Node|perilune.Module
function pl.dataflow_pattern.rewrite(callbacks, expr, mod, options) end
---@param p perilune.DFPattern
---@param expr perilune.Node|perilune.Op
---@param options? perilune.DFOptions
---@return boolean
function pl.dataflow_pattern.match(p, expr, options) end
---@param p perilune.DFPattern
---@param expr perilune.Node|perilune.Module
---@param attrs? table<string, any>
---@param check? fun(root: perilune.Node): boolean?
---@param options? perilune.DFOptions
---@return perilune.Node|perilune.Module
function pl.dataflow_pattern.partition(p, expr, attrs, check, options) end
--- A variable, of that name if one is given.
---@param name? string
---@return perilune.DFPattern
function pl.dataflow_pattern.is_var(name) end
---@param name? string
---@return perilune.DFPattern
function pl.dataflow_pattern.VarPattern(name) end
--- A constant.
---@return perilune.DFPattern
function pl.dataflow_pattern.is_constant() end
---@return perilune.DFPattern
function pl.dataflow_pattern.ConstantPattern() end
--- Anything.
---@return perilune.DFPattern
function pl.dataflow_pattern.wildcard() end
---@return perilune.DFPattern
function pl.dataflow_pattern.WildcardPattern() end
--- An expression that is equal by structure, or an operator.
---@param expr perilune.Node|perilune.Op
---@return perilune.DFPattern
function pl.dataflow_pattern.is_expr(expr) end
---@param expr perilune.Node|perilune.Op
---@return perilune.DFPattern
function pl.dataflow_pattern.ExprPattern(expr) end
--- An operator.
---@param name string|perilune.Op
---@return perilune.DFPattern
function pl.dataflow_pattern.is_op(name) end
--- A call of these arguments; without a list, of any.
---@param op perilune.DFPattern
---@param args? perilune.DFPattern[]
---@return perilune.DFPattern
function pl.dataflow_pattern.CallPattern(op, args) end
--- A function of these parameters (nil: any) and this body.
---@param params perilune.DFPattern[]|nil
---@param body perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.is_function(params, body) end
---@param params perilune.DFPattern[]|nil
---@param body perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.FunctionPattern(params, body) end
--- A tuple of these fields; without a list, of any.
---@param fields? perilune.DFPattern[]
---@return perilune.DFPattern
function pl.dataflow_pattern.is_tuple(fields) end
---@param fields? perilune.DFPattern[]
---@return perilune.DFPattern
function pl.dataflow_pattern.TuplePattern(fields) end
--- A field of a tuple, counted from 0; without an index, any.
---@param tuple perilune.DFPattern
---@param index? integer
---@return perilune.DFPattern
function pl.dataflow_pattern.is_tuple_get_item(tuple, index) end
---@param tuple perilune.DFPattern
---@param index? integer
---@return perilune.DFPattern
function pl.dataflow_pattern.TupleGetItemPattern(tuple, index) end
---@param cond perilune.DFPattern
---@param true_branch perilune.DFPattern
---@param false_branch perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.is_if(cond, true_branch, false_branch) end
---@param cond perilune.DFPattern
---@param true_branch perilune.DFPattern
---@param false_branch perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.IfPattern(cond, true_branch, false_branch) end
---@param var perilune.DFPattern
---@param value perilune.DFPattern
---@param body perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.is_let(var, value, body) end
---@param var perilune.DFPattern
---@param value perilune.DFPattern
---@param body perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.LetPattern(var, value, body) end
---@param left perilune.DFPattern
---@param right perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.AltPattern(left, right) end
--- What p matches (by default anything), if it has that type.
---@param type_ perilune.Type|string
---@param p? perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.has_type(type_, p) end
---@param dtype string
---@param p? perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.has_dtype(dtype, p) end
---@param shape (integer|string)[]
---@param p? perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.has_shape(shape, p) end
---@param attrs table<string, any>
---@param p? perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.has_attr(attrs, p) end
---@param p perilune.DFPattern
---@param type_ perilune.Type|string
---@return perilune.DFPattern
function pl.dataflow_pattern.TypePattern(p, type_) end
---@param p perilune.DFPattern
---@param dtype string
---@return perilune.DFPattern
function pl.dataflow_pattern.DataTypePattern(p, dtype) end
---@param p perilune.DFPattern
---@param shape (integer|string)[]
---@return perilune.DFPattern
function pl.dataflow_pattern.ShapePattern(p, shape) end
---@param p perilune.DFPattern
---@param attrs table<string, any>
---@return perilune.DFPattern
function pl.dataflow_pattern.AttrPattern(p, attrs) end
--- What child matches, if all that it is computed of leads through nodes that match `path` to one that matches `parent`, and all
--- uses of that one lead to it.
---@param parent perilune.DFPattern
---@param path perilune.DFPattern
---@param child perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.dominates(parent, path, child) end
---@param parent perilune.DFPattern
---@param path perilune.DFPattern
---@param child perilune.DFPattern
---@return perilune.DFPattern
function pl.dataflow_pattern.DominatorPattern(parent, path, child) end
--- Registers patterns for MergeComposite under a name; without them gives the list that is registered. A row is
--- { name of the composite function, pattern or its text, check }. Texts: "nn.relu(nn.conv2d(*, *))", with `*` for
--- anything, `Constant`, `Var`, `a | b`, tuples and `.0`. A check is a function of the matched node, or a text about
--- attributes of calls in the match: "groups == 1 and data_layout == NHWC".
---@param name string
---@param list? table[]
---@return table[]?
function pl.pattern_table(name, list) end
--- What a program is compiled for; tostring gives TVM's text.
---@class perilune.Target
---@field kind string "llvm"
---@field keys string[] the device and its kinds: { "arm_cpu", "cpu" }
---@field tag string
---@field attrs { [string]: string|number|boolean|table } mcpu, "num-cores", ...
---@field host? perilune.Target
---@field dict fun(self: perilune.Target): table what pl.target takes
---@field complete_text fun(self: perilune.Target): string its text with the host
--- A target from TVM's text ("llvm -mcpu=skylake -num-cores=4"), a table { kind =, ... } or another target; `host` is
--- the target of the code that calls its kernels.
---@param spec string|table|perilune.Target
---@param host? string|table|perilune.Target
---@return perilune.Target
function pl.target(spec, host) end
--- The attribute `key` of an operator and its level; nil when there is none. With a value sets it, unless one of a
--- higher level is there, and tells whether it did; with nil as value removes it. Passes ask for attributes: TOpPattern
--- (0 elementwise, 1 broadcast, 2 injective, 3 reduce, 4 out-fusable, 7 tuple, 8 opaque), FTVMLegalize, target.NAME, ...
--- A function gets what TVM's gets under that key, and a pass that calls one runs in the
--- caller's thread.
---@param op perilune.Op|string
---@param key string
---@param value? boolean|number|string|function
---@param level? integer 10 unless given
---@return any
---@return integer?
function pl.op_attr(op, key, value, level) end
--- Why a rule does not replace a node. As text: the part of the rule that fails, the node there, and the reason.
---@class perilune.Explanation
---@field rule table as in Rules.rules
---@field root perilune.Node the node that was tried
---@field stage "structure"|"attributes"|"condition"|"replacement"|"applies" how far matching got
---@field matched integer nodes of the pattern that match, of `total`
---@field total integer
---@field first? integer the part of rule.text that fails: rule.text:sub(first, last)
---@field last? integer
---@field node? perilune.Node the node there
---@field path integer[] numbers of the operands, from 0, on the way from root to node
---@field reason string
--- Explanations why rules do not replace a node, or any node of a function or module; that which matches most first.
---@param rules perilune.Rules|perilune.DFPattern|string a set, the text of a rule or a pattern, or the name of a shipped
--- rule, a pass or a file of rules
---@param where perilune.Node|perilune.Module
---@param options? { rule?: string, limit?: integer, opset?: integer, lets?: boolean } a rule's name, how many, ai.onnx's version
---@return perilune.Explanation[]
function pl.why_not(rules, where, options) end
--- A mutator: functions by kind of node or type; each is a rule of that name in reports and histories. `name` gives
--- one name to all. In TIR, when a function is for a kind that has bodies, `node` has its rewritten parts.
--- A function gives nil (unchanged), the node to use instead, or a number or tensor, which is a constant; anything
--- else is an error that names the rule and its place. A Var given for a parameter takes its place in the list.
---@alias perilune.Answer perilune.Node|perilune.Tensor|number|nil
---@param functions table<string, string|fun(node: perilune.Node, rebuild: fun(): perilune.Node): perilune.Answer>
---@return fun(program: perilune.Node|perilune.Module): perilune.Node|perilune.Module
function pl.mutator(functions) end
--- Rewrites at once: functions by kind of node are given the node as it was and
--- the node with its rewritten operands, and give nil or what to use instead, as
--- those of a mutator do. A single function is called for every kind.
---@alias perilune.Rewrite fun(pre: perilune.Node, post: perilune.Node): perilune.Answer
---@param program perilune.Node|perilune.Module
---@param functions perilune.Rewrite|table<string, perilune.Rewrite>
---@return perilune.Node|perilune.Module
function pl.rewrite(program, functions) end
--- The expression with values in place of variables, all at once. A function loses
--- the parameters that are bound and gets those that the values need; any other
--- variable has to be free.
---@param node perilune.Node
---@param values table<perilune.Node, perilune.Operand>
---@return perilune.Node
function pl.bind(node, values) end
--- The kinds of nodes that an expression, or a module's functions, are made of. A call of an
--- operator has the kinds Call and Op.
---@param program perilune.Node|perilune.Module
---@return { [perilune.Kind]: true }
function pl.detect_feature(program) end
---@alias perilune.Feature "let"|"letrec"|"refs"|"closures"|"ADTs"|"control flow"|"dynamic shapes"|"quantised"|"loops"
--- What passes say to handle or not, of an expression or of all functions of a module.
---@param program perilune.Node|perilune.Module
---@return { [perilune.Feature]: true }
function pl.features(program) end
--- How many calls of each operator there are, by its name.
---@param program perilune.Node|perilune.Module
---@return { [string]: integer }
function pl.list_op_freqs(program) end
--- The names of the operators that are called, each once, sorted.
---@param program perilune.Node|perilune.Module
---@return string[]
function pl.extract_operators(program) end
--- Alpha-renaming: the expression with fresh variables in place of those that it defines
--- (parameters, lets, patterns, loops, blocks, buffers), so that it may occur twice in a program.
---@param node perilune.Node
---@return perilune.Node
function pl.renew_defs(node) end
--- The variables of an expression, each once, in order of evaluation.
---@param node perilune.Node
---@return perilune.Node[]
function pl.all_vars(node) end
--- Those that it binds: parameters, lets, patterns.
---@param node perilune.Node
---@return perilune.Node[]
function pl.bound_vars(node) end
--- Those that it does not bind.
---@param node perilune.Node
---@return perilune.Node[]
function pl.free_vars(node) end
--- The type variables of an expression or a type.
---@param program perilune.Node|perilune.Type
---@return perilune.Type[]
function pl.all_type_vars(program) end
--- Those that generic functions and function types inside bind.
---@param program perilune.Node|perilune.Type
---@return perilune.Type[]
function pl.bound_type_vars(program) end
--- Those that nothing inside binds.
---@param program perilune.Node|perilune.Type
---@return perilune.Type[]
function pl.free_type_vars(program) end
--- A visitor: functions by kind of node, called once for each node that an
--- expression is made of, operands first. A function, or `leave`, is called
--- after all that the node is made of, `enter` before: giving false leaves the
--- node out. The second argument puts another node on the list of what is
--- visited. Keys `enter` and `leave` are for the kinds without functions of
--- their own.
---@alias perilune.Visit fun(node: perilune.Node, visit: fun(node: perilune.Node)): boolean?
---@param functions table<string, perilune.Visit|{ enter?: perilune.Visit, leave?: perilune.Visit }>
---@return fun(program: perilune.Node|perilune.Module)
function pl.visitor(functions) end
--- Calls `f` for each node that a program is made of, operands first, itself
--- last (a Let after its body); without `f`, an iterator over them.
---@param program perilune.Node|perilune.Module
---@param f? fun(node: perilune.Node)
---@return (fun(): perilune.Node?)?
function pl.post_order(program, f) end
---@class perilune.PassProperties
---@field requires? string[] properties: "A-normal form", "fused", "annotated", ...
---@field provides? string[]
---@field destroys? string[]
---@field undoes? string[] passes whose work it takes back
---@field before? string[] passes that it must not come after
---@field handles? perilune.Feature[] where it fails with programs that have others
---@field removes? perilune.Feature[] that a program may have no more after it

--- Of a module: which properties it has, by name. Of a pass or a pipeline's text: true, or nil and what
--- its elements require that nothing provides, what comes too late, what undoes an earlier one, and
--- which features of `mod` they do not handle.
---@param x perilune.Module|perilune.Pass|string
---@param mod? perilune.Module the program that a pipeline is for
---@return true|{ [string]: boolean }|nil
---@return string[]? findings
function pl.validate(x, mod) end
---@param spec? perilune.ContextSpec
---@return perilune.Context
function pl.context(spec) end
---@return perilune.Context
function pl.current() end
---@generic T
---@param ctx perilune.Context
---@param f fun(...): T
---@param ... any
---@return T
function pl.with(ctx, f, ...) end
--- Enters the current context with `skip_layers`: the numbers of the convolutions
--- that ConvertLayout leaves as they are, from 0 in each function.
---@param spec { skip_layers: integer[] }
---@return perilune.Context scope
function pl.layout_config(spec) end
---@return perilune.ReportRow[]
function pl.report() end

--- Makes limit.seconds and interrupts stop a pass also while a coroutine that it
--- resumed runs, and not only when that yields: puts its own resume, wrap and
--- close into the table, which else do what Lua's do. The command does it for its
--- scripts; another host decides. Without an argument: the table `coroutine`.
---@generic T: table
---@param t? T
---@return T
function pl.guard_coroutines(t) end

---@class perilune.CacheStats
---@field hits integer results that were given again
---@field misses integer results that had to be found, and were kept
---@field dropped integer results that made room for others
---@field results integer results in the cache
---@field bytes integer what their graphs and tensors take

--- What is kept under the config key `cache`.
---@return perilune.CacheStats
function pl.cache_stats() end
--- Forgets all kept results.
function pl.cache_clear() end
--- What rules did in the last call of a pass: a row a pass and rule.
---@return perilune.RuleRow[]
function pl.rule_report() end
--- What the last call had to say: warnings too.
---@return perilune.Diag[]
function pl.diagnostics() end
--- Bytes that the engine has allocated now, and its peak; the number of allocations, and the sum of
--- their bytes.
---@return integer now
---@return integer peak
---@return integer allocations
---@return integer allocated
function pl.memory() end
--- The bytes of freed blocks of 64 KiB and more that the engine keeps for later tensors instead of
--- giving them back to the system; sets them when given. Evaluating one model again and again is
--- faster with a pool that takes its intermediate tensors. 0 until the first pl.eval, which sets
--- 256 MiB if no size was set. pl.memory does not count what the pool keeps.
---@param bytes? integer
---@return integer bytes
function pl.memory_pool(bytes) end
--- What large products of matrices are computed with, and whether OpenBLAS was opened; sets it when given. "auto" takes
--- OpenBLAS, where it is installed, on processors without a fused multiply-add; "openblas" raises when it is missing.
--- The variable PERILUNE_BLAS of the environment says what a new engine begins with.
---@param choice? "auto"|"own"|"openblas"
---@return "auto"|"own"|"openblas" chosen
---@return boolean opened
function pl.blas(choice) end

--- The kinds of nodes by their own names. pl.var, pl.const, pl.tuple, pl.func,
--- pl.let, pl.if_, pl.global and pl.call are Var, Constant, Tuple, Function, Let,
--- If, GlobalVar and Call.
pl.ir = {}

--- Types, a constructor for each kind. Where a Type is wanted, its text will do.
---@param shape? (integer|string)[] nil: of unknown rank
---@param dtype? string
---@return perilune.Type
function pl.ir.TensorType(shape, dtype) end
---@param fields (perilune.Type|string)[]
---@return perilune.Type
function pl.ir.TupleType(fields) end
---@param params (perilune.Type|string)[]
---@param ret? perilune.Type|string
---@param type_params? perilune.Type[] type variables
---@param constraints? perilune.Type[] relations
---@return perilune.Type
function pl.ir.FuncType(params, ret, type_params, constraints) end
---@param element perilune.Type|string
---@return perilune.Type
function pl.ir.RefType(element) end
--- A new type variable, equal to no other.
---@param name string
---@param kind? "Type"|"ShapeVar"|"BaseType"|"Constraint"|"AdtHandle"|"TypeData"
---@return perilune.Type
function pl.ir.TypeVar(name, kind) end
--- The name of a data type, without arguments; of kind "AdtHandle" unless said.
---@param name string
---@param kind? "Type"|"ShapeVar"|"BaseType"|"Constraint"|"AdtHandle"|"TypeData"
---@return perilune.Type
function pl.ir.GlobalTypeVar(name, kind) end
--- A data type with its arguments.
---@param name string|perilune.Type
---@param args? (perilune.Type|string)[]
---@return perilune.Type
function pl.ir.TypeCall(name, args) end
--- A constraint: the relation holds among the arguments. A call of a function
--- with constraints is typed by them: what follows is what the inference of the
--- operator says to which TVM's relation of that name belongs.
---@param name string TVM's: "Broadcast", "Concatenate", "Reduce", ...
---@param args (perilune.Type|string)[]
---@param n_inputs? integer how many of them are given; the rest follow
---@param attrs? table as in Relay's text of the operator
---@return perilune.Type
function pl.ir.TypeRelation(name, args, n_inputs, attrs) end
--- A new type that is not known yet, equal to no other.
---@return perilune.Type
function pl.ir.IncompleteType() end
--- Loop level.
---@param dtype? string nil: a handle
---@param lanes? integer
---@return perilune.Type
function pl.ir.PrimType(dtype, lanes) end
---@param element perilune.Type|string
---@param scope? string "global"
---@return perilune.Type
function pl.ir.PointerType(element, scope) end
---@param element perilune.Type|string
---@return perilune.Type
function pl.ir.SequenceType(element) end
---@param element perilune.Type|string
---@return perilune.Type
function pl.ir.OptionalType(element) end
---@param key perilune.Type|string
---@param value perilune.Type|string
---@return perilune.Type
function pl.ir.MapType(key, value) end
---@param element perilune.Type|string
---@return perilune.Type
function pl.ir.SparseType(element) end
---@param name string "domain::name"
---@return perilune.Type
function pl.ir.OpaqueType(name) end
---@param name string
---@param type? string|perilune.Type|table
---@return perilune.Node
function pl.ir.Var(name, type) end
---@param value number|boolean|string|table|perilune.Tensor
---@param dtype? string
---@return perilune.Node
function pl.ir.Constant(value, dtype) end
---@param name string
---@param type? string|perilune.Type
---@return perilune.Node
function pl.ir.GlobalVar(name, type) end
--- The operator as an expression, to be called or passed on.
---@param name string
---@return perilune.Node
function pl.ir.Op(name) end
--- An operand that is left out.
---@return perilune.Node
function pl.ir.Absent() end
---@param ... perilune.Operand fields, or one list of them
---@return perilune.Node
function pl.ir.Tuple(...) end
---@param tuple perilune.Operand
---@param index integer from 0, as in Relay's text
---@return perilune.Node
function pl.ir.TupleGetItem(tuple, index) end
---@param callee perilune.Node|perilune.Op|string
---@param args perilune.Operand[]
---@param attrs? table n_results = n: the call gives a tuple of n
---@param type_args? (string|perilune.Type)[] for the type parameters of what is called
---@return perilune.Node
function pl.ir.Call(callee, args, attrs, type_args) end
---@param params perilune.Node[]
---@param body perilune.Operand
---@param ret_type? string|perilune.Type
---@param attrs? table
---@param type_params? perilune.Type[] type variables: a generic function
---@return perilune.Node
function pl.ir.Function(params, body, ret_type, attrs, type_params) end
---@param var perilune.Node
---@param value perilune.Operand
---@param body perilune.Operand
---@return perilune.Node
function pl.ir.Let(var, value, body) end
---@param cond perilune.Operand
---@param then_value perilune.Operand
---@param else_value perilune.Operand
---@return perilune.Node
function pl.ir.If(cond, then_value, else_value) end
--- The first arm whose pattern fits. Patterns are nodes; a Var binds, "_" fits
--- everything, a list is a tuple. Clauses of another Match are arms too. There
--- may be no arms; nothing fits such a Match.
---@param data perilune.Operand
---@param arms (perilune.Node|{ [1]: perilune.Pattern, [2]: perilune.Operand })[]
---@param options? { complete?: boolean } false: other values may come
---@return perilune.Node
function pl.ir.Match(data, arms, options) end
--- A constructor of an algebraic data type.
---@param name string
---@param type? perilune.Type|string
---@return perilune.Node
function pl.ir.Constructor(name, type) end
---@return perilune.Node
function pl.ir.PatternWildcard() end
---@param var perilune.Node
---@return perilune.Node
function pl.ir.PatternVar(var) end
---@param constructor string|perilune.Node
---@param patterns? perilune.Node[]
---@return perilune.Node
function pl.ir.PatternConstructor(constructor, patterns) end
---@param patterns perilune.Node[]
---@return perilune.Node
function pl.ir.PatternTuple(patterns) end
---@param value perilune.Operand
---@return perilune.Node
function pl.ir.RefCreate(value) end
---@param ref perilune.Operand
---@return perilune.Node
function pl.ir.RefRead(ref) end
---@param ref perilune.Operand
---@param value perilune.Operand
---@return perilune.Node
function pl.ir.RefWrite(ref, value) end
---@param spec string|perilune.Type|table
---@return perilune.Type
function pl.ir.type(spec) end
--- What kinds of nodes there are.
---@return { name: string, class: string, fields: string, attrs: boolean, doc: string }[]
function pl.ir.kinds() end
--- The names of the fields that node:with{...} takes for a kind, in order.
---@param kind perilune.Kind
---@return string[]
function pl.ir.fields(kind) end
--- An arm that pl.ir.Match takes: a pattern and what is evaluated when it fits.
---@param lhs perilune.Node
---@param rhs perilune.Operand
---@return perilune.Node
function pl.ir.Clause(lhs, rhs) end
--- A let where it is no body: as it is, for that is what it stands in.
---@param let perilune.Node
---@return perilune.Node
function pl.ir.LetBlock(let) end
--- The operator of that name; raises with the nearest names.
---@param name string
---@return perilune.Op
function pl.ir.find_op(name) end
--- "Node", "Module", "Tensor", "Type", ... for objects of the library, else what
--- type() says.
---@param value any
---@return string
function pl.ir.kind_of(value) end

pl.onnx = {}
---The opsets of ai.onnx that models are converted to.
---@type { oldest: integer, newest: integer }
pl.onnx.opsets = {}
---@param path string
---@return perilune.Module? mod
---@return perilune.Diag? diag
function pl.onnx.load(path) end
---@param mod perilune.Module
---@param path string
---@param options? { external_data?: boolean, external_threshold?: integer, embed_data?: boolean, opset?: integer, value_info?: boolean }
---@return true? ok
---@return perilune.Diag? diag
function pl.onnx.save(mod, path, options) end
---@param bytes string
---@param directory? string
---@return perilune.Module? mod
---@return perilune.Diag? diag
function pl.onnx.parse(bytes, directory) end
---@param mod perilune.Module
---@param options? { embed_data?: boolean, opset?: integer, value_info?: boolean } external_data and external_threshold mean nothing here
---@return string? bytes
---@return perilune.Diag? diag
function pl.onnx.tostring(mod, options) end
--- The value in a file such as test_data_set_0/input_0.pb: a tensor; a table of
--- tensors when `type` is a sequence; a table from keys to values when it is a map; what it has, or
--- nil, when it is an optional.
---@param path string
---@param type? perilune.Type|string
---@return perilune.Tensor|perilune.Tensor[]|nil value
---@return perilune.Diag? diag
---@return string? name what the file calls it
function pl.onnx.load_value(path, type) end
--- Writes such a file.
---@param value perilune.Tensor|perilune.Tensor[]|number|table|nil
---@param path string
---@param type? perilune.Type|string with an optional type an OptionalProto is written
---@param name? string what the file is to call it
---@return true? ok
---@return perilune.Diag? diag
function pl.onnx.save_value(value, path, type, name) end
--- What an input of main has when nothing is given; nil when it has to be given.
---@param mod perilune.Module read from a file
---@param input string
---@return perilune.Tensor? value
---@return perilune.Diag? diag
function pl.onnx.default(mod, input) end
--- The defaults of all inputs of main that have one, by name; read in one pass.
---@param mod perilune.Module read from a file
---@return { [string]: perilune.Tensor }? defaults
---@return perilune.Diag? diag
function pl.onnx.defaults(mod) end
---@param path string
---@return { nodes: integer, compute_nodes: integer, operators: { [string]: integer }, files: string[] }? counts
---@return perilune.Diag? diag
function pl.onnx.count(path) end

--- Of a value: number, boolean, string, or nested tables. Of a string of little-endian elements
--- when a shape is given. Constructors take shape and dtype in either order.
---@overload fun(value: any, dtype?: string): perilune.Tensor
---@overload fun(bytes: string, shape: integer[], dtype?: string): perilune.Tensor
pl.tensor = {}
---@param bytes string
---@param shape integer[]
---@param dtype string
---@return perilune.Tensor
function pl.tensor.from_bytes(bytes, shape, dtype) end
---@param value number|boolean|string an element; bytes where Lua has no value for it
---@param shape integer[]
---@param dtype string
---@return perilune.Tensor
function pl.tensor.full(value, shape, dtype) end
---@param shape integer[]
---@param dtype string
---@param options? { seed?: integer, low?: number, high?: number, mean?: number, deviation?: number }
---@return perilune.Tensor
function pl.tensor.random(shape, dtype, options) end
---@param path string
---@return perilune.Tensor? tensor
---@return perilune.Diag? diag
function pl.tensor.load_npy(path) end
---@param bytes string
---@param name? string what messages call it
---@return perilune.Tensor? tensor
---@return perilune.Diag? diag
function pl.tensor.parse_npy(bytes, name) end

--- What pl.instruments gives: called, it makes an instrument.
---@class perilune.InstrumentConstructor
---@field name string
---@field doc string
---@field options perilune.Option[]
---@overload fun(...): perilune.Instrument
local InstrumentConstructor = {}
--- The same from a table of options, or from text such as "{names=[a,b]}".
---@param options? table|string
---@return perilune.Instrument
function InstrumentConstructor:make(options) end

--- What may be assigned to pl.instruments.NAME, beside a function and an instrument.
---@class perilune.InstrumentSpec
---@field doc? string
---@field options? (perilune.OptionSpec|any)[] checked when one is made
---@field make fun(options: table): perilune.Instrument

pl.instruments = {}
--- Times of passes as a tree. rows: { name, depth, start, seconds, own, lua, allocations }.
---@class perilune.Timing: perilune.Instrument
---@field rows table[]
local Timing = {}
---@return string JSON
function Timing:json() end
---@return string JSON in the Trace Event Format of Chrome and Perfetto
function Timing:trace() end
---@return perilune.Timing
function pl.instruments.timing() end
---@param names? string[]
---@param write? fun(text: string)
---@param options? { full?: boolean } full: mod:text(), with all constants, and not tostring(mod)
---@return perilune.Instrument
function pl.instruments.print_before(names, write, options) end
---@param names? string[]
---@param write? fun(text: string)
---@param options? { full?: boolean }
---@return perilune.Instrument
function pl.instruments.print_after(names, write, options) end
--- Prints the lines that each pass changed.
---@param options? { write?: fun(text: string), colour?: boolean, most?: integer }
---@return perilune.Instrument
function pl.instruments.diff(options) end
---@class perilune.Progress: perilune.Instrument
---@field show fun(text: string) replaces the line, once the work has taken its time
---@field clear fun() takes the line away: something else is to be printed
--- A line on a terminal with the pass that is running, after `seconds` (1);
--- nothing when standard error is no terminal, unless `write` takes it.
---@param options? { seconds?: number, write?: fun(text: string) }
---@return perilune.Progress
function pl.instruments.progress(options) end
--- A numbered file of Relay text for each pass that changed something; `files` lists them.
---@param folder string
---@param options? { full?: boolean } full: with all constants, so that the files can be read
---@return perilune.Instrument
function pl.instruments.dump(folder, options) end
--- Evaluates before and after each pass that changed something; one that changes what is computed fails.
---@param options? table those of pl.check
---@return perilune.Instrument
function pl.instruments.oracle(options) end
--- rows: { name, before, after }
---@return perilune.Instrument
function pl.instruments.nodes() end
--- rows: { name, before, after, peak } in bytes
---@return perilune.Instrument
function pl.instruments.memory() end
--- rows: { name, functions }: passes that changed something
---@return perilune.Instrument
function pl.instruments.changes() end
--- Verifies the module after each pass, unchanged ones too.
---@return perilune.Instrument
function pl.instruments.verify() end
--- Sums up per pass and per rule over all runs; tostring shows both.
---@param options? { unused: boolean } unused: also the rules that were never applied
---@return perilune.Statistics
function pl.instruments.statistics(options) end
---@param names string[]
---@return perilune.Instrument
function pl.instruments.only(names) end

-- ------------------------------------------------------------ the TIR

--- A PrimExpr: a node of TIR, or a Lua value for an immediate.
---@alias perilune.Prim perilune.Node|number|boolean|string

--- An element of a Buffer.
---@param ... perilune.Prim
---@return perilune.Node
function Node:load(...) end
--- A call of tvm_access_ptr: the address of a Buffer's first element.
---@param mask "r"|"w"|"rw"|integer
---@param options? { offset?: any, extent?: any } in elements
---@return perilune.Node
function Node:access_ptr(mask, options) end
--- The statement that stores into an element of a Buffer.
---@param value perilune.Prim
---@param ... perilune.Prim
---@return perilune.Node
function Node:store(value, ...) end

--- The least and greatest value of an expression; ends of sets are nodes, numbers, "neg_inf" or "pos_inf".
---@class perilune.IntervalSet
---@field min_value any
---@field max_value any

--- Proves and simplifies integer expressions of TIR with what is known of their variables, as
--- tvm.arith.Analyzer does. Expressions are nodes, numbers or booleans; others are errors.
---@class perilune.Analyzer
local Analyzer = {}
--- Inclusive bounds; pl.arith's infinities where none is known (TVM: const_int_bound.cc).
---@param expr any
---@return { min_value: integer, max_value: integer }
function Analyzer:const_int_bound(expr) end
--- expr = coeff * k + base for an integer k; coeff 0: expr is base (TVM: modular_set.cc).
---@param expr any
---@return { coeff: integer, base: integer }
function Analyzer:modular_set(expr) end
--- The expression rewritten by the rules of pl.arith.rules() (TVM: rewrite_simplify.cc).
---@param expr any
---@return perilune.Node
function Analyzer:rewrite_simplify(expr) end
--- The normal form, a sum of (x % upper // lower) * scale (TVM: canonical_simplify.cc).
---@param expr any
---@return perilune.Node
function Analyzer:canonical_simplify(expr) end
--- Normal form and rules in turns (TVM: analyzer.cc). Fails unless steps is 0 to 1,000 (2).
---@param expr any
---@param steps? integer
---@return perilune.Node
function Analyzer:simplify(expr, steps) end
--- True if the condition holds for all values; false says nothing (TVM: analyzer.cc).
---@param condition any
---@param strength? string|integer "default" or "symbolic_bound"; others are errors
---@return boolean
function Analyzer:can_prove(condition, strength) end
--- True if a == b is proved.
---@param a any
---@param b any
---@return boolean
function Analyzer:can_prove_equal(a, b) end
--- True if expr >= lower_bound is proved. Fails if expr is no node.
---@param expr perilune.Node
---@param lower_bound any
---@return boolean
function Analyzer:can_prove_greater_equal(expr, lower_bound) end
--- True if expr < upper_bound is proved. Fails if expr is no node.
---@param expr perilune.Node
---@param upper_bound any
---@return boolean
function Analyzer:can_prove_less(expr, upper_bound) end
--- Says what a Var is, once (TVM: Analyzer::Bind). Fails for what is no Var, for a value with the
--- Var in it, and for another value than before without allow_override.
---@param var perilune.Node
---@param expr any a Range, { first, last } (last is not in it) or a value
---@param allow_override? boolean
function Analyzer:bind(var, expr, allow_override) end
--- Says the bound, the modular set or the value of a Var. Fails for other keys, an empty bound and,
--- without override, for other facts than before.
---@param var perilune.Node
---@param info any { min_value =, max_value = }, { coeff =, base = } or a value
---@param override? boolean
function Analyzer:update(var, info, override) end
--- From here on the condition holds. Fails for what is no condition.
---@param condition any
function Analyzer:enter(condition) end
--- The condition holds while body runs, whose results are given, or while the returned value is not
--- closed (TVM: ConstraintContext). Fails for what is no condition, and as body does.
---@param condition any
---@param body? fun(analyzer: perilune.Analyzer): any
---@return any
function Analyzer:constraint_scope(condition, body) end
--- The values of an expression whose variables run over sets, or over what they are bound to without
--- dom_map (TVM: int_set.cc). Fails for keys that are no nodes and sets without both ends.
---@param expr any
---@param dom_map? table<perilune.Node, any>
---@return perilune.IntervalSet
function Analyzer:int_set(expr, dom_map) end
--- Chooses optional parts of simplification, none without arguments. Fails for other names.
---@param ... "transitively_prove_inequalities"|"convert_boolean_to_and_of_ors"|"apply_constraints_to_boolean_branches"
function Analyzer:set_enabled_extensions(...) end
--- See pl.arith.deduce_bound.
---@param var perilune.Node
---@param condition perilune.Node
---@param hint_map? table<perilune.Node, any>
---@param relax_map? table<perilune.Node, any>
---@return perilune.IntervalSet
function Analyzer:deduce_bound(var, condition, hint_map, relax_map) end
--- See pl.arith.detect_linear_equation.
---@param expr perilune.Node
---@param vars perilune.Node[]
---@return perilune.Node[]
function Analyzer:detect_linear_equation(expr, vars) end
--- See pl.arith.detect_clip_bound.
---@param condition perilune.Node
---@param vars perilune.Node[]
---@return (perilune.Node|false)[]
function Analyzer:detect_clip_bound(condition, vars) end
--- See pl.arith.solve_linear_equations.
---@param equations perilune.Node[]
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@return table?
function Analyzer:solve_linear_equations(equations, variables, ranges) end
--- See pl.arith.estimate_region_strict_bound.
---@param region perilune.Node[]
---@param var_dom table<perilune.Node, any>
---@param predicate? any
---@return perilune.IntervalSet[]?
function Analyzer:estimate_region_strict_bound(region, var_dom, predicate) end
--- See pl.arith.estimate_region_lower_bound.
---@param region perilune.Node[]
---@param var_dom table<perilune.Node, any>
---@param predicate? any
---@return perilune.IntervalSet[]?
function Analyzer:estimate_region_lower_bound(region, var_dom, predicate) end
--- See pl.arith.estimate_region_upper_bound.
---@param region perilune.Node[]
---@param var_dom table<perilune.Node, any>
---@param predicate? any
---@return perilune.IntervalSet[]
function Analyzer:estimate_region_upper_bound(region, var_dom, predicate) end
--- See pl.arith.eval_set.
---@param of any a PrimExpr, a Range, or a list of them
---@param dom_map? table<perilune.Node, any>
---@return perilune.IntervalSet|perilune.IntervalSet[]
function Analyzer:eval_set(of, dom_map) end
--- See pl.arith.union.
---@param sets perilune.IntervalSet[]
---@return perilune.IntervalSet
function Analyzer:union(sets) end
--- See pl.arith.union_lower_bound.
---@param sets perilune.IntervalSet[]
---@return perilune.IntervalSet
function Analyzer:union_lower_bound(sets) end
--- See pl.arith.intersect.
---@param sets perilune.IntervalSet[]
---@return perilune.IntervalSet
function Analyzer:intersect(sets) end
--- See pl.arith.domain_touched.
---@param stmt perilune.Node
---@param buffer perilune.Node
---@param consider_loads? boolean
---@param consider_stores? boolean
---@return perilune.Node[]
function Analyzer:domain_touched(stmt, buffer, consider_loads, consider_stores) end
--- See pl.arith.detect_common_subexpr.
---@param expr perilune.Node
---@param threshold integer
---@return { expr: perilune.Node, count: integer }[]
function Analyzer:detect_common_subexpr(expr, threshold) end
--- See pl.arith.detect_iter_map.
---@param indices any[]
---@param input_iters table<perilune.Node, any>
---@param predicate? any
---@param check_level? "surjective"|"bijective"|"no_check"
---@param simplify_trivial_iterators? boolean
---@return perilune.IterMapResult
function Analyzer:detect_iter_map(indices, input_iters, predicate, check_level, simplify_trivial_iterators) end
--- See pl.arith.iter_map_simplify.
---@param indices any[]
---@param input_iters table<perilune.Node, any>
---@param predicate? any
---@param check_level? "surjective"|"bijective"|"no_check"
---@param simplify_trivial_iterators? boolean
---@return perilune.Node[]
function Analyzer:iter_map_simplify(indices, input_iters, predicate, check_level, simplify_trivial_iterators) end
--- See pl.arith.normalize_to_iter_sum.
---@param index any
---@param input_iters table<perilune.Node, any>
---@return perilune.IterSumExpr
function Analyzer:normalize_to_iter_sum(index, input_iters) end
--- See pl.arith.normalize_iter_map_to_expr.
---@param expr any
---@return perilune.Node
function Analyzer:normalize_iter_map_to_expr(expr) end
--- See pl.arith.subspace_divide.
---@param bindings any[]
---@param input_iters table<perilune.Node, any>
---@param sub_iters perilune.Node[]
---@param predicate? any
---@param check_level? "surjective"|"bijective"|"no_check"
---@param simplify_trivial_iterators? boolean
---@return perilune.IterMark[][]
function Analyzer:subspace_divide(bindings, input_iters, sub_iters, predicate, check_level, simplify_trivial_iterators) end
--- See pl.arith.inverse_affine_iter_map.
---@param map perilune.IterSumExpr[]
---@param outputs perilune.Node[]
---@return table<perilune.Node, perilune.Node>
function Analyzer:inverse_affine_iter_map(map, outputs) end
--- See pl.arith.solve_linear_inequalities.
---@param equations perilune.Node[]|perilune.IntConstraints
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@param deskew_range? boolean
---@return perilune.IntConstraints|perilune.IntConstraintsTransform
function Analyzer:solve_linear_inequalities(equations, variables, ranges, deskew_range) end
--- See pl.arith.solve_inequalities_as_bounds.
---@param equations perilune.Node[]|perilune.IntConstraints
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@return table<perilune.Node, perilune.IntGroupBounds>
---@return perilune.Node[]
function Analyzer:solve_inequalities_as_bounds(equations, variables, ranges) end
--- See pl.arith.narrow_predicate_expression.
---@param condition perilune.Node
---@param ranges table<perilune.Node, any>
---@return perilune.Node
function Analyzer:narrow_predicate_expression(condition, ranges) end

pl.arith = {}
--- An analyzer that knows nothing; facts of one are not those of another.
---@return perilune.Analyzer
function pl.arith.Analyzer() end
--- The rules of rewrite_simplify.
---@return { lhs: string, rhs: string, guard: string, order: string }[]
function pl.arith.rules() end
--- The values of var for which a comparison holds, whatever the variables of relax_map are (TVM:
--- bound_deducer.cc). (pos_inf, neg_inf), the empty set, when nothing is known.
---@param var perilune.Node
---@param condition perilune.Node
---@param hint_map? table<perilune.Node, any>
---@param relax_map? table<perilune.Node, any>
---@return perilune.IntervalSet
function pl.arith.deduce_bound(var, condition, hint_map, relax_map) end
--- The coefficients of the variables, then the rest; {} if it is not linear (TVM:
--- detect_linear_equation.cc). Fails for vars that are no Vars.
---@param expr perilune.Node
---@param vars perilune.Node[]
---@return perilune.Node[]
function pl.arith.detect_linear_equation(expr, vars) end
--- The least and greatest value of each variable, false where none is known; {} if a part is not
--- linear (TVM: detect_linear_equation.cc). Fails for vars that are no Vars.
---@param condition perilune.Node
---@param vars perilune.Node[]
---@return (perilune.Node|false)[]
function pl.arith.detect_clip_bound(condition, vars) end
--- Solutions by integers, nil if there are none (TVM: solve_linear_equation.cc). Fails for
--- variables that are no Vars.
---@param equations perilune.Node[]
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@return table?
function pl.arith.solve_linear_equations(equations, variables, ranges) end
--- Exactly, or nil
--- (TVM: int_set.cc, iter_affine_map.cc). Fails for a region that is no list of Ranges.
---@param region perilune.Node[]
---@param var_dom table<perilune.Node, any>
---@param predicate? any
---@return perilune.IntervalSet[]?
function pl.arith.estimate_region_strict_bound(region, var_dom, predicate) end
--- Intervals that the region surely has, or nil
--- (TVM: int_set.cc, iter_affine_map.cc). Fails for a region that is no list of Ranges.
---@param region perilune.Node[]
---@param var_dom table<perilune.Node, any>
---@param predicate? any
---@return perilune.IntervalSet[]?
function pl.arith.estimate_region_lower_bound(region, var_dom, predicate) end
--- Intervals that contain the region
--- (TVM: int_set.cc, iter_affine_map.cc). Fails for a region that is no list of Ranges.
---@param region perilune.Node[]
---@param var_dom table<perilune.Node, any>
---@param predicate? any
---@return perilune.IntervalSet[]
function pl.arith.estimate_region_upper_bound(region, var_dom, predicate) end
--- The values of expressions, or Ranges, whose variables run over the sets of dom_map (TVM:
--- int_set.cc). Fails as int_set does.
---@param of any a PrimExpr, a Range, or a list of them
---@param dom_map? table<perilune.Node, any>
---@return perilune.IntervalSet|perilune.IntervalSet[]
function pl.arith.eval_set(of, dom_map) end
--- An interval that contains all of the sets (TVM: UnionUpperBound); the empty set of none. Fails
--- for sets without both ends.
---@param sets perilune.IntervalSet[]
---@return perilune.IntervalSet
function pl.arith.union(sets) end
--- An interval that the sets cover, or the empty set (TVM: UnionLowerBound). Fails as union does.
---@param sets perilune.IntervalSet[]
---@return perilune.IntervalSet
function pl.arith.union_lower_bound(sets) end
--- What the sets have in common (TVM: Intersect). Fails as union does.
---@param sets perilune.IntervalSet[]
---@return perilune.IntervalSet
function pl.arith.intersect(sets) end
--- The region of a buffer that a statement reads and writes, {} if it does neither (TVM:
--- domain_touched.cc). Fails if stmt or buffer is no node.
---@param stmt perilune.Node
---@param buffer perilune.Node
---@param consider_loads? boolean
---@param consider_stores? boolean
---@return perilune.Node[]
function pl.arith.domain_touched(stmt, buffer, consider_loads, consider_stores) end
--- Subexpressions that occur threshold times or more, the outermost first (TVM:
--- detect_common_subexpr.cc). Fails unless threshold is 1 or more.
---@param expr perilune.Node
---@param threshold integer
---@return { expr: perilune.Node, count: integer }[]
function pl.arith.detect_common_subexpr(expr, threshold) end

--- An iterator whose values are all of [0, extent).
---@class perilune.IterMark
---@field source perilune.Node|perilune.IterSumExpr
---@field extent perilune.Node
--- (source // lower_factor) % extent * scale.
---@class perilune.IterSplitExpr
---@field source perilune.IterMark
---@field lower_factor perilune.Node
---@field extent perilune.Node
---@field scale perilune.Node
---@class perilune.IterSumExpr
---@field args perilune.IterSplitExpr[]
---@field base perilune.Node
---@class perilune.IterMapResult
---@field indices perilune.IterSumExpr[]
---@field errors string[] the first ones (64, or a MB of text), then how many more there are
---@field padding_predicate perilune.Node
---@param source any
---@param extent any
---@return perilune.IterMark
function pl.arith.IterMark(source, extent) end
---@param source perilune.IterMark
---@param lower_factor? any
---@param extent? any
---@param scale? any
---@return perilune.IterSplitExpr
function pl.arith.IterSplitExpr(source, lower_factor, extent, scale) end
---@param args perilune.IterSplitExpr[]
---@param base any
---@return perilune.IterSumExpr
function pl.arith.IterSumExpr(args, base) end
--- Indices as sums of splits of independent iterators (TVM: iter_affine_map.cc). Without such a form
--- indices is {} and errors says why. Fails for other check levels and for ranges that are none.
---@param indices any[]
---@param input_iters table<perilune.Node, any>
---@param predicate? any
---@param check_level? "surjective"|"bijective"|"no_check"
---@param simplify_trivial_iterators? boolean
---@return perilune.IterMapResult
function pl.arith.detect_iter_map(indices, input_iters, predicate, check_level, simplify_trivial_iterators) end
--- The indices as the detected form has them, unchanged if there is none. Fails as detect_iter_map does.
---@param indices any[]
---@param input_iters table<perilune.Node, any>
---@param predicate? any
---@param check_level? "surjective"|"bijective"|"no_check"
---@param simplify_trivial_iterators? boolean
---@return perilune.Node[]
function pl.arith.iter_map_simplify(indices, input_iters, predicate, check_level, simplify_trivial_iterators) end
--- An index as an IterSumExpr, the largest scale first, without checks. Fails as detect_iter_map does.
---@param index any
---@param input_iters table<perilune.Node, any>
---@return perilune.IterSumExpr
function pl.arith.normalize_to_iter_sum(index, input_iters) end
--- The expression that an IterSumExpr or IterSplitExpr stands for; others are themselves.
---@param expr any
---@return perilune.Node
function pl.arith.normalize_iter_map_to_expr(expr) end
--- Pairs of outer and inner iterators, {} if the bindings cannot be divided; the extents of the last
--- pair are conditions. Fails as detect_iter_map does, and for sub_iters that are no Vars.
---@param bindings any[]
---@param input_iters table<perilune.Node, any>
---@param sub_iters perilune.Node[]
---@param predicate? any
---@param check_level? "surjective"|"bijective"|"no_check"
---@param simplify_trivial_iterators? boolean
---@return perilune.IterMark[][]
function pl.arith.subspace_divide(bindings, input_iters, sub_iters, predicate, check_level, simplify_trivial_iterators) end
--- The iterators by the outputs of a bijective map. Fails unless there is one output, of its dtype,
--- for each index.
---@param map perilune.IterSumExpr[]
---@param outputs perilune.Node[]
---@return table<perilune.Node, perilune.Node>
function pl.arith.inverse_affine_iter_map(map, outputs) end

--- coef * var >= lower, = equal, <= upper.
---@class perilune.IntGroupBounds
---@field coef perilune.Node
---@field lower perilune.Node[]
---@field equal perilune.Node[]
---@field upper perilune.Node[]
---@class perilune.IntConstraints
---@field variables perilune.Node[]
---@field ranges table<perilune.Node, perilune.Node>
---@field relations perilune.Node[]
---@class perilune.IntConstraintsTransform
---@field src perilune.IntConstraints
---@field dst perilune.IntConstraints
---@field src_to_dst table<perilune.Node, perilune.Node>
---@field dst_to_src table<perilune.Node, perilune.Node>
---@param coef perilune.Node
---@param lower perilune.Node[]
---@param equal perilune.Node[]
---@param upper perilune.Node[]
---@return perilune.IntGroupBounds
function pl.arith.IntGroupBounds(coef, lower, equal, upper) end
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@param relations? perilune.Node[]
---@return perilune.IntConstraints
function pl.arith.IntConstraints(variables, ranges, relations) end
---@param src perilune.IntConstraints
---@param dst perilune.IntConstraints
---@param src_to_dst table<perilune.Node, perilune.Node>
---@param dst_to_src table<perilune.Node, perilune.Node>
---@return perilune.IntConstraintsTransform
function pl.arith.IntConstraintsTransform(src, dst, src_to_dst, dst_to_src) end
--- The ranges of variables; relations is { false } without a solution (TVM:
--- solve_linear_inequality.cc). Fails for ranges that are none and variables that are no Vars.
---@param equations perilune.Node[]|perilune.IntConstraints
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@param deskew_range? boolean
---@return perilune.IntConstraints|perilune.IntConstraintsTransform
function pl.arith.solve_linear_inequalities(equations, variables, ranges, deskew_range) end
--- The bounds of each variable by the later ones, and the other relations (TVM:
--- solve_linear_inequality.cc, SolveLinearInequalities). Fails as solve_linear_inequalities does.
---@param equations perilune.Node[]|perilune.IntConstraints
---@param variables? perilune.Node[]
---@param ranges? table<perilune.Node, any>
---@return table<perilune.Node, perilune.IntGroupBounds>
---@return perilune.Node[]
function pl.arith.solve_inequalities_as_bounds(equations, variables, ranges) end
--- A condition without the variables of ranges that implies the given one for all their values (TVM:
--- narrow_predicate_expression.cc). Fails for what is no condition.
---@param condition perilune.Node
---@param ranges table<perilune.Node, any>
---@return perilune.Node
function pl.arith.narrow_predicate_expression(condition, ranges) end

--- The TIR by TVM's names: PrimExprs, buffers, statements, PrimFuncs.
pl.tir = {}
--- The type of a dtype: "int32", "float32x4", "bool", "handle"; types as they are.
---@param dtype string
---@return perilune.Type
function pl.tir.type(dtype) end
--- The type of a pointer to elements of that dtype in a storage scope.
---@param element string
---@param scope? perilune.Prim
---@return perilune.Type
function pl.tir.PointerType(element, scope) end
--- An integer of a dtype: tir.IntImm("int32", 4).
---@param dtype string
---@param value any
---@return perilune.Node
function pl.tir.IntImm(dtype, value) end
--- A number of a floating-point dtype.
---@param dtype string
---@param value any
---@return perilune.Node
function pl.tir.FloatImm(dtype, value) end
--- A Lua value as a constant of a dtype; without one int32, float32 or bool.
---@param value any
---@param dtype string
---@return perilune.Node
function pl.tir.const(value, dtype) end
--- What a PrimFunc is compiled for, an attribute of it: tir.Target "cuda -arch=sm_50", or a
--- table with `kind` and options; `host` is another one.
---@param spec string|table
---@param host? string|table
---@return perilune.Attrs
function pl.tir.Target(spec, host) end
--- A variable of a dtype ("int32") or of a pointer type.
---@param name string
---@param dtype string
---@return perilune.Node
function pl.tir.Var(name, dtype) end
--- A variable that is no less than 0, such as an extent.
---@param name string
---@param dtype string
---@return perilune.Node
function pl.tir.SizeVar(name, dtype) end
--- A value of another dtype, as a node.
---@param dtype string
---@param value any
---@return perilune.Node
function pl.tir.Cast(dtype, value) end
--- Cast, but nothing when the dtype is right, immediates are converted, and one value of a
--- vector's dtype is repeated.
---@param dtype string
---@param value any
---@return perilune.Node
function pl.tir.cast(dtype, value) end
--- All of the conditions; any of them.
---@param first perilune.Prim
---@param ... perilune.Prim
---@return perilune.Node
function pl.tir.all(first, ...) end
---@param first perilune.Prim
---@param ... perilune.Prim
---@return perilune.Node
function pl.tir.any(first, ...) end
--- A condition negated, as a node.
---@param a perilune.Prim
---@return perilune.Node
function pl.tir.Not(a) end
--- A condition negated; a constant one is computed.
---@param a perilune.Prim
---@return perilune.Node
function pl.tir.logical_not(a) end
--- The number without its sign.
---@param x perilune.Prim
---@return perilune.Node
function pl.tir.abs(x) end
--- The greatest number of a dtype, and the least.
---@param dtype string
---@return perilune.Node
function pl.tir.max_value(dtype) end
---@param dtype string
---@return perilune.Node
function pl.tir.min_value(dtype) end
--- Infinity of a floating-point dtype.
---@param dtype string
---@return perilune.Node
function pl.tir.infinity(dtype) end
--- One of two values, both of which are evaluated.
---@param condition perilune.Prim
---@param true_value perilune.Prim
---@param false_value perilune.Prim
---@return perilune.Node
function pl.tir.Select(condition, true_value, false_value) end
--- An element of a buffer; buffer:load(i, j) is the same.
---@param buffer perilune.Node
---@param indices perilune.Prim[]
---@return perilune.Node
function pl.tir.BufferLoad(buffer, indices) end
--- An element of what a tensor expression computes.
---@param producer perilune.Prim
---@param indices perilune.Prim[]
---@return perilune.Node
function pl.tir.ProducerLoad(producer, indices) end
--- The vector base, base + stride, ...
---@param base perilune.Prim
---@param stride perilune.Prim
---@param lanes integer
---@return perilune.Node
function pl.tir.Ramp(base, stride, lanes) end
--- A vector of one value.
---@param value any
---@param lanes integer
---@return perilune.Node
function pl.tir.Broadcast(value, lanes) end
--- An expression in which `var` stands for a value.
---@param var perilune.Node
---@param value any
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.Let(var, value, body) end
pl.tir.PrimLet = pl.tir.Let
--- A call of a builtin ("tir.exp" or "exp") or of a GlobalVar.
---@param dtype string
---@param op string|perilune.Node
---@param args perilune.Prim[]
---@return perilune.Node
function pl.tir.Call(dtype, op, args) end
pl.tir.PrimCall = pl.tir.Call
--- Lanes of several vectors, in the order of `indices`.
---@param vectors perilune.Prim[]
---@param indices perilune.Prim[]
---@return perilune.Node
function pl.tir.Shuffle(vectors, indices) end
--- A commutative combiner: as many lhs and rhs variables, results, identities.
---@param lhs perilune.Node[]
---@param rhs perilune.Node[]
---@param result perilune.Prim[]
---@param identity_element perilune.Prim[]
---@return perilune.Node
function pl.tir.CommReducer(lhs, rhs, result, identity_element) end
--- A reduction over the axes `rdom`; value `value_index` of the combiner's.
---@param combiner perilune.Prim
---@param src perilune.Prim[]
---@param rdom perilune.Node[]
---@param condition perilune.Prim
---@param value_index? integer
---@param init? any
---@return perilune.Node
function pl.tir.Reduce(combiner, src, rdom, condition, value_index, init) end
--- Reduces over an IterVar of type CommReduce, or a list of them: f(value, axis, where, init); without an axis, of the
--- values: f(a, b, ...). A list of values is reduced at once, and there are as many results.
---@alias perilune.reducer fun(value: any, axis: any, where?: any, init?: any, ...: perilune.Prim): perilune.Node, ...
--- A function that reduces: fcombine(x, y) combines two values, fidentity(dtype) gives what changes nothing. Of lists of
--- values fcombine is given two and gives one, fidentity is given all dtypes and gives a list.
---@param fcombine function
---@param fidentity function
---@param name? string
---@return perilune.reducer
function pl.tir.comm_reducer(fcombine, fidentity, name) end
---@type perilune.reducer
local function reducer() end
--- The sum, the product, the least and the greatest, over axes or of values.
pl.tir.sum = reducer
pl.tir.prod = reducer
pl.tir.min = reducer
pl.tir.max = reducer
--- An extent that any extent fits.
---@return perilune.Node
function pl.tir.Any() end
--- The integers from `first` to `last`, without it; of one number from 0.
---@param first perilune.Prim
---@param last? perilune.Prim
---@return perilune.Node
function pl.tir.Range(first, last) end
--- The `extent` integers from `min` on.
---@param min perilune.Prim
---@param extent perilune.Prim
---@return perilune.Node
function pl.tir.range_from(min, extent) end
--- A variable that runs over a range (nil: not known) in a way ("DataPar", or its number).
---@param dom perilune.Prim
---@param var perilune.Node
---@param iter_type string|integer
---@param thread_tag? string
---@return perilune.Node
function pl.tir.IterVar(dom, var, iter_type, thread_tag) end
--- A buffer over the pointer `data`. Options: data_alignment, offset_factor, buffer_type
--- ("auto"), axis_separators.
---@param data any
---@param dtype string
---@param shape perilune.Prim[]
---@param strides? perilune.Prim[]
---@param elem_offset? perilune.Prim
---@param name string
---@param options? table
---@return perilune.Node
function pl.tir.Buffer(data, dtype, shape, strides, elem_offset, name, options) end
--- A new buffer. Options as of Buffer, and data, strides, elem_offset, scope.
---@param shape perilune.Prim[]
---@param dtype string
---@param name string
---@param options? table
---@return perilune.Node
function pl.tir.decl_buffer(shape, dtype, name, options) end
--- A part of a buffer: a Range, { first, last } or an index in each dimension.
---@param buffer perilune.Node
---@param region table
---@return perilune.Node
function pl.tir.BufferRegion(buffer, region) end
--- Statements in order: tir.SeqStmt { a, b }.
---@param list perilune.Node[]
---@return perilune.Node
function pl.tir.SeqStmt(list) end
--- Binds a variable in its body, to a value of the same dtype.
---@param var perilune.Node
---@param value any
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.LetStmt(var, value, body) end
--- Several nodes that an AttrStmt says something of.
---@param items perilune.Prim[]
---@return perilune.Node
function pl.tir.Array(items) end
--- Says something of its body: tir.AttrStmt(node, "pragma_unroll", 1, body). A list of nodes is an
--- Array.
---@param what perilune.Prim
---@param attr_key string
---@param value any
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.AttrStmt(what, attr_key, value, body) end
--- Ends the program unless a condition holds.
---@param condition perilune.Prim
---@param message perilune.Prim
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.AssertStmt(condition, message, body) end
--- Stores a value into a buffer.
---@param buffer perilune.Node
---@param value any
---@param indices perilune.Prim[]
---@return perilune.Node
function pl.tir.BufferStore(buffer, value, indices) end
--- Memory for a region of a buffer while its body runs.
---@param buffer perilune.Node
---@param bounds table
---@param condition perilune.Prim
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.BufferRealize(buffer, bounds, condition, body) end
--- Stores an element that a tensor expression computes.
---@param producer perilune.Prim
---@param value any
---@param indices perilune.Prim[]
---@return perilune.Node
function pl.tir.ProducerStore(producer, value, indices) end
--- Memory for what a tensor expression computes.
---@param producer perilune.Prim
---@param bounds table
---@param condition perilune.Prim
---@param body perilune.Node|perilune.Node[]
---@param storage_scope? string
---@return perilune.Node
function pl.tir.ProducerRealize(producer, bounds, condition, body, storage_scope) end
--- Memory while its body runs; `buffer_var` points to it there.
---@param buffer_var perilune.Prim
---@param dtype string
---@param extents perilune.Prim[]
---@param condition perilune.Prim
---@param body perilune.Node|perilune.Node[]
---@param annotations? table
---@return perilune.Node
function pl.tir.Allocate(buffer_var, dtype, extents, condition, body, annotations) end
--- Memory that holds a tensor.
---@param buffer_var perilune.Prim
---@param dtype string
---@param extents perilune.Prim[]
---@param data any
---@param body perilune.Node|perilune.Node[]
---@param annotations? table
---@return perilune.Node
function pl.tir.AllocateConst(buffer_var, dtype, extents, data, body, annotations) end
--- A buffer over memory there is, for its body.
---@param buffer perilune.Node
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.DeclBuffer(buffer, body) end
--- Evaluates an expression for its effect.
---@param value any
---@return perilune.Node
function pl.tir.Evaluate(value) end
--- Runs one of two statements; the second may be left out.
---@param condition perilune.Prim
---@param then_case perilune.Prim
---@param else_case? perilune.Prim
---@return perilune.Node
function pl.tir.IfThenElse(condition, then_case, else_case) end
--- A loop over [min, min + extent). Kinds: "serial", "parallel", "vectorized", "unrolled",
--- "thread_binding" (then `thread_binding` is its IterVar), or their numbers.
---@param loop_var perilune.Node
---@param min perilune.Prim
---@param extent perilune.Prim
---@param kind string|integer
---@param body perilune.Node|perilune.Node[]
---@param thread_binding? perilune.Prim
---@param annotations? table
---@return perilune.Node
function pl.tir.For(loop_var, min, extent, kind, body, thread_binding, annotations) end
--- Runs its body as long as a condition holds.
---@param condition perilune.Prim
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.While(condition, body) end
--- Asks for a region of a buffer ahead of its use.
---@param buffer perilune.Node
---@param bounds table
---@return perilune.Node
function pl.tir.Prefetch(buffer, bounds) end
--- A buffer that is a view of a region, for a Block.
---@param buffer perilune.Node
---@param source perilune.Prim
---@return perilune.Node
function pl.tir.MatchBufferRegion(buffer, source) end
pl.tir.MatchBuffer = pl.tir.MatchBufferRegion
--- What the block around it reads.
---@param regions perilune.Node[]
---@return perilune.Node
function pl.tir.BlockReads(regions) end
--- What the block around it writes.
---@param regions perilune.Node[]
---@return perilune.Node
function pl.tir.BlockWrites(regions) end
--- A buffer of the block around it.
---@param buffer perilune.Node
---@return perilune.Node
function pl.tir.AllocBuffer(buffer) end
--- What the block around it does before its first reduction step.
---@param body perilune.Node|perilune.Node[]
---@return perilune.Node
function pl.tir.BlockInit(body) end
--- Says as which buffer a parameter of a PrimFunc is seen.
---@param param perilune.Node
---@param buffer perilune.Node
---@return perilune.Node
function pl.tir.BufferBind(param, buffer) end
--- A unit of computation over iteration variables (IterVars with a range).
---@param iter_vars perilune.Node[]
---@param reads perilune.Node[]
---@param writes perilune.Node[]
---@param name_hint string
---@param body perilune.Node|perilune.Node[]
---@param init? any
---@param alloc_buffers? perilune.Node[]
---@param match_buffers? perilune.Node[]
---@param annotations? table
---@return perilune.Node
function pl.tir.Block(iter_vars, reads, writes, name_hint, body, init, alloc_buffers, match_buffers, annotations) end
--- Runs a block with values for its variables.
---@param iter_values perilune.Prim[]
---@param predicate perilune.Prim
---@param block perilune.Prim
---@return perilune.Node
function pl.tir.BlockRealize(iter_values, predicate, block) end
--- A function of scalars, handles and buffers. A Buffer among the parameters is a handle
--- that `buffer_map` (from Vars to Buffers) sees as the buffer.
---@param params perilune.Node[]
---@param body perilune.Node|perilune.Node[]
---@param ret_type? string|perilune.Type
---@param buffer_map? table<perilune.Node, perilune.Node>
---@param attrs? table
---@return perilune.Node
function pl.tir.PrimFunc(params, body, ret_type, buffer_map, attrs) end
--- Runs a PrimFunc, or the only one of a module. The result is a list of tensors: what each
--- buffer parameter is after the run, the very argument if it was not written.
---@param func perilune.Node|perilune.Module
---@param args any[] tensors or nested tables for buffers, numbers for scalars
---@param options? { uninitialized?: "error"|"zero", externs?: table<string, function> }
---@return perilune.Tensor[]
function pl.tir.run(func, args, options) end
---@class perilune.LoopCheckOptions
---@field rounds? integer 3
---@field seed? integer
---@field rtol? number 1e-4
---@field atol? number 1e-4, times the largest magnitude
---@field sizes? table<string, integer> of variables of shapes
---@field uninitialized? "error"|"zero"
---@field externs? table<string, function>

--- Whether two programs of the loop level compute the same on generated inputs; else nil and a
--- diagnostic, whose code is "unsupported" when nothing could be compared.
---@param before perilune.Node|perilune.Module
---@param after perilune.Node|perilune.Module
---@param options? perilune.LoopCheckOptions
---@return true?
---@return perilune.Diagnostic?
function pl.tir.check(before, after, options) end
--- One of two values, of which the other is not evaluated.
---@param condition perilune.Prim
---@param true_value perilune.Prim
---@param false_value perilune.Prim
---@return perilune.Node
function pl.tir.if_then_else(condition, true_value, false_value) end
--- Calls visit(node) for each PrimExpr and statement, operands and bodies first.
---@param root perilune.Node
---@param visit function
function pl.tir.post_order(root, visit) end
--- Calls visit(node) before its parts; false leaves them out.
---@param root perilune.Node
---@param visit function
function pl.tir.pre_order(root, visit) end
--- A pass over PrimFuncs with flat buffers: below each attribute "pragma_KEY" the loops, which copy a region, become the
--- statement that fintrin(src, dst, pad_before, pad_after, pad_value) returns. src and dst are Buffers with the shape,
--- strides and offset of what is copied; pads are extents by dimension, none where nothing is padded. Fails where the
--- loops do something else (TVM: tir.transform.InjectCopyIntrin).
---@param pragma_key string
---@param fintrin fun(src: any, dst: any, pad_before: any[], pad_after: any[], pad_value?: any): perilune.Node
---@return perilune.Pass
function pl.tir.InjectCopyIntrin(pragma_key, fintrin) end
--- Rewrites a function or statement: pre(node) may give what stands for a node, and then its
--- parts are left alone; else post(node), the node with rewritten parts, may. `only` lists the
--- kinds that both are called for.
---@param root perilune.Node
---@param pre? function
---@param post? function
---@param only? string[]
---@return perilune.Node
function pl.tir.transform(root, pre, post, only) end
--- The statement, function or PrimExpr with other values for free variables: a table from Vars
--- to PrimExprs.
---@param root perilune.Node
---@param values table<perilune.Node, perilune.Prim>
---@return perilune.Node
function pl.tir.substitute(root, values) end
---@class perilune.Layout
---@field name string
---@field dtype string
---@field ndim integer
---@field [integer] string the letter of an axis
---@field index_of fun(layout: perilune.Layout, axis: string): integer?
---@field factor_of fun(layout: perilune.Layout, axis: string): integer?
---@class perilune.BijectiveLayout
---@field src_layout perilune.Layout
---@field dst_layout perilune.Layout
---@field forward_index fun(way: perilune.BijectiveLayout, index: perilune.Prim[]): perilune.Prim[]
---@field backward_index fun(way: perilune.BijectiveLayout, index: perilune.Prim[]): perilune.Prim[]
---@field forward_shape fun(way: perilune.BijectiveLayout, shape: perilune.Prim[]): perilune.Prim[]
---@field backward_shape fun(way: perilune.BijectiveLayout, shape: perilune.Prim[]): perilune.Prim[]
---@class perilune.IndexMap
---@field initial_indices perilune.Node[]
---@field final_indices perilune.Node[]
---@field inverse_index_map? perilune.IndexMap
---@field map_indices fun(map: perilune.IndexMap, indices: perilune.Prim[]): perilune.Prim[]
---@field map_shape fun(map: perilune.IndexMap, shape: perilune.Prim[]): integer[]
---@field is_equivalent_to fun(map: perilune.IndexMap, other: perilune.IndexMap): boolean
--- A layout by its letters: tir.layout "NCHW16c"; "__undef__" of none.
---@param name string
---@param dtype? string
---@return perilune.Layout
function pl.tir.layout(name, dtype) end
--- The way from one layout to another of the same axes, and back.
---@param source string|perilune.Layout
---@param destination string|perilune.Layout
---@return perilune.BijectiveLayout
function pl.tir.bijective_layout(source, destination) end
--- A map from variables to indices: tir.IndexMap({ i }, { i // 4, i % 4 }), or of a function of
--- so many variables: tir.IndexMap.from_func(f, 1).
---@alias perilune.IndexMapMaker fun(initial: perilune.Node[], final: perilune.Prim[]): perilune.IndexMap
--- from_func_with_separators gives also where tir.IndexMap.AXIS_SEPARATOR stands among the results:
--- the number of the indices before it.
---@class perilune.IndexMapType
---@field from_func fun(mapping: function, ndim: integer): perilune.IndexMap
---@field from_func_with_separators fun(mapping: function, ndim: integer): perilune.IndexMap, integer[]
---@field is_map fun(value: any): boolean
---@field AXIS_SEPARATOR table
---@type perilune.IndexMapType|perilune.IndexMapMaker
pl.tir.IndexMap = {}
--- The script form of a node or a module of PrimFuncs, as tostring gives it; with the option
--- `verbose_expr` a PrimExpr stands behind declarations of what it uses.
---@param program perilune.Node|perilune.Module
---@param options? { verbose_expr?: boolean }
---@return string
function pl.tir.script(program, options) end

--- The module in a TVMScript text; a single PrimFunc becomes a module.
---@param text string
---@param name? string of the text, in messages
---@return perilune.Module? module
---@return perilune.Diag? diag
function pl.tir.parse(text, name) end

--- The PrimExpr or the statements in a TVMScript text that declares first what they use, as
--- pl.tir.script(node, { verbose_expr = true }) prints it.
---@param text string
---@param name? string of the text, in messages
---@return perilune.Node? node
---@return perilune.Diag? diag
---@param names? table<string, perilune.Node> Vars and Buffers of the text
function pl.tir.parse_expr(text, name, names) end
--- What is known of a builtin: its name, what a call of it does ("pure", "opaque", ...), how many
--- arguments it takes (nil: any number).
---@param name string
---@return { name: string, effect: string, args?: integer }
function pl.tir.builtin(name) end
--- What evaluating a PrimExpr does.
---@param node perilune.Node
---@return "pure"|"read_state"|"update_state"
function pl.tir.side_effect(node) end
--- Whether a statement or PrimExpr uses a variable, or one of which the function says so.
---@param node perilune.Node
---@param which perilune.Node|fun(var: perilune.Node): boolean
---@return boolean
function pl.tir.uses_var(node, which) end
--- The variables that a statement or PrimExpr uses and does not bind, in the order of their
--- first uses; without those of the list `defined`.
---@param node perilune.Node
---@param defined? perilune.Node[]
---@return perilune.Node[]
function pl.tir.undefined_vars(node, defined) end
--- Whether each variable is bound once at the most; then true, else false and a diagnostic. A let in a PrimExpr may be
--- there several times with the same value.
---@param node perilune.Node
---@return boolean
---@return perilune.Diag? diag
function pl.tir.verify_ssa(node) end
--- Whether each variable of a PrimFunc is bound, once (indices of threads may be bound again), and used inside of what
--- binds it, and each block with iteration variables uses no index of a loop around it.
---@param fn perilune.Node
---@return boolean
---@return perilune.Diag? diag
function pl.tir.verify_well_formed(fn) end
--- Whether two PrimExprs are the same, with the very same variables.
---@param a perilune.Node
---@param b perilune.Node
---@return boolean
function pl.tir.expr_deep_equal(a, b) end
---@alias perilune.binary fun(a: perilune.Prim, b: perilune.Prim): perilune.Node
---@param value string
---@return perilune.Node
function pl.tir.StringImm(value) end

-- The nodes as they are: operands of one dtype, nothing computed.
---@type perilune.binary
local binary = function(_, _) end
pl.tir.Add = binary
pl.tir.Sub = binary
pl.tir.Mul = binary
pl.tir.Div = binary
pl.tir.Mod = binary
pl.tir.FloorDiv = binary
pl.tir.FloorMod = binary
pl.tir.Min = binary
pl.tir.Max = binary
pl.tir.EQ = binary
pl.tir.NE = binary
pl.tir.LT = binary
pl.tir.LE = binary
pl.tir.GT = binary
pl.tir.GE = binary
pl.tir.And = binary
pl.tir.Or = binary
-- The same with dtypes matched and constants computed: what operators build.
pl.tir.add = binary
pl.tir.subtract = binary
pl.tir.multiply = binary
pl.tir.truncdiv = binary
pl.tir.truncmod = binary
pl.tir.floordiv = binary
pl.tir.floormod = binary
pl.tir.eq = binary
pl.tir.ne = binary
pl.tir.lt = binary
pl.tir.le = binary
pl.tir.gt = binary
pl.tir.ge = binary
pl.tir.logical_and = binary
pl.tir.logical_or = binary
-- The quotient: of integers towards zero.
pl.tir.div = binary
-- Of integers: quotients and remainders of indices, and the quotient towards plus infinity, for
-- a positive divisor.
pl.tir.indexdiv = binary
pl.tir.indexmod = binary
pl.tir.ceildiv = binary
-- Of floats.
pl.tir.power = binary
-- Builtins: calls of TVM's "tir.*" operators.
---@type fun(...: perilune.Prim): perilune.Node
local builtin = function(...) end
pl.tir.exp = builtin
pl.tir.exp2 = builtin
pl.tir.exp10 = builtin
pl.tir.erf = builtin
pl.tir.tanh = builtin
pl.tir.sigmoid = builtin
pl.tir.sqrt = builtin
pl.tir.rsqrt = builtin
pl.tir.log = builtin
pl.tir.log2 = builtin
pl.tir.log1p = builtin
pl.tir.log10 = builtin
pl.tir.tan = builtin
pl.tir.cos = builtin
pl.tir.cosh = builtin
pl.tir.sin = builtin
pl.tir.sinh = builtin
pl.tir.asin = builtin
pl.tir.acos = builtin
pl.tir.atan = builtin
pl.tir.acosh = builtin
pl.tir.asinh = builtin
pl.tir.atanh = builtin
pl.tir.clz = builtin
pl.tir.floor = builtin
pl.tir.ceil = builtin
pl.tir.round = builtin
pl.tir.nearbyint = builtin
pl.tir.trunc = builtin
pl.tir.fabs = builtin
pl.tir.isnan = builtin
pl.tir.isinf = builtin
pl.tir.isfinite = builtin
pl.tir.popcount = builtin
pl.tir.atan2 = builtin
pl.tir.nextafter = builtin
pl.tir.hypot = builtin
pl.tir.copysign = builtin
pl.tir.ldexp = builtin
pl.tir.pow = builtin
pl.tir.fmod = builtin
pl.tir.fma = builtin
pl.tir.likely = builtin
pl.tir.bitwise_and = builtin
pl.tir.bitwise_or = builtin
pl.tir.bitwise_xor = builtin
pl.tir.bitwise_not = builtin
pl.tir.shift_left = builtin
pl.tir.shift_right = builtin
pl.tir.large_uint_imm = builtin
pl.tir.q_multiply_shift = builtin
pl.tir.q_multiply_shift_per_axis = builtin
pl.tir.isnullptr = builtin
pl.tir.address_of = builtin
pl.tir.reinterpret = builtin
pl.tir.vectorhigh = builtin
pl.tir.vectorlow = builtin
pl.tir.vectorcombine = builtin
pl.tir.type_annotation = builtin
pl.tir.call_pure_extern = builtin
pl.tir.call_llvm_pure_intrin = builtin
pl.tir.call_spirv_pure_glsl450 = builtin
pl.tir.dp4a = builtin
pl.tir.ret = builtin
pl.tir.call_extern = builtin
pl.tir.call_llvm_intrin = builtin
pl.tir.prefetch = builtin
pl.tir.tvm_throw_last_error = builtin
pl.tir.tvm_stack_alloca = builtin
pl.tir.tvm_stack_make_shape = builtin
pl.tir.tvm_stack_make_array = builtin
pl.tir.tvm_call_packed = builtin
pl.tir.tvm_call_cpacked = builtin
pl.tir.tvm_call_trace_packed = builtin
pl.tir.tvm_call_packed_lowered = builtin
pl.tir.tvm_call_cpacked_lowered = builtin
pl.tir.tvm_call_trace_packed_lowered = builtin
pl.tir.tvm_check_return = builtin
pl.tir.tvm_access_ptr = builtin
pl.tir.tvm_static_handle = builtin
pl.tir.tvm_tuple = builtin
pl.tir.tvm_thread_invariant = builtin
pl.tir.tvm_context_id = builtin
pl.tir.undef = builtin
pl.tir.tvm_struct_get = builtin
pl.tir.tvm_struct_set = builtin
pl.tir.lookup_param = builtin
pl.tir.tvm_storage_sync = builtin
pl.tir.tvm_warp_shuffle = builtin
pl.tir.tvm_warp_shuffle_up = builtin
pl.tir.tvm_warp_shuffle_down = builtin
pl.tir.tvm_global_barrier_kinit = builtin
pl.tir.tvm_thread_allreduce = builtin
pl.tir.tvm_load_matrix_sync = builtin
pl.tir.tvm_mma_sync = builtin
pl.tir.tvm_bmma_sync = builtin
pl.tir.tvm_fill_fragment = builtin
pl.tir.tvm_store_matrix_sync = builtin
pl.tir.tvm_warp_activemask = builtin
pl.tir.ptx_mma = builtin
pl.tir.ptx_mma_sp = builtin
pl.tir.ptx_ldg32 = builtin
pl.tir.tvm_mfma = builtin
pl.tir.tvm_mfma_store = builtin
pl.tir.tvm_thread_context = builtin
pl.tir.ptx_ldmatrix = builtin
pl.tir.mma_store = builtin
pl.tir.mma_fill = builtin
pl.tir.ptx_cp_async = builtin
pl.tir.ptx_cp_async_bulk = builtin
pl.tir.ptx_commit_group = builtin
pl.tir.ptx_wait_group = builtin
pl.tir.ptx_cp_async_barrier = builtin
pl.tir.ptx_init_barrier_thread_count = builtin
pl.tir.ptx_arrive_barrier = builtin
pl.tir.ptx_arrive_barrier_expect_tx = builtin
pl.tir.ptx_wait_barrier = builtin
pl.tir.create_barriers = builtin
pl.tir.atomic_add = builtin
pl.tir.nd_mem_alloc_with_scope = builtin
pl.tir.texture2d_store = builtin
pl.tir.texture2d_load = builtin
pl.tir.dma_copy = builtin
pl.tir.dma_wait = builtin
pl.tir.dma_start_group = builtin
pl.tir.dma_end_group = builtin
pl.tir.assume = builtin
pl.tir.start_profile_intrinsic = builtin
pl.tir.end_profile_intrinsic = builtin
pl.tir.anylist_getitem = builtin
pl.tir.anylist_resetitem = builtin
pl.tir.anylist_setitem_call_packed = builtin
pl.tir.anylist_setitem_call_cpacked = builtin
pl.tir.TVMBackendAllocWorkspace = builtin
pl.tir.TVMBackendFreeWorkspace = builtin
-- Constructors of the TIR's kinds are in pl.ir too.
pl.tir.renew_defs = pl.renew_defs
pl.ir.IntImm = pl.tir.IntImm
pl.ir.FloatImm = pl.tir.FloatImm
pl.ir.StringImm = pl.tir.StringImm
pl.ir.Cast = pl.tir.Cast
pl.ir.PrimLet = pl.tir.Let
pl.ir.PrimCall = pl.tir.Call
pl.ir.BlockReads = pl.tir.BlockReads
pl.ir.BlockWrites = pl.tir.BlockWrites
pl.ir.AllocBuffer = pl.tir.AllocBuffer
pl.ir.MatchBuffer = pl.tir.MatchBuffer
pl.ir.BlockInit = pl.tir.BlockInit
pl.ir.BufferBind = pl.tir.BufferBind
pl.ir.Add = pl.tir.Add
pl.ir.Sub = pl.tir.Sub
pl.ir.Mul = pl.tir.Mul
pl.ir.Div = pl.tir.Div
pl.ir.Mod = pl.tir.Mod
pl.ir.FloorDiv = pl.tir.FloorDiv
pl.ir.FloorMod = pl.tir.FloorMod
pl.ir.Min = pl.tir.Min
pl.ir.Max = pl.tir.Max
pl.ir.EQ = pl.tir.EQ
pl.ir.NE = pl.tir.NE
pl.ir.LT = pl.tir.LT
pl.ir.LE = pl.tir.LE
pl.ir.GT = pl.tir.GT
pl.ir.GE = pl.tir.GE
pl.ir.And = pl.tir.And
pl.ir.Or = pl.tir.Or
pl.ir.Not = pl.tir.Not
pl.ir.Select = pl.tir.Select
pl.ir.BufferLoad = pl.tir.BufferLoad
pl.ir.ProducerLoad = pl.tir.ProducerLoad
pl.ir.Ramp = pl.tir.Ramp
pl.ir.Broadcast = pl.tir.Broadcast
pl.ir.Shuffle = pl.tir.Shuffle
pl.ir.CommReducer = pl.tir.CommReducer
pl.ir.Reduce = pl.tir.Reduce
pl.ir.Any = pl.tir.Any
pl.ir.Range = pl.tir.Range
pl.ir.IterVar = pl.tir.IterVar
pl.ir.Buffer = pl.tir.Buffer
pl.ir.BufferRegion = pl.tir.BufferRegion
pl.ir.Array = pl.tir.Array
pl.ir.LetStmt = pl.tir.LetStmt
pl.ir.AttrStmt = pl.tir.AttrStmt
pl.ir.AssertStmt = pl.tir.AssertStmt
pl.ir.BufferStore = pl.tir.BufferStore
pl.ir.BufferRealize = pl.tir.BufferRealize
pl.ir.ProducerStore = pl.tir.ProducerStore
pl.ir.ProducerRealize = pl.tir.ProducerRealize
pl.ir.Allocate = pl.tir.Allocate
pl.ir.AllocateConst = pl.tir.AllocateConst
pl.ir.DeclBuffer = pl.tir.DeclBuffer
pl.ir.Evaluate = pl.tir.Evaluate
pl.ir.IfThenElse = pl.tir.IfThenElse
pl.ir.For = pl.tir.For
pl.ir.While = pl.tir.While
pl.ir.Prefetch = pl.tir.Prefetch
pl.ir.SeqStmt = pl.tir.SeqStmt
pl.ir.Block = pl.tir.Block
pl.ir.BlockRealize = pl.tir.BlockRealize
pl.ir.PrimFunc = pl.tir.PrimFunc

-- ------------------------------------------------------------------ pl.topi
--
-- Tensor operators as tensor expressions, by TVM's names.

---@alias perilune.topi.Operand perilune.te.Tensor|perilune.Node|number|boolean
--- `constant` is known; `pack(axes)` gives a constant operand with permuted axes.
---@alias perilune.topi.Argument { type: perilune.Type, constant: perilune.Tensor?, pack: function? }
--- (attrs, inputs, out_type, args): the tensor, or a list of them; or nil and why there is none.
---@alias perilune.topi.Compute fun(...): perilune.te.Tensor|perilune.te.Tensor[]|nil, string?

pl.topi = {}

-- Functions of one element.

---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.exp(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.log(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.log2(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.log10(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.sqrt(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.rsqrt(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.tanh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.sigmoid(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.erf(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.sin(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.cos(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.tan(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.asin(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.acos(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.atan(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.sinh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.cosh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.asinh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.acosh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.atanh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.fast_exp(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.fast_tanh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.fast_erf(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.floor(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.ceil(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.trunc(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.abs(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.isnan(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.isinf(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.isfinite(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.identity(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.negative(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.sign(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.reciprocal(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.logical_not(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.bitwise_not(x) end
--- Halves go to the even integer.
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.rint(x) end
--- Halves go away from zero.
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.round(x) end
---@param x perilune.te.Tensor
---@param dtype string
---@return perilune.te.Tensor
function pl.topi.cast(x, dtype) end
--- Limited to [least, most]; nil is no limit.
---@param x perilune.te.Tensor
---@param least? number
---@param most? number
---@return perilune.te.Tensor
function pl.topi.clip(x, least, most) end
---@param shape integer[]
---@param dtype string
---@param value number|perilune.Node
---@return perilune.te.Tensor
function pl.topi.full(shape, dtype, value) end
---@param x perilune.te.Tensor
---@param value number|perilune.Node
---@return perilune.te.Tensor
function pl.topi.full_like(x, value) end
-- Operators of Relay.
---@param data perilune.te.Tensor
---@param axis? integer
---@param dtype? string
---@param exclusive? boolean|integer
---@return perilune.te.Tensor
function pl.topi.cumsum(data, axis, dtype, exclusive) end
---@param data perilune.te.Tensor
---@param axis? integer
---@param dtype? string
---@param exclusive? boolean|integer
---@return perilune.te.Tensor
function pl.topi.cumprod(data, axis, dtype, exclusive) end
---@param data perilune.te.Tensor
---@param axis? integer
---@param is_ascend? boolean|integer
---@return perilune.te.Tensor
function pl.topi.sort(data, axis, is_ascend) end
---@param data perilune.te.Tensor
---@param valid_count? nil
---@param axis? integer
---@param is_ascend? boolean|integer
---@param dtype? string
---@return perilune.te.Tensor
function pl.topi.argsort(data, valid_count, axis, is_ascend, dtype) end
--- ret_type is "both", "values" or "indices".
---@param data perilune.te.Tensor
---@param k? integer
---@param axis? integer
---@param ret_type? string
---@param is_ascend? boolean|integer
---@param dtype? string
---@return perilune.te.Tensor|perilune.te.Tensor[]
function pl.topi.topk(data, k, axis, ret_type, is_ascend, dtype) end
---@param data perilune.te.Tensor
---@param indices perilune.te.Tensor
---@param updates perilune.te.Tensor
---@param axis? integer
---@param reduction? string
---@return perilune.te.Tensor
function pl.topi.scatter_elements(data, indices, updates, axis, reduction) end
--- Index vectors are along the first axis of the indices.
---@param data perilune.te.Tensor
---@param indices perilune.te.Tensor
---@param updates perilune.te.Tensor
---@param mode? string
---@return perilune.te.Tensor
function pl.topi.scatter_nd(data, indices, updates, mode) end
---@param x perilune.te.Tensor
---@param repeats integer
---@param axis? integer
---@return perilune.te.Tensor
pl.topi["repeat"] = function(x, repeats, axis) end
---@param array perilune.te.Tensor
---@param dtype? string
---@return perilune.te.Tensor
function pl.topi.shape(array, dtype) end
---@param array perilune.te.Tensor
---@param dtype? string
---@return perilune.te.Tensor
function pl.topi.ndarray_size(array, dtype) end
---@param a perilune.te.Tensor
---@param b perilune.te.Tensor
---@param transp_a? boolean
---@param transp_b? boolean
---@return perilune.te.Tensor
function pl.topi.matmul(a, b, transp_a, transp_b) end
---@param array perilune.te.Tensor
---@param src_layout string
---@param dst_layout string
---@return perilune.te.Tensor
function pl.topi.layout_transform(array, src_layout, dst_layout) end
---@param subscripts string
---@param ... perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.einsum(subscripts, ...) end
---@param a perilune.te.Tensor
---@param v perilune.te.Tensor
---@param begin integer[]|perilune.te.Tensor
---@param last integer[]|perilune.te.Tensor
---@param strides? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.strided_set(a, v, begin, last, strides) end
---@param data perilune.te.Tensor
---@param diagonal perilune.te.Tensor
---@param k1? number
---@param k2? number
---@param super_diag_right_align? boolean
---@param sub_diag_right_align? boolean
---@return perilune.te.Tensor
function pl.topi.matrix_set_diag(data, diagonal, k1, k2, super_diag_right_align, sub_diag_right_align) end
---@param sparse_indices perilune.te.Tensor
---@param output_shape integer[]
---@param sparse_values perilune.te.Tensor
---@param default_value? number|perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value) end
---@param sorted_sequence perilune.te.Tensor
---@param values perilune.te.Tensor
---@param right? boolean
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.searchsorted(sorted_sequence, values, right, out_dtype) end
---@param data perilune.te.Tensor
---@param target_shape integer[]
---@return perilune.te.Tensor
function pl.topi.collapse_sum(data, target_shape) end
---@param a perilune.te.Tensor
---@param b perilune.te.Tensor
---@param axes? integer|table
---@return perilune.te.Tensor
function pl.topi.tensordot(a, b, axes) end
---@param a perilune.te.Tensor
---@param shape_like perilune.te.Tensor
---@param axis integer|integer[]
---@return perilune.te.Tensor
function pl.topi.expand_like(a, shape_like, axis) end
---@param lhs perilune.te.Tensor
---@param rhs perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.log_add_exp(lhs, rhs) end
---@param x number|perilune.Node|perilune.te.Tensor
---@return perilune.Node|perilune.te.Tensor
function pl.topi.ceil_log2(x) end
---@param x perilune.te.Tensor
---@param multiplier integer
---@param shift integer
---@return perilune.te.Tensor
function pl.topi.fixed_point_multiply(x, multiplier, shift) end
---@param a perilune.te.Tensor
---@param seq_lengths perilune.te.Tensor
---@param seq_axis? integer
---@param batch_axis? integer
---@return perilune.te.Tensor
function pl.topi.reverse_sequence(a, seq_lengths, seq_axis, batch_axis) end
---@param data perilune.te.Tensor
---@param valid_length perilune.te.Tensor
---@param mask_value? number
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.sequence_mask(data, valid_length, mask_value, axis) end
---@param a_tuple perilune.te.Tensor[]
---@param indexing? string
---@return perilune.te.Tensor[]
function pl.topi.meshgrid(a_tuple, indexing) end
---@param data perilune.te.Tensor
---@param axis integer
---@param window_shape integer[]
---@param strides integer[]
---@return perilune.te.Tensor
function pl.topi.sliding_window(data, axis, window_shape, strides) end
--- The shape is known: integers.
---@param indices perilune.te.Tensor
---@param shape perilune.Tensor
---@return perilune.te.Tensor
function pl.topi.unravel_index(indices, shape) end
---@param data perilune.te.Tensor
---@param indices perilune.te.Tensor[]
---@return perilune.te.Tensor
function pl.topi.adv_index(data, indices) end
---@param data perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.invert_permutation(data) end
-- Of two operands that broadcast; of two expressions an expression.

---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.add(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.subtract(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.multiply(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.divide(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.floor_divide(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.trunc_divide(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.mod(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.trunc_mod(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.floor_mod(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.power(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.left_shift(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.right_shift(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.bitwise_and(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.bitwise_or(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.bitwise_xor(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.logical_and(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.logical_or(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.logical_xor(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.equal(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.not_equal(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.greater(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.greater_equal(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.less(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.less_equal(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.maximum(lhs, rhs) end
---@param lhs perilune.topi.Operand
---@param rhs perilune.topi.Operand
---@return perilune.te.Tensor|perilune.Node
function pl.topi.minimum(lhs, rhs) end
---@param x perilune.te.Tensor
---@param shape integer[]
---@return perilune.te.Tensor
function pl.topi.broadcast_to(x, shape) end
---@param condition perilune.te.Tensor
---@param x perilune.te.Tensor
---@param y perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.where(condition, x, y) end
-- Reductions over axes; nil are all.

---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@return perilune.te.Tensor
function pl.topi.sum(x, axis, keepdims) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@return perilune.te.Tensor
function pl.topi.prod(x, axis, keepdims) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@return perilune.te.Tensor
function pl.topi.max(x, axis, keepdims) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@return perilune.te.Tensor
function pl.topi.min(x, axis, keepdims) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@return perilune.te.Tensor
function pl.topi.all(x, axis, keepdims) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@return perilune.te.Tensor
function pl.topi.any(x, axis, keepdims) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@param select_last_index? boolean
---@param index_dtype? string "int32"
---@return perilune.te.Tensor
function pl.topi.argmax(x, axis, keepdims, select_last_index, index_dtype) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@param select_last_index? boolean
---@param index_dtype? string "int32"
---@return perilune.te.Tensor
function pl.topi.argmin(x, axis, keepdims, select_last_index, index_dtype) end
--- A reduction by a reducer of te.comm_reducer, of f(element).
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@param keepdims? boolean
---@param fcombine function
---@param f? fun(element: perilune.Node): perilune.Node
---@param name? string
---@return perilune.te.Tensor
function pl.topi.comm_reduce(x, axis, keepdims, fcombine, f, name) end
-- What moves elements.

---@param x perilune.te.Tensor
---@param axes? integer[]
---@return perilune.te.Tensor
function pl.topi.transpose(x, axes) end
--- The same elements in another shape; one extent may be -1.
---@param x perilune.te.Tensor
---@param newshape integer[]
---@return perilune.te.Tensor
function pl.topi.reshape(x, newshape) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.flatten(x) end
---@param x perilune.te.Tensor
---@param axis? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.squeeze(x, axis) end
---@param x perilune.te.Tensor
---@param axis integer
---@param num_newaxis? integer
---@return perilune.te.Tensor
function pl.topi.expand_dims(x, axis, num_newaxis) end
---@param list perilune.te.Tensor[]
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.concatenate(list, axis) end
---@param list perilune.te.Tensor[]
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.stack(list, axis) end
---@param x perilune.te.Tensor
---@param indices_or_sections integer|integer[]
---@param axis? integer
---@return perilune.te.Tensor[]
function pl.topi.split(x, indices_or_sections, axis) end
---@param x perilune.te.Tensor
---@param begin integer[]
---@param last? integer[]
---@param strides? integer[]
---@param axes? integer[]
---@param slice_mode? "end"|"size"
---@return perilune.te.Tensor
function pl.topi.strided_slice(x, begin, last, strides, axes, slice_mode) end
--- A slice whose result has a known shape. What is an expression in `begin` is limited to the axis.
---@param x perilune.te.Tensor
---@param begin (integer|perilune.Node)[]
---@param strides? integer[]
---@param axes? integer[]
---@param out_shape (integer|perilune.Node)[]
---@return perilune.te.Tensor
function pl.topi.dynamic_strided_slice(x, begin, strides, axes, out_shape) end
---@param x perilune.te.Tensor
---@param reps integer[]
---@return perilune.te.Tensor
function pl.topi.tile(x, reps) end
--- TVM's repeat, which is a word of Lua.
---@param x perilune.te.Tensor
---@param repeats integer
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.repeat_(x, repeats, axis) end
---@param x perilune.te.Tensor
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.flip(x, axis) end
---@param x perilune.te.Tensor
---@param indices perilune.te.Tensor
---@param axis? integer
---@param mode? "clip"|"wrap"|"strict"
---@return perilune.te.Tensor
function pl.topi.take(x, indices, axis, mode) end
---@param x perilune.te.Tensor
---@param axis integer
---@param indices perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.gather(x, axis, indices) end
---@param x perilune.te.Tensor
---@param indices perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.gather_nd(x, indices) end
---@param indices perilune.te.Tensor
---@param on_value number
---@param off_value number
---@param depth integer
---@param axis? integer
---@param dtype string
---@return perilune.te.Tensor
function pl.topi.one_hot(indices, on_value, off_value, depth, axis, dtype) end
---@param start number
---@param stop number
---@param step? number
---@param dtype? string
---@return perilune.te.Tensor
function pl.topi.arange(start, stop, step, dtype) end
---@param x perilune.te.Tensor
---@param k integer
---@param upper boolean
---@return perilune.te.Tensor
function pl.topi.trilu(x, k, upper) end

pl.topi.nn = {}

---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.relu(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.sigmoid(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.gelu(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.gelu_tanh(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.hard_swish(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.softplus(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.mish(x) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.softsign(x) end
---@param x perilune.te.Tensor
---@param alpha? number
---@return perilune.te.Tensor
function pl.topi.nn.leaky_relu(x, alpha) end
---@param x perilune.te.Tensor
---@param alpha? number
---@return perilune.te.Tensor
function pl.topi.nn.elu(x, alpha) end
---@param x perilune.te.Tensor
---@param alpha? number
---@return perilune.te.Tensor
function pl.topi.nn.celu(x, alpha) end
---@param x perilune.te.Tensor
---@param alpha? number
---@return perilune.te.Tensor
function pl.topi.nn.silu(x, alpha) end
---@param x perilune.te.Tensor
---@param alpha? number
---@return perilune.te.Tensor
function pl.topi.nn.thresholded_relu(x, alpha) end
---@param x perilune.te.Tensor
---@param alpha? number
---@param gamma? number
---@return perilune.te.Tensor
function pl.topi.nn.selu(x, alpha, gamma) end
---@param x perilune.te.Tensor
---@param alpha? number
---@param beta? number
---@return perilune.te.Tensor
function pl.topi.nn.hard_sigmoid(x, alpha, beta) end
---@param x perilune.te.Tensor
---@param bias? number
---@param lambd? number
---@return perilune.te.Tensor
function pl.topi.nn.shrink(x, bias, lambd) end
---@param x perilune.te.Tensor
---@param pad_before integer[]
---@param pad_after? integer[]
---@param pad_value? number
---@param name? string
---@return perilune.te.Tensor
function pl.topi.nn.pad(x, pad_before, pad_after, pad_value, name) end
--- Borders whose widths are expressions, in a result of a known shape.
---@param x perilune.te.Tensor
---@param pad_before (integer|perilune.Node)[]
---@param pad_value? number|perilune.Node
---@param out_shape (integer|perilune.Node)[]
---@return perilune.te.Tensor
function pl.topi.nn.dynamic_pad(x, pad_before, pad_value, out_shape) end
---@param x perilune.te.Tensor
---@param pad_before integer[]
---@param pad_after? integer[]
---@param mode? "SYMMETRIC"|"REFLECT"
---@return perilune.te.Tensor
function pl.topi.nn.mirror_pad(x, pad_before, pad_after, mode) end
---@param x perilune.te.Tensor
---@param pad_before integer[]
---@param pad_after? integer[]
---@return perilune.te.Tensor
function pl.topi.nn.edge_pad(x, pad_before, pad_after) end
---@param x perilune.te.Tensor
---@param strides integer[]
---@param dilation_value? number
---@return perilune.te.Tensor
function pl.topi.nn.dilate(x, strides, dilation_value) end
---@param x perilune.te.Tensor
---@param y perilune.te.Tensor
---@param transpose_a? boolean
---@param transpose_b? boolean
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.matmul(x, y, transpose_a, transpose_b, out_dtype) end
---@param x perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param bias? perilune.te.Tensor
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.dense(x, weight, bias, out_dtype) end
--- transpose_b is true unless it is given.
---@param x perilune.te.Tensor
---@param y perilune.te.Tensor
---@param transpose_a? boolean
---@param transpose_b? boolean
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.batch_matmul(x, y, transpose_a, transpose_b, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv1d(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv1d_transpose(data, weight, strides, padding, output_padding, groups, dilation, out_dtype) end
---@param x perilune.te.Tensor
---@param kernel integer|integer[]
---@param strides? integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param pool_type "max"|"avg"
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@return perilune.te.Tensor
function pl.topi.nn.pool1d(x, kernel, strides, dilation, padding, pool_type, ceil_mode, count_include_pad) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv2d(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv2d_transpose(data, weight, strides, padding, output_padding, groups, dilation, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv1d_ncw(data, weight, strides, padding, dilation, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.group_conv1d_ncw(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv1d_nwc(data, weight, strides, padding, dilation, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.group_conv1d_nwc(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param out_dtype? string
---@param output_padding? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.nn.conv1d_transpose_ncw(data, weight, strides, padding, out_dtype, output_padding) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv2d_nchw(data, weight, strides, padding, dilation, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.group_conv2d_nchw(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv2d_nhwc(data, weight, strides, padding, dilation, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.group_conv2d_nhwc(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param out_dtype? string
---@param output_padding? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.nn.conv2d_transpose_nchw(data, weight, strides, padding, out_dtype, output_padding) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv3d_ncdhw(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv3d_ndhwc(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param out_dtype? string
---@param output_padding? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.nn.conv3d_transpose_ncdhw(data, weight, strides, padding, out_dtype, output_padding) end
---@param x perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.flatten(x) end
---@param x perilune.te.Tensor
---@param kernel integer|integer[]
---@param strides? integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param pool_type "max"|"avg"
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@return perilune.te.Tensor
function pl.topi.nn.pool2d(x, kernel, strides, dilation, padding, pool_type, ceil_mode, count_include_pad) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param groups? integer
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv3d(data, weight, strides, padding, dilation, groups, out_dtype) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv3d_transpose(data, weight, strides, padding, output_padding, groups, dilation, out_dtype) end
---@param x perilune.te.Tensor
---@param kernel integer|integer[]
---@param strides? integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param pool_type "max"|"avg"
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@return perilune.te.Tensor
function pl.topi.nn.pool3d(x, kernel, strides, dilation, padding, pool_type, ceil_mode, count_include_pad) end
--- Weights are (I, H, W, O).
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.nn.conv2d_packed(data, weight, strides, padding, dilation) end
---@param data perilune.te.Tensor
---@param weight perilune.te.Tensor
---@param strides? integer|integer[]
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.depthwise_conv2d_nchw(data, weight, strides, padding, dilation, out_dtype) end
---@param x perilune.te.Tensor
---@param pool_type "max"|"avg"
---@return perilune.te.Tensor
function pl.topi.nn.global_pool(x, pool_type) end
--- The greatest elements of windows and where they are in the tensor, as ONNX's MaxPool numbers them.
---@param x perilune.te.Tensor
---@param options table kernel, strides, dilation, padding; out: the extents of the result
---@param column_major? boolean the axes but the first two in the opposite order
---@return perilune.te.Tensor values
---@return perilune.te.Tensor positions int64
function pl.topi.nn.max_pool_with_positions(x, options, column_major) end
---@param x perilune.te.Tensor
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.nn.softmax(x, axis) end
---@param x perilune.te.Tensor
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.nn.log_softmax(x, axis) end
---@param x perilune.te.Tensor
---@param gamma? perilune.te.Tensor
---@param beta? perilune.te.Tensor
---@param axis integer|integer[]
---@param epsilon? number
---@return perilune.te.Tensor
function pl.topi.nn.layer_norm(x, gamma, beta, axis, epsilon) end
--- What layer_norm gives, the mean over axes, which are kept with extent 1, and
--- 1 / sqrt(variance + epsilon).
---@param x perilune.te.Tensor
---@param gamma? perilune.te.Tensor
---@param beta? perilune.te.Tensor
---@param axis integer|integer[]
---@param epsilon? number
---@return perilune.te.Tensor y
---@return perilune.te.Tensor mean
---@return perilune.te.Tensor factor
function pl.topi.nn.layer_norm_with_moments(x, gamma, beta, axis, epsilon) end
---@param x perilune.te.Tensor
---@param weight? perilune.te.Tensor
---@param axis integer|integer[]
---@param epsilon? number
---@return perilune.te.Tensor
function pl.topi.nn.rms_norm(x, weight, axis, epsilon) end
---@param x perilune.te.Tensor
---@param gamma? perilune.te.Tensor
---@param beta? perilune.te.Tensor
---@param epsilon? number
---@return perilune.te.Tensor
function pl.topi.nn.instance_norm(x, gamma, beta, epsilon) end
---@param x perilune.te.Tensor
---@param gamma? perilune.te.Tensor
---@param beta? perilune.te.Tensor
---@param num_groups integer
---@param epsilon? number
---@return perilune.te.Tensor
function pl.topi.nn.group_norm(x, gamma, beta, num_groups, epsilon) end
---@param x perilune.te.Tensor
---@param gamma? perilune.te.Tensor
---@param beta? perilune.te.Tensor
---@param moving_mean perilune.te.Tensor
---@param moving_var perilune.te.Tensor
---@param axis? integer
---@param epsilon? number
---@return perilune.te.Tensor
function pl.topi.nn.batch_norm(x, gamma, beta, moving_mean, moving_var, axis, epsilon) end
---@param x perilune.te.Tensor
---@param eps number
---@param axis? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.nn.l2_normalize(x, eps, axis) end
---@param x perilune.te.Tensor
---@param size integer
---@param axis? integer
---@param alpha number
---@param beta number
---@param bias number
---@return perilune.te.Tensor
function pl.topi.nn.lrn(x, size, axis, alpha, beta, bias) end
---@param x perilune.te.Tensor
---@param slope perilune.te.Tensor
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.nn.prelu(x, slope, axis) end
---@param data perilune.te.Tensor
---@param bias perilune.te.Tensor
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.nn.bias_add(data, bias, axis) end
---@param data perilune.te.Tensor
---@param scale perilune.te.Tensor
---@param shift perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.scale_shift_nchw(data, scale, shift) end
---@param data perilune.te.Tensor
---@param scale perilune.te.Tensor
---@param shift perilune.te.Tensor
---@return perilune.te.Tensor
function pl.topi.nn.scale_shift_nhwc(data, scale, shift) end
---@param x perilune.te.Tensor
---@param axis? integer
---@return perilune.te.Tensor
function pl.topi.nn.fast_softmax(x, axis) end
---@param data perilune.te.Tensor
---@param block_size integer
---@param layout? string
---@param mode? string
---@return perilune.te.Tensor
function pl.topi.nn.depth_to_space(data, block_size, layout, mode) end
---@param data perilune.te.Tensor
---@param block_size integer
---@param layout? string
---@return perilune.te.Tensor
function pl.topi.nn.space_to_depth(data, block_size, layout) end
---@param data perilune.te.Tensor
---@param block_shape integer[]
---@param pad_before integer[]
---@param pad_after integer[]
---@param pad_value? number
---@return perilune.te.Tensor
function pl.topi.nn.space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value) end
---@param data perilune.te.Tensor
---@param block_shape integer[]
---@param crop_begin_list integer[]
---@param crop_end_list integer[]
---@return perilune.te.Tensor
function pl.topi.nn.batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list) end
---@param data perilune.te.Tensor
---@param output_size integer[]
---@param pool_type string
---@param layout? string
---@return perilune.te.Tensor
function pl.topi.nn.adaptive_pool(data, output_size, pool_type, layout) end
---@param data perilune.te.Tensor
---@param output_size integer[]
---@param pool_type string
---@param layout? string
---@return perilune.te.Tensor
function pl.topi.nn.adaptive_pool1d(data, output_size, pool_type, layout) end
---@param data perilune.te.Tensor
---@param output_size integer[]
---@param pool_type string
---@param layout? string
---@return perilune.te.Tensor
function pl.topi.nn.adaptive_pool3d(data, output_size, pool_type, layout) end
---@param data perilune.te.Tensor
---@param scale_h number
---@param scale_w number
---@param layout? string
---@param method? string
---@param align_corners? boolean
---@return perilune.te.Tensor
function pl.topi.nn.upsampling(data, scale_h, scale_w, layout, method, align_corners) end
---@param grads perilune.te.Tensor
---@param data perilune.te.Tensor
---@param kernel integer[]
---@param stride integer|integer[]
---@param padding integer|integer[]
---@param pool_type string
---@param ceil_mode? boolean
---@param layout? string
---@param count_include_pad? boolean
---@return perilune.te.Tensor
function pl.topi.nn.pool_grad(grads, data, kernel, stride, padding, pool_type, ceil_mode, layout, count_include_pad) end
---@param data perilune.te.Tensor
---@param scale_d number
---@param scale_h number
---@param scale_w number
---@param layout? string
---@param method? string
---@param coordinate_transformation_mode? string
---@return perilune.te.Tensor
function pl.topi.nn.upsampling3d(data, scale_d, scale_h, scale_w, layout, method, coordinate_transformation_mode) end
---@param data1 perilune.te.Tensor
---@param data2 perilune.te.Tensor
---@param kernel_size number
---@param max_displacement number
---@param stride1 number
---@param stride2 number
---@param padding integer|integer[]
---@param is_multiply? boolean
---@return perilune.te.Tensor
function pl.topi.nn.correlation_nchw(data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply) end
---@param data perilune.te.Tensor
---@param offset perilune.te.Tensor
---@param kernel perilune.te.Tensor
---@param strides integer|integer[]
---@param padding integer|integer[]
---@param dilation integer|integer[]
---@param deformable_groups? number
---@param groups? number
---@return perilune.te.Tensor
function pl.topi.nn.deformable_conv2d_nchw(data, offset, kernel, strides, padding, dilation, deformable_groups, groups) end
---@param predictions perilune.te.Tensor
---@param targets perilune.te.Tensor
---@param weights? perilune.te.Tensor
---@param reduction? string
---@param ignore_index? number
---@return perilune.te.Tensor
function pl.topi.nn.nll_loss(predictions, targets, weights, reduction, ignore_index) end
---@param x perilune.te.Tensor
---@param w perilune.te.Tensor
---@param strides integer|integer[]
---@param padding integer|integer[]
---@param dilation integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.conv2d_hwcn(x, w, strides, padding, dilation, out_dtype) end
---@param x perilune.te.Tensor
---@param w perilune.te.Tensor
---@param strides integer|integer[]
---@param padding integer|integer[]
---@param dilation integer|integer[]
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.nn.depthwise_conv2d_nhwc(x, w, strides, padding, dilation, out_dtype) end

pl.topi.image = {}

---@param x perilune.te.Tensor
---@param size integer[]
---@param method "linear"|"cubic"|"nearest_neighbor"
---@param coordinate_transformation_mode? "half_pixel"|"align_corners"|"asymmetric"|string or another one of ONNX's Resize
---@param rounding_method? string
---@param cubic_alpha? number
---@param factors? number[] of the axes that `size` has, where they are not the quotients of the extents
---@param exclude_outside? boolean method "cubic" leaves neighbours outside of the image out
---@return perilune.te.Tensor
function pl.topi.image.resize(x, size, method, coordinate_transformation_mode, rounding_method, cubic_alpha, factors, exclude_outside) end
--- Lines at a size. roi: fractions of the first elements of the axes, then of the last ones, for the mode
--- "tf_crop_and_resize". (data, size, method, mode, rounding, alpha) is understood, too.
---@param data perilune.te.Tensor
---@param roi? number[]
---@param size integer[]
---@param layout? string
---@param method? "linear"|"cubic"|"nearest_neighbor"
---@param coordinate_transformation_mode? "half_pixel"|"align_corners"|"asymmetric"|"tf_crop_and_resize"
---@param rounding_method? string
---@param ... any bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype
---@return perilune.te.Tensor
function pl.topi.image.resize1d(data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, ...) end
--- Images at a size. roi: fractions of the first elements of the axes, then of the last ones, for the mode
--- "tf_crop_and_resize". (data, size, method, mode, rounding, alpha) is understood, too.
---@param data perilune.te.Tensor
---@param roi? number[]
---@param size integer[]
---@param layout? string
---@param method? "linear"|"cubic"|"nearest_neighbor"
---@param coordinate_transformation_mode? "half_pixel"|"align_corners"|"asymmetric"|"tf_crop_and_resize"
---@param rounding_method? string
---@param ... any bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype
---@return perilune.te.Tensor
function pl.topi.image.resize2d(data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, ...) end
--- Volumes at a size. roi: fractions of the first elements of the axes, then of the last ones, for the mode
--- "tf_crop_and_resize". (data, size, method, mode, rounding, alpha) is understood, too.
---@param data perilune.te.Tensor
---@param roi? number[]
---@param size integer[]
---@param layout? string
---@param method? "linear"|"cubic"|"nearest_neighbor"
---@param coordinate_transformation_mode? "half_pixel"|"align_corners"|"asymmetric"|"tf_crop_and_resize"
---@param rounding_method? string
---@param ... any bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype
---@return perilune.te.Tensor
function pl.topi.image.resize3d(data, roi, size, layout, method, coordinate_transformation_mode, rounding_method, ...) end
---@param data perilune.te.Tensor
---@param target_shape integer[]
---@return perilune.te.Tensor
function pl.topi.image.affine_grid(data, target_shape) end
---@param data perilune.te.Tensor
---@param grid perilune.te.Tensor
---@param method? string
---@param layout? string
---@param padding_mode? string
---@param align_corners? boolean
---@return perilune.te.Tensor
function pl.topi.image.grid_sample(data, grid, method, layout, padding_mode, align_corners) end
---@param data perilune.te.Tensor
---@param boxes perilune.te.Tensor
---@param box_indices perilune.te.Tensor
---@param crop_size integer[]
---@param layout? string
---@param method? string
---@param extrapolation_value? number
---@param out_dtype? string
---@return perilune.te.Tensor
function pl.topi.image.crop_and_resize(data, boxes, box_indices, crop_size, layout, method, extrapolation_value, out_dtype) end
---@param input perilune.te.Tensor
---@param filter perilune.te.Tensor
---@param stride integer|integer[]
---@param padding integer|integer[]
---@param dilations? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.image.dilation2d_nchw(input, filter, stride, padding, dilations) end
---@param input perilune.te.Tensor
---@param filter perilune.te.Tensor
---@param stride integer|integer[]
---@param padding integer|integer[]
---@param dilations? integer|integer[]
---@return perilune.te.Tensor
function pl.topi.image.dilation2d_nhwc(input, filter, stride, padding, dilations) end

--- Default schedules for processors.
pl.topi.generic = {}

---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.default_schedule(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_injective(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_reduce(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_dense(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_batch_matmul(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_matmul(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_conv2d_nchw(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_depthwise_conv2d_nchw(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_pool(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_softmax(outs) end
---@param outs perilune.te.Tensor|perilune.te.Tensor[]
---@return perilune.te.Schedule
function pl.topi.generic.schedule_extern(outs) end

-- What an operator becomes is its attribute FTVMCompute, a perilune.topi.Compute; a script sets its
-- own: pl.op_attr("my.op", "FTVMCompute", function(attrs, inputs, out_type, args) ... end).
-- FTVMSchedule is function(attrs, outs, target), which gives a schedule; FTVMStrategy
-- function(attrs, inputs, out_type, target), which gives { compute =, schedule = }.

-- ------------------------------------------------------------------ pl.tune

--- One way to transform a module, and when it may be taken (Relax tuning_api.Choice).
---@class perilune.tune.Choice
---@field transform string the name of its function in pl.tune.functions
---@field args any[]
---@field constraint string
---@field constraint_args any[]
local Choice = {}
--- Whether it may be taken for the module.
---@param mod perilune.Module
---@return boolean
function Choice:check_constr(mod) end
--- The transformed module; the module itself where the constraint does not hold.
---@param mod perilune.Module
---@return perilune.Module
function Choice:apply_transform_func(mod) end
---@return table plain values, for JSON
function Choice:as_table() end

--- A decision that is to be taken (Relax tuning_api.Knob).
---@class perilune.tune.Knob
---@field name string
---@field choices { [string]: perilune.tune.Choice }
---@field decisions string[] the names of the choices, in the order in which they are tried
---@field listed boolean the choices are numbered
local Knob = {}
---@param decision string|integer
---@return boolean
function Knob:verify(decision) end
--- The name of a choice; raises when there is none.
---@param decision string|integer
---@return string
function Knob:decision(decision) end
---@param mod perilune.Module
---@param decision string|integer
---@return perilune.Module
function Knob:apply(mod, decision) end
---@return table plain values, for JSON
function Knob:as_table() end

--- A module and the decisions that were taken for it (Relax tuning_api.Trace).
---@class perilune.tune.Trace
---@field in_mod perilune.Module
---@field out_mod perilune.Module
---@field knobs perilune.tune.Knob[]
---@field decisions string[]
---@field size integer
---@field perf number what was measured of out_mod, lower is better; -1: not measured
---@field failure? string why it could not be measured
---@field costs? table<string, number> of several metrics, relative to the module before tuning
---@field front? perilune.tune.Trace[] of a tuning pass with several metrics: the candidates that no other one dominates
local Trace = {}
--- Takes a decision; gives the new out_mod. The trace is as before when that fails.
---@param knob perilune.tune.Knob
---@param decision string|integer
---@return perilune.Module
function Trace:add(knob, decision) end
--- Notes a pass that made `out` of out_mod.
---@param name string
---@param how { text?: string, refusal?: string, context?: table }
---@param out perilune.Module
function Trace:add_pass(name, how, out) end
---@return boolean every decision is one that its knob has
function Trace:verify() end
---@param mod perilune.Module
function Trace:set_out_mod(mod) end
---@param perf number
function Trace:set_perf(perf) end
---@return perilune.tune.Trace
function Trace:copy() end
--- Goes back to where out_mod was `mod`; false when it never was.
---@param mod perilune.Module
---@return boolean
function Trace:rewind(mod) end
---@param include_in_mod? boolean true
---@return string
function Trace:as_json(include_in_mod) end

--- Records what passes do in the topmost of its traces.
---@class perilune.tune.Tracing: perilune.Instrument
---@field num_evals integer measurements
---@field num_cache_hits integer measurements that the database had
---@field database? perilune.tune.Database
local Tracing = {}
---@param trace perilune.tune.Trace
function Tracing:push_trace(trace) end
---@return perilune.tune.Trace
function Tracing:pop_trace() end
---@return perilune.tune.Trace
function Tracing:get_current_trace() end
---@return perilune.tune.Trace[]
function Tracing:get_trace_stack() end
---@return integer
function Tracing:get_trace_stack_size() end
---@param n integer
function Tracing:inc_num_evals(n) end
---@param n integer
function Tracing:set_num_evals(n) end

---@class perilune.tune.Workload
---@field mod perilune.Module
---@field hash integer
---@field index integer

--- Workloads and what was measured of them (Relax tuning_api.Database), in memory.
---@class perilune.tune.Database
local Database = {}
---@param mod perilune.Module
---@return boolean
function Database:has_workload(mod) end
---@param mod perilune.Module
---@return perilune.tune.Workload
function Database:commit_workload(mod) end
---@param workload perilune.tune.Workload
---@param target string
---@return boolean
function Database:has_measurement_record(workload, target) end
---@param workload perilune.tune.Workload
---@param target string
---@param run_secs number[]
---@return boolean committed false: there is one already, which stays
function Database:commit_measurement_record(workload, target, run_secs) end
---@param workload perilune.tune.Workload
---@param target string
---@return number[]
function Database:get_measurement_record(workload, target) end
---@param workload perilune.tune.Workload
---@param target string
---@param trace perilune.tune.Trace
---@param run_secs? number[]
function Database:commit_tuning_record(workload, target, trace, run_secs) end
---@param workload perilune.tune.Workload
---@param target string
---@return boolean
function Database:has_tuning_record(workload, target) end
---@param workload perilune.tune.Workload
---@param target string
---@param k integer
---@return { trace: perilune.tune.Trace, run_secs: number[] }[]
function Database:get_top_k(workload, target, k) end
--- Keeps what became of a candidate.
---@param workload perilune.tune.Workload
---@param target string
---@param trial perilune.tune.Trial
function Database:commit_trial(workload, target, trial) end
--- The last trial of a candidate.
---@param workload perilune.tune.Workload
---@param target string
---@param kind string
---@param text string
---@return perilune.tune.Trial?
function Database:get_trial(workload, target, kind, text) end
--- The trial of the least cost whose results are right.
---@param workload perilune.tune.Workload
---@param target string
---@param kind? string "pipeline"
---@return perilune.tune.Trial?
function Database:best(workload, target, kind) end
---@param workload perilune.tune.Workload
---@param target string
---@param settings string
---@return { trials: integer, state: string }?
function Database:get_search(workload, target, settings) end
---@param workload perilune.tune.Workload
---@param target string
---@param settings string
---@param row { trials: integer, state: string }
function Database:commit_search(workload, target, settings, row) end
function Database:close() end

--- The database in a file, kept by SQLite.
---@class perilune.tune.RecordFile: perilune.tune.Database
local RecordFile = {}
--- A row for each workload and target.
---@return { workload: integer, shash: string, target: string, trials: integer, failed: integer, best: number? }[]
function RecordFile:list() end
--- The candidate of the least cost for each workload, target and kind.
---@return { workload: integer, shash: string, target: string, kind: string, cost: number, text: string }[]
function RecordFile:list_best() end
--- Keeps the best measurements of each workload, target and kind.
---@param keep integer
---@return integer deleted
function RecordFile:prune(keep) end
--- Writes workload.json, tuning_record.json and measurement_record.json, in TVM's form.
---@param folder string
---@return integer records
function RecordFile:export(folder) end
--- Reads such files.
---@param folder string
---@return integer new
function RecordFile:import(folder) end
--- Puts the records of another file in.
---@param other string|perilune.tune.RecordFile its path, or the open file
---@return integer new
function RecordFile:merge(other) end

--- What became of a candidate.
---@class perilune.tune.Trial
---@field kind string "pipeline", "knobs", "schedule", ...
---@field text string of the candidate
---@field cost? number relative to the base; none: it failed
---@field costs? table<string, number> by metric
---@field checked boolean its results were compared, and are right
---@field verdict? "faster"|"slower"|"undecided" against the incumbent
---@field confidence? number
---@field seconds? { min: number, median: number, n: integer }
---@field failure? string
---@field note? string
---@field at? integer seconds since 1970

--- Makes of modules what a runner can run.
---@class perilune.tune.Builder
local TuneBuilder = {}
---@param mod perilune.Module
---@return table? runnable
---@return { kind: string, message: string }? failure
function TuneBuilder:build(mod) end
--- A text of all that its measurements depend on, besides the machine.
---@return string
function TuneBuilder:target() end

--- Measures in child processes with limits.
---@class perilune.tune.Runner
local TuneRunner = {}
---@param runnable table
---@return { min: number, median: number, n: integer }? seconds of a run
---@return { kind: string, message: string }? failure
function TuneRunner:run(runnable) end
--- The candidate and the incumbent alternate in one process.
---@param candidate table
---@param incumbent table
---@return perilune.tune.Comparison?
---@return { kind: string, message: string }? failure
---@return boolean? blameless the candidate is not to blame for the failure
function TuneRunner:compare(candidate, incumbent) end
--- Whether a runnable computes what a module does.
---@param original perilune.Module
---@param runnable table
---@return true?
---@return { kind: string, message: string }? failure
function TuneRunner:check(original, runnable) end

---@class perilune.tune.Comparison
---@field verdict "faster"|"slower"|"undecided" of the candidate
---@field confidence number
---@field ratio number of the shortest blocks, candidate to incumbent
---@field median_ratio number
---@field pairs integer
---@field dropped boolean
---@field candidate { min: number, median: number, n: integer }
---@field incumbent { min: number, median: number, n: integer }

---@class perilune.tune.BuilderOptions
---@field kind? "evaluator"|"c"|"command"|"function"
---@field external? table<string, { source: string, symbol: string }> of kind "c": as of pl.build
---@field threads? integer 1
---@field seed? integer of inputs
---@field cc? string of "c"
---@field flags? string
---@field compile_seconds? number
---@field command? string|string[] {} stands for the file of the model; a text goes through the shell
---@field timing? "wall"|"output" output: the last line has the seconds of one run
---@field suffix? string of that file: ".onnx", ".relay"
---@field evict? integer bytes that are written before each call of "c", so that operands come from memory: 0
---@field source? string of "function": a file of C with int SYMBOL(const void *const *inputs, const int64_t *const *shapes, void *output)
---@field symbol? string of "function": its name

---@class perilune.tune.RunnerOptions
---@field seconds? number the time limit of a child: 30
---@field memory? integer bytes beyond those of this process
---@field output? integer bytes that a child may write
---@field pinned? boolean to one processor
---@field comparison_seconds? number what the blocks of a comparison take: half of seconds
---@field block? number seconds of a block: 200e-6
---@field pairs? integer the most pairs of blocks: 80
---@field warm_up? integer blocks that do not count
---@field error? number the probability of a wrong verdict: 0.01
---@field difference? number what is less is none: 0.03
---@field drop? number racing: 1.3
---@field seed? integer
---@field rounds? integer of a check
---@field rtol? number
---@field atol? number

---@class perilune.tune.QueueOptions
---@field runner? string where tasks run: "local", "farm:PORT" (workers of Work Queue that connect to it) or "slurm:PARTITION,N"
---@field jobs? integer processes of this machine: 1
---@field tries? integer how often a task is sent whose worker was lost: 3
---@field program? string the command: "perilune"
---@field address? string where workers may connect: "127.0.0.1"; others need a password
---@field password? string a file
---@field silence? number seconds after which a worker that says nothing is given up: 60
---@field folder? string for files that come back, which it replaces

---@class perilune.tune.Task
---@field id any what no other task of the queue has
---@field arguments (string|{ input: string, cached?: boolean }|{ output: string })[] cached: workers keep the file
---@field seconds? number its time limit: 3600
---@field feature? string what its worker must have

---@class perilune.tune.TaskResult
---@field state "done"|"failed"
---@field why? string
---@field output? string what it printed, errors too
---@field seconds? number
---@field tries integer
---@field host? string
---@field lost? boolean its workers died

--- Runs commands of perilune as tasks. It can be closed (`<close>`).
---@class perilune.tune.Queue
---@field pending integer tasks without a result
---@field port? integer where workers connect
local Queue = {}
---@param task perilune.tune.Task
function Queue:submit(task) end
--- nil when `seconds` are over or no task is left.
---@param seconds? number
---@return any id
---@return perilune.tune.TaskResult? result
function Queue:wait(seconds) end
---@return fun(): any, perilune.tune.TaskResult
function Queue:results() end
function Queue:close() end

--- Schedules a function of a module of PrimFuncs, with sampled decisions.
---@alias perilune.tune.ScheduleRule fun(sch: perilune.tir.Schedule, info: { func_name: string, threads: integer })

--- What EqualitySaturation is given in the space "substitution".
---@class perilune.tune.SubstitutionOptions
---@field rules? string[] [name:] pattern => replacement [where condition], or with <=>; otherwise those that perilune has
---@field shipped_rules? boolean the exact rules of SimplifyExpr are used, too: true
---@field generated_rules? boolean those of `perilune rules substitution` may be used: true unless there are rules
---@field node_limit? integer
---@field iter_limit? integer
---@field k_multi? integer how many rules of several roots may be applied one after the other's result
---@field time_limit? number
---@field costs? ("measured"|"time"|"bytes"|"flops"|"nodes")[] what extraction may minimise; otherwise all ("measured": where a search can)

--- What calls cost, by measuring each distinct one once.
---@class perilune.tune.CallCosts
---@field count { measured: integer, recorded: integer, failed: integer, unmeasured: integer } of calls
local CallCosts = {}
--- Takes it into use, for EqualitySaturation{cost="measured"}, until what it returns is closed.
---@return table scope a <close> value
function CallCosts:enter() end
--- The seconds of a module: the sum over its calls; those of constants alone cost a thousandth.
---@param mod perilune.Module
---@return number
function CallCosts:of_module(mod) end
--- What a call takes at least, and a run of no call, in seconds.
---@return { call: number, run: number }
function CallCosts:overhead() end

---@class perilune.tune.CallCostsOptions
---@field builder? perilune.tune.Builder "evaluator" or "c"
---@field runner? perilune.tune.Runner
---@field database? perilune.tune.Database keeps the seconds; otherwise they are in memory
---@field seconds? number that measuring may take together; the analytic estimate stands for calls after that

---@class perilune.tune.GeneratedRule
---@field name string
---@field text string name: pattern => replacement where condition
---@field proof "exact"|"reassociates"
---@field reason string the equation
---@field grows boolean

---@class perilune.tune.GenerateOptions
---@field operators? integer the most operators of a term, from 1 to 3: 3
---@field seed? integer of the integers that terms are evaluated on: 1
---@field domain? string what the terms are about; all domains
---@field progress? fun(n: integer, rule: perilune.tune.GeneratedRule) called with the number of rules and the new one

---@class perilune.tune.BacktrackingOptions
---@field mod perilune.Module
---@field rules? string[]
---@field shipped_rules? boolean
---@field generated_rules? boolean true unless there are rules
---@field cost? "time"|"flops"|"bytes"|"nodes"|perilune.tune.CostModel|perilune.tune.CallCosts|fun(mod: perilune.Module): number "time"
---@field alpha? number candidates that cost less than so many times the best one are looked at later: 1.05
---@field budget? integer the most candidates: 1000
---@field seconds? number
---@field check? boolean compare the result with mod: true

---@class perilune.tune.BacktrackingResult
---@field mod perilune.Module
---@field cost number
---@field base_cost number
---@field text string the pipeline that makes mod
---@field candidates integer
---@field expanded integer
---@field state "exhausted"|"done"|"interrupted"
---@field reason? string why the best candidate is not taken

--- A backend of pl.tune.placement. One without compiler and transform stays with the host.
---@class perilune.tune.Backend
---@field name string
---@field compiler? string its parts become functions with this attribute Compiler
---@field transform? perilune.Pass|string its parts are replaced by what this makes of them
---@field builder? perilune.tune.Builder what runs a part: the evaluator
---@field blas? "own"|"openblas" while a part is measured
---@field patterns? { [1]: string, [2]: perilune.DFPattern }[] what it takes
---@field group? integer without patterns: calls with up to so many calls in all that only they use: 1
---@field ops? string[] the operators that it takes; otherwise all

--- What it costs that a value goes from one backend to another where one of them has a compiler; by default a copy on
--- this machine, nothing with `measure`.
---@class perilune.tune.Boundary
---@field seconds number
---@field bandwidth number bytes a second

---@class perilune.tune.PlacementOptions
---@field mod perilune.Module
---@field backends? (string|perilune.tune.Backend)[] "evaluator", "own", "openblas", "c", "com.microsoft"; the first is the host
---@field name? string the function: "main"
---@field runner? perilune.tune.Runner
---@field measure? fun(mod: perilune.Module, backend: string): number?, string? seconds, in place of the runner
---@field boundary? false|perilune.tune.Boundary|fun(bytes: integer, from: string, to: string): number
---@field dims? table<string, integer> sizes that open sizes have while parts are measured; the result keeps them open
---@field seconds? number the budget; without it all parts are measured
---@field max_states? integer of the dynamic programming, kept for each call: 4096
---@field check? boolean compare the result with mod: true

---@class perilune.tune.PlacementResult
---@field mod perilune.Module
---@field cost number seconds, the sum over the parts and what goes from one to another
---@field base_cost number all by the host
---@field boundary_cost number what of the cost is moving values
---@field parts { backend: string, seconds: number, nodes: perilune.Node[], mod: perilune.Module }[]
---@field measured integer
---@field unmeasured integer parts, for want of time
---@field exact boolean no state was dropped
---@field reasons string[] of parts that could not be measured
---@field verdict? "faster"|"undecided" of the result as a whole against mod, where no part has a compiler
---@field ratio? number of the seconds of both
---@field confidence? number

--- What is searched: "pipeline" (order, presence and options of passes), "layout" (of a model and of each
--- nn.conv2d; in generated C of the result of each convolution of ONNX in memory), "combine" (parallel operators),
--- "substitution" (what EqualitySaturation makes, before the pipelines or behind them), "kernels" (of a model as
--- generated C: compiler, Winograd's transforms, tiles, panels, orders of loops), "knobs", "schedule", or several in
--- the order in which they work, as "pipeline+kernels".
---@alias perilune.tune.Space string

---@class perilune.tune.SearchOptions
---@field mod perilune.Module
---@field base? perilune.Pass|string the pipeline to begin with: pl.pipelines.default
---@field pool? string[] passes that a pipeline may have beside those of the base
---@field knobs? perilune.tune.Knob[] search decisions in place of pipelines
---@field space? perilune.tune.Space|perilune.tune.SubstitutionOptions otherwise those of the options that are given, or "pipeline"
---@field substitution? boolean|perilune.tune.SubstitutionOptions
---@field schedule? boolean|perilune.tune.ScheduleRule search the decisions that it samples; true: default_schedule
---@field original? perilune.Module what results are compared with: mod
---@field strategy? perilune.tune.Strategy
---@field trials? integer 100
---@field seconds? number
---@field seed? integer
---@field metrics? perilune.tune.Metric|perilune.tune.Metric[] "time"
---@field builder? perilune.tune.Builder
---@field runner? perilune.tune.Runner
---@field database? perilune.tune.Database
---@field target? string what records are kept for; otherwise the metrics and the builder
---@field on_trial? fun(search: table, trial: perilune.tune.Trial)
---@field cost_model? "trees"|"ridge"|"xgboost" learns from the trials which of several points is worth a measurement
---@field population? integer of evolution: 512, or as many as trials
---@field replay? boolean repeat the recorded search of these settings without measuring
---@field width? integer points that are proposed at a time: 1, with a queue 16
---@field queue? perilune.tune.Queue measures points as tasks
---@field command? (string|{ input: string, cached?: boolean })[] of tasks: "tune", the model and options of `perilune tune`
---@field task_seconds? number time limit of a task: 3600

---@class perilune.tune.ApplyOptions
---@field database perilune.tune.Database
---@field target? string
---@field builder? perilune.tune.Builder
---@field runner? perilune.tune.Runner
---@field metrics? any[]
---@field space? perilune.tune.Space what was searched: "pipeline"
---@field check? boolean compare the results: true

---@class perilune.tune.SearchResult
---@field mod perilune.Module the best one; that of the base when none is better
---@field base perilune.Module
---@field text string of the best candidate
---@field verdict "faster"|"undecided" against the base
---@field ratio number of costs, to the base's
---@field confidence number
---@field reason? string why there is no winner
---@field state "done"|"exhausted"|"interrupted"|"unrecorded"
---@field unrecorded? string why records could not be kept any more, which ended the search
---@field trials integer
---@field measured integer
---@field cached integer found in the database
---@field failed integer
---@field seconds number
---@field list perilune.tune.Trial[]
---@field front? perilune.tune.Trial[] of several metrics: those that no other one dominates
---@field trace? perilune.tune.Trace|perilune.tir.Trace of knobs; of a schedule
---@field target string what its records were kept for
---@field model? { rank_correlation: number, recall: number, k: integer, n: integer } how a cost model ordered trials before it knew them

--- What a program will cost, without running it: "roofline" is analytic, "trees" (gradient-boosted) and
--- "ridge" (regression) learn from samples, and so does "xgboost" where libxgboost is installed.
---@class perilune.tune.CostModel
---@field kind "trees"|"ridge"|"xgboost"|"roofline"
local CostModel = {}
--- The cost that is expected, in the unit of the samples; of a roofline seconds of the evaluator.
---@param mod perilune.Module
---@param base? perilune.Module what it is relative to, if the samples had one
---@return number
function CostModel:predict(mod, base) end
---@param samples perilune.tune.CostSample[]
function CostModel:update(samples) end
--- How well it orders samples that it did not learn from.
---@param samples perilune.tune.CostSample[]
---@param k? integer 10
---@return { rank_correlation: number, recall: number, k: integer, n: integer }
function CostModel:evaluate(samples, k) end

---@class perilune.tune.CostSample
---@field mod perilune.Module
---@field cost number positive
---@field base? perilune.Module what the cost is relative to; the model sees by what mod differs from it

---@class perilune.tune.CostModelOptions
---@field kind? "trees"|"ridge"|"xgboost"|"roofline" "trees"
---@field library? string the file of XGBoost's library; otherwise the one that packages install
---@field samples? perilune.tune.CostSample[]
---@field machine? { flops: number, bandwidth: number, overhead: number } of a roofline, a second, bytes and seconds; otherwise measured

---@class perilune.tune.PredictOptions
---@field base perilune.Module the program that the candidate is of
---@field database perilune.tune.Database
---@field target? string all of them unless it is given
---@field space? perilune.tune.Space "schedule" for loop programs, else "pipeline"
---@field kind? "trees"|"ridge"|"xgboost"

--- Gives a number, or a list of numbers whose mean counts; raises when it cannot. `effort`, from 0 to
--- 1, is the part of the usual work that a search wants to spend.
---@alias perilune.tune.Measure fun(mod: perilune.Module, effort?: number): number|number[]
--- What is minimised: "time", "nodes", "flops", "bytes", "peak_memory", a measure, or one of
--- several: { metric, weight =, name = }.
---@alias perilune.tune.Metric string|perilune.tune.Measure|table
---@alias perilune.tune.Strategy "evolutionary"|"exhaustive"|"random"|"beam"|"annealing"|"halving"|"bandit"|"separate"

---@class perilune.tune.SearchSettings
---@field strategy? perilune.tune.Strategy "evolutionary"
---@field trials? integer the most candidates: 100
---@field seconds? number the most seconds; 0: no limit
---@field seed? integer 1

---@class perilune.tune.TuningPassSpec
---@field name string
---@field opt_level? integer
---@field required? string[]
---@field doc? string
---@field parameters? (perilune.OptionSpec|any)[] options of the pass
---@field knobs? perilune.tune.Knob[]|fun(mod: perilune.Module, ctx?: perilune.Context): perilune.tune.Knob[]
---@field handles? perilune.Feature[] the features of programs that it handles; nil: all
---@field unhandled? "skip"|"refuse" what becomes of a program with others: "refuse"
---@field eval_passes? any[] elements of a sequential, which work on each candidate
---@field measure? perilune.tune.Measure
---@field metric? perilune.tune.Metric|perilune.tune.Metric[] in place of measure; the sum of several, relative to the module before
---@field select? fun(front: perilune.tune.Trace[]): perilune.tune.Trace takes one of those that none dominates; otherwise the least sum
---@field search? perilune.tune.Strategy|perilune.tune.SearchSettings defaults of options of the pass; without it: all combinations
---@field target? string what records of measurements are kept for; otherwise the metrics, and the processor where they depend on it
---@field run? fun(trace: perilune.tune.Trace, ctx: perilune.Context, self: table): perilune.tune.Trace in place of the search

pl.tune = {}
--- Functions that choices name: assigning registers.
---@type { [string]: function }
pl.tune.functions = {}
---@param spec { transform?: string|function, args?: any[], constraint?: string|function, constraint_args?: any[] }
---@return perilune.tune.Choice
function pl.tune.choice(spec) end
---@param name string
---@param choices perilune.tune.Choice[]|{ [string]: perilune.tune.Choice }
---@return perilune.tune.Knob
function pl.tune.knob(name, choices) end
pl.tune.instruction = pl.tune.knob
---@param mod perilune.Module
---@param knobs? perilune.tune.Knob[]
---@param decisions? (string|integer)[]
---@return perilune.tune.Trace
function pl.tune.trace(mod, knobs, decisions) end
--- Takes the decisions of the text anew; raises with the step that cannot be taken.
---@param text string
---@param mod? perilune.Module in place of the text's
---@return perilune.tune.Trace
function pl.tune.trace_from_json(text, mod) end
---@param x perilune.tune.Trace|perilune.Module|perilune.Node
---@return perilune.tune.Trace
function pl.tune.get_trace(x) end
---@class perilune.tune.TracingOptions
---@field trace? perilune.tune.Trace|perilune.Module
---@field trace_stack? perilune.tune.Trace[]
---@field make_traceable? string[] passes that are recorded; all unless it is given
---@field tuning_api_database? perilune.tune.Database

---@param options? perilune.tune.TracingOptions
---@return perilune.tune.Tracing
function pl.tune.tracing(options) end
--- The tracing of the current context.
---@return perilune.tune.Tracing?
function pl.tune.current() end
---@param spec perilune.tune.TuningPassSpec
---@return perilune.Pass
function pl.tune.tuning_pass(spec) end
--- The measurements that a pass takes when every constraint holds; of a pass with `search` the most.
---@param pass perilune.Pass
---@param mod? perilune.Module for knobs that depend on it
---@return integer
function pl.tune.total_num_evals(pass, mod) end
--- What learned cost models see of a module: a list of numbers, of one length for programs of operators
--- and of another one for programs of the loop level.
---@param mod perilune.Module
---@return number[]
function pl.tune.features(mod) end
---@param options? perilune.tune.CostModelOptions|"trees"|"ridge"|"xgboost"|"roofline"
---@return perilune.tune.CostModel
function pl.tune.cost_model(options) end
--- Sets the perf of candidates that have none to what a model predicts.
---@param candidates perilune.tune.Trace[]
---@param options { model: perilune.tune.CostModel, base?: perilune.Module }
function pl.tune.query_cost_model(candidates, options) end
--- A model that has learned from the records of the workload whose features are nearest to the program's.
---@param options perilune.tune.PredictOptions
---@return perilune.tune.CostModel
---@return { distance: number, samples: integer } about
function pl.tune.cost_model_of_records(options) end
--- The cost of a candidate relative to that of `base`, by such a model.
---@param mod perilune.Module
---@param options perilune.tune.PredictOptions
---@return number
---@return { distance: number, samples: integer } about
function pl.tune.predict(mod, options) end
--- What a pass makes of a trace: a new one.
---@param pass perilune.Pass
---@param from perilune.tune.Trace|perilune.Module
---@return perilune.tune.Trace
function pl.tune.apply(pass, from) end
---@param knobs perilune.tune.Knob[]
---@param from perilune.tune.Trace|perilune.Module
---@param eval_passes? any[]
---@return perilune.tune.Trace[]
---@return string[] reasons of what was left out
function pl.tune.generate_candidates(knobs, from, eval_passes) end
---@param candidates perilune.tune.Trace[]
---@param eval_passes? any[]
---@return perilune.tune.Trace[]
function pl.tune.consider_eval_passes(candidates, eval_passes) end
---@class perilune.tune.EvaluateOptions
---@field measure perilune.tune.Measure
---@field database? perilune.tune.Database
---@field target? string
---@field combine? fun(values: number[]): number in place of the mean

---@param candidates perilune.tune.Trace[]
---@param options perilune.tune.EvaluateOptions
function pl.tune.evaluate(candidates, options) end
---@param candidates perilune.tune.Trace[]
---@return perilune.tune.Trace
function pl.tune.select_best_candidate(candidates) end
--- In memory, or with `path` in a file (perilune.tune.RecordFile), which is made if need be. `wait`:
--- the seconds that locks of other processes are waited for.
---@param options? { path?: string, readonly?: boolean, wait?: number }
---@return perilune.tune.Database
function pl.tune.database(options) end
---@param options? perilune.tune.BuilderOptions|"evaluator"|"c"
---@return perilune.tune.Builder
function pl.tune.builder(options) end
---@param options? perilune.tune.RunnerOptions
---@return perilune.tune.Runner
function pl.tune.runner(options) end
--- Runs commands of perilune as tasks.
---@param options? perilune.tune.QueueOptions
---@return perilune.tune.Queue
function pl.tune.queue(options) end
---@class perilune.tune.Subgraph
---@field mod perilune.Module its @main has the inputs as parameters
---@field inputs perilune.Node[] of the whole
---@field outputs perilune.Node[] of the whole
---@field nodes perilune.Node[] of the whole
---@field name string the function that it is of

--- A part of a function as a module that runs alone: calls of operators, tuples and their fields.
---@param mod perilune.Module
---@param what perilune.Node[]|perilune.DFPattern the nodes, or a pattern whose first match they are
---@param name? string the function: "main"
---@return perilune.tune.Subgraph? part nil where the pattern does not match
function pl.tune.extract_subgraph(mod, what, name) end
--- The parts of a function that a pattern matches, in order; no two share a node.
---@param mod perilune.Module
---@param pattern perilune.DFPattern
---@param name? string the function: "main"
---@return perilune.tune.Subgraph[]
function pl.tune.extract_subgraphs(mod, pattern, name) end
--- The module with a replacement of the same signature in place of the part, or with as many as there are
--- parts of one function.
---@param mod perilune.Module
---@param parts perilune.tune.Subgraph|perilune.tune.Subgraph[]
---@param replacements perilune.Module|perilune.Module[]
---@return perilune.Module
function pl.tune.substitute(mod, parts, replacements) end
---@class perilune.tune.TunedSubgraphs
---@field mod perilune.Module
---@field groups { part: perilune.tune.Subgraph, count: integer, result: perilune.tune.SearchResult, reason?: string }[] equal parts are one

--- Tunes parts of a function, equal ones once, and puts what is found in their places.
---@param mod perilune.Module
---@param parts perilune.tune.Subgraph[]|perilune.DFPattern
---@param options? perilune.tune.SearchOptions for each of the different parts
---@return perilune.tune.TunedSubgraphs
function pl.tune.tune_subgraphs(mod, parts, options) end
--- Costs of calls by measuring, for EqualitySaturation{cost="measured"} and pl.tune.backtracking_search.
---@param options? perilune.tune.CallCostsOptions
---@return perilune.tune.CallCosts
function pl.tune.call_costs(options) end
--- Looks for what makes a module cheaper, by measuring.
---@param options perilune.tune.SearchOptions
---@return perilune.tune.SearchResult
function pl.tune.search(options) end
--- Finds rules of graph substitution: terms of equal fingerprints, proved by axioms and by the evaluator.
---@param options? perilune.tune.GenerateOptions
---@return perilune.tune.GeneratedRule[]
---@return { terms: integer, equal: integer, proved: integer, independent: integer } counts
function pl.tune.generate_rules(options) end
--- Graph substitution by single applications of rules: the cheapest known program is expanded first, and
--- candidates above alpha times its cost are left out (TASO).
---@param options perilune.tune.BacktrackingOptions
---@return perilune.tune.BacktrackingResult
function pl.tune.backtracking_search(options) end
--- Chooses the backend of each part of a function by measured costs and dynamic programming (Collage).
---@param options perilune.tune.PlacementOptions
---@return perilune.tune.PlacementResult
function pl.tune.placement(options) end
pl.tune.space = {}
--- The space of graph substitutions, for pl.tune.search.
---@param options? perilune.tune.SubstitutionOptions
---@return perilune.tune.SubstitutionOptions
function pl.tune.space.substitution(options) end
--- Schedules each block of a function: reductions in tiles with a register tile of vectors, other blocks as loops of vectors.
--- Its decisions are sampled; a block whose loops a primitive refuses stays as it is.
---@param sch perilune.tir.Schedule
---@param info? { func_name?: string, threads?: integer }
function pl.tune.default_schedule(sch, info) end
--- The module of the best recorded pipeline, without measuring; nil when there is none. Its results
--- are compared unless `check` is false.
---@param mod perilune.Module
---@param options perilune.tune.ApplyOptions
---@return perilune.Module?
---@return perilune.tune.Trial|string record the target that it looked for where there is none
function pl.tune.apply_best(mod, options) end
pl.tune.measure = {}
---@param mod perilune.Module
---@return integer
function pl.tune.measure.nodes(mod) end
---@param mod perilune.Module
---@return integer
function pl.tune.measure.flops(mod) end
--- The bytes of constants, each tensor counted once.
---@param mod perilune.Module
---@return integer
function pl.tune.measure.bytes(mod) end
--- The most bytes that a run holds at once, on random inputs: the evaluator beyond the program;
--- with a builder what its code or its command has in memory, in a child with the runner's limits.
---@param options? { seed?: integer, builder?: perilune.tune.Builder, runner?: perilune.tune.Runner }
---@return perilune.tune.Measure
function pl.tune.measure.peak_memory(options) end
--- Joules of a run by RAPL (/sys/class/powercap), from runs that last `seconds` (0.5) together; what
--- else runs on the processor is in them. Raises where the counters cannot be read.
---@param options? { builder?: perilune.tune.Builder, seconds?: number, folder?: string }
---@return perilune.tune.Measure
function pl.tune.measure.energy(options) end
--- Seconds of the shortest block of runs, by a builder and a runner, in child processes.
---@param options? { builder?: perilune.tune.Builder, runner?: perilune.tune.Runner }
---@return perilune.tune.Measure
function pl.tune.measure.run(options) end
--- Seconds of runs of @main by the evaluator, on random inputs.
---@param options? { runs?: integer, seed?: integer }
---@return perilune.tune.Measure
function pl.tune.measure.time(options) end
---@param name string
---@param ... any Buffers, numbers, PrimExprs
---@return perilune.Node
function pl.tir.call_packed(name, ...) end

--- A tensor of a tensor expression: A[{ i, j }] or A(i, j) is an element of it.
---@class perilune.te.Tensor
---@field op perilune.te.Operation
---@field value_index integer
---@field name string
---@field dtype string
---@field shape perilune.Node[]
---@field ndim integer
---@field buffer perilune.Node
---@operator add(any): perilune.te.Tensor
---@operator sub(any): perilune.te.Tensor
---@operator mul(any): perilune.te.Tensor
---@operator div(any): perilune.te.Tensor
---@operator unm: perilune.te.Tensor
local TeTensor = {}
---@param ... any
---@return perilune.Node
function TeTensor:load(...) end

--- What computes one or several tensors; it never changes.
---@class perilune.te.Operation
---@field name string
---@field kind string "PlaceholderOp", "ComputeOp", "ScanOp", "ExternOp"
---@field tag string
---@field attrs table
---@field axis perilune.Node[]
---@field reduce_axis? perilune.Node[]
---@field body? perilune.Node[]
---@field inputs perilune.te.Operation[]
---@field num_outputs integer
---@field scan_axis? perilune.Node of a scan: its first axis
---@field spatial_axis? perilune.Node[] of a scan: the other ones, output by output
---@field state_placeholder? perilune.te.Tensor[]
---@field init? perilune.te.Tensor[]
---@field update? perilune.te.Tensor[]
---@field scan_inputs? perilune.te.Tensor[] that are computed before the loop
local TeOperation = {}
---@param i? integer from 0
---@return perilune.te.Tensor
function TeOperation:output(i) end

--- How one operation is computed; schedule[tensor].
---@class perilune.te.Stage
---@field op perilune.te.Operation as it is now
---@field name string
---@field scope string
---@field is_output boolean
---@field is_group boolean
---@field attach_type string "group_root", "inline", "inlined", "scope", "scan_update"
---@field attach_stage? perilune.te.Stage
---@field attach_ivar? perilune.Node
---@field group? perilune.te.Stage
---@field leaf_iter_vars perilune.Node[] its loops, the outermost first
---@field all_iter_vars perilune.Node[]
---@field layout_transforms string[] maps of indices, in the order in which they are applied
---@field axis_separators integer[]
local Stage = {}
---@param parent perilune.Node
---@param options any a factor, or { factor = } or { nparts = }
---@return perilune.Node outer
---@return perilune.Node inner
function Stage:split(parent, options) end
---@param x_parent perilune.Node
---@param y_parent perilune.Node
---@param x_factor any
---@param y_factor any
---@return perilune.Node x_outer
---@return perilune.Node y_outer
---@return perilune.Node x_inner
---@return perilune.Node y_inner
function Stage:tile(x_parent, y_parent, x_factor, y_factor) end
---@param ... perilune.Node
---@return perilune.Node
function Stage:fuse(...) end
---@param ... perilune.Node
function Stage:reorder(...) end
---@param ivar perilune.Node
---@param thread_ivar perilune.Node
function Stage:bind(ivar, thread_ivar) end
---@param parent perilune.te.Stage
---@param scope perilune.Node
function Stage:compute_at(parent, scope) end
function Stage:compute_inline() end
function Stage:compute_root() end
---@param axis perilune.Node
function Stage:vectorize(axis) end
---@param axis perilune.Node
function Stage:unroll(axis) end
---@param axis perilune.Node
function Stage:parallel(axis) end
---@param axis perilune.Node
---@param pragma_type string
---@param pragma_value? any 1
function Stage:pragma(axis, pragma_type, pragma_value) end
---@param tensor perilune.te.Tensor
---@param axis perilune.Node
---@param offset? any 1
function Stage:prefetch(tensor, axis, offset) end
---@param scope string
function Stage:set_scope(scope) end
---@param axis perilune.Node
---@param factor integer
---@param offset? integer
function Stage:storage_align(axis, factor, offset) end
function Stage:double_buffer() end
function Stage:rolling_buffer() end
---@param threads perilune.Node[]
function Stage:env_threads(threads) end
---@param predicate perilune.Node
function Stage:set_store_predicate(predicate) end
--- Lays the elements of the stage's tensors out in memory by a map of indices; the loops of a
--- compute run over the new dimensions: s[C]:transform_layout(function(i) return i // 4, i % 4 end).
---@param mapping (fun(...: perilune.Node): any ...)|perilune.IndexMap with te.AXIS_SEPARATOR between dimensions that stay apart
---@return perilune.Node ... the new axes
function Stage:transform_layout(mapping) end
---@param axis perilune.Node
---@param intrin perilune.te.TensorIntrin
function Stage:tensorize(axis, intrin) end

--- An expression, and statements over Buffers that compute it.
--- Called in the function of te.compute, with parts of tensors and { reduce_axis = IterVar or a list },
--- it computes the dimensions for which the function has no parameter: TVM's TensorComputeOp.
--- vadd(A[{ i, tir.Range(0, 16) }], B[{ i, tir.Range(0, 16) }])
---@class perilune.te.TensorIntrin
---@overload fun(...: perilune.te.TensorRegion|table): perilune.te.TensorIntrinCall
---@field name string
---@field op perilune.te.Operation
---@field inputs perilune.te.Tensor[]
---@field buffers perilune.Node[] of inputs, then of outputs
---@field body? perilune.Node
---@field reduce_init? perilune.Node
---@field reduce_update? perilune.Node

--- A list of steps over operations; print(s) shows it, s[tensor] is a stage.
---@class perilune.te.Schedule
---@field stages perilune.te.Stage[]
---@field outputs perilune.te.Operation[]
local Schedule = {}
---@param tensor perilune.te.Tensor
---@param scope string
---@param readers any operations or tensors
---@return perilune.te.Tensor
function Schedule:cache_read(tensor, scope, readers) end
---@param tensor any a tensor, or all outputs of an operation
---@param scope string
---@return any
function Schedule:cache_write(tensor, scope) end
---@param tensor perilune.te.Tensor
---@param axis perilune.Node
---@param factor_axis? integer 0
---@return any
function Schedule:rfactor(tensor, axis, factor_axis) end
---@param outputs any
---@param inputs any
---@param include_inputs? boolean
---@return perilune.te.Stage
function Schedule:create_group(outputs, inputs, include_inputs) end
---@return integer
function Schedule:n_steps() end
---@return table[]
function Schedule:trace() end
---@return perilune.te.Schedule itself
function Schedule:undo() end
---@param n? integer
---@return perilune.te.Schedule
function Schedule:copy(n) end
---@return perilune.te.Schedule[]
---@return string[]
function Schedule:schedule_record() end
---@return string JSON
function Schedule:to_json() end
---@param text string
---@param intrins? perilune.te.TensorIntrin[] those that its steps tensorize with
---@return perilune.te.Schedule itself
function Schedule:apply_json(text, intrins) end
---@param args any[] tensors, Buffers and Vars
---@param name? string "main"
---@param options? { noalias?: boolean, debug_keep_trivial_loop?: boolean }
---@return perilune.Module
function Schedule:to_module(args, name, options) end
---@return fun(axis: perilune.Node): { min: perilune.Node, extent: perilune.Node }?
function Schedule:infer_bound() end

--- A block, a loop or a number of a schedule of blocks: schedule:get(variable).
---@class perilune.tir.Variable
---@field class "block"|"loop"|"value"

--- What was done to a schedule of blocks, in order. tostring gives it as TVM's Python.
---@class perilune.tir.Trace
local BlockTrace = {}
--- The lines of the function that tostring gives.
---@return string[]
function BlockTrace:as_python() end
--- Instructions and decisions as JSON text, for schedule:apply_json.
---@return string
function BlockTrace:as_json() end
--- Applies the steps behind those of the schedule, with the same decisions.
---@param schedule perilune.tir.Schedule
---@return perilune.tir.Schedule
function BlockTrace:apply_to_schedule(schedule) end

--- A schedule of PrimFuncs with blocks, by the names of TVM's tir.Schedule. A refused primitive
--- leaves it as it was, and says which primitive, block or loop, and why.
---@class perilune.tir.Schedule
---@field mod perilune.Module the module as the steps have made it
---@field trace perilune.tir.Trace
local BlockSchedule = {}
--- The block of that name. `func_name`: the only function, or "main".
---@param name string
---@param func_name? string
---@return perilune.tir.Variable
function BlockSchedule:get_block(name, func_name) end
--- The loops around a block, up to the next block, outermost first.
---@param block perilune.tir.Variable
---@return perilune.tir.Variable[]
function BlockSchedule:get_loops(block) end
--- The blocks in a block or loop that are in no other one there.
---@param block_or_loop perilune.tir.Variable
---@return perilune.tir.Variable[]
function BlockSchedule:get_child_blocks(block_or_loop) end
--- Blocks before it that write what it reads.
---@param block perilune.tir.Variable
---@return perilune.tir.Variable[]
function BlockSchedule:get_producers(block) end
--- Blocks behind it that read what it writes.
---@param block perilune.tir.Variable
---@return perilune.tir.Variable[]
function BlockSchedule:get_consumers(block) end
--- The blocks in a block that write what it does not allocate.
---@param scope_block perilune.tir.Variable
---@return perilune.tir.Variable[]
function BlockSchedule:get_output_blocks(scope_block) end
--- What a variable stands for: a number, a For, or a Block; "root" or "inline" for a sampled place
--- that is no loop.
---@param variable perilune.tir.Variable
---@return integer|string|perilune.Node
function BlockSchedule:get(variable) end
--- One of the candidates, with its probability. `decision`: its number from 0, instead of chance.
---@param candidates integer[]
---@param probs number[]
---@param decision? integer
---@return perilune.tir.Variable
function BlockSchedule:sample_categorical(candidates, probs, decision) end
--- n factors with the extent of the loop as their product, the last at most `max_innermost_factor`
--- (16; -1: any). `decision`: the factors, instead of chance.
---@param loop perilune.tir.Variable
---@param n integer
---@param max_innermost_factor? integer
---@param decision? integer[]
---@return perilune.tir.Variable[]
function BlockSchedule:sample_perfect_tile(loop, n, max_innermost_factor, decision) end
--- n factors as sample_perfect_tile gives, where the product of those from `partition_pos` on (0: of
--- all, numbered from 0) is a multiple of `innerpart_factor` (1). Of a loop whose extent is none, -1
--- and ones.
---@param loop perilune.tir.Variable
---@param n integer
---@param partition_pos? integer
---@param innerpart_factor? integer
---@param decision? integer[]
---@return perilune.tir.Variable[]
function BlockSchedule:sample_partitioned_tile(loop, n, partition_pos, innerpart_factor, decision) end
--- A loop at which compute_at may compute a block. `decision`: its number among the loops around the
--- consumers, from 0, or -1 (compute_at leaves the block where it is), or -2 (it inlines the block),
--- instead of chance.
---@param block perilune.tir.Variable
---@param decision? integer
---@return perilune.tir.Variable
function BlockSchedule:sample_compute_location(block, decision) end
--- Loops in the place of one, by factors, outermost first; one may be left open: { nil, 8, n = 2 }.
---@param loop perilune.tir.Variable
---@param factors (integer|perilune.tir.Variable|nil)[]
---@param preserve_unit_iters? boolean true
---@return perilune.tir.Variable[]
function BlockSchedule:split(loop, factors, preserve_unit_iters) end
--- One loop in the place of a chain of them; the last argument may be { preserve_unit_iters = }.
---@param ... perilune.tir.Variable|{ preserve_unit_iters?: boolean }
---@return perilune.tir.Variable
function BlockSchedule:fuse(...) end
--- One nest of loops in the place of several with the same extents, which stand beside each other:
--- a round runs the bodies in the order in which the loops are given. The innermost of its loops.
---@param ... perilune.tir.Variable
---@return perilune.tir.Variable
function BlockSchedule:merge(...) end
--- Loops of a chain, in another order: at the places that they have.
---@param ... perilune.tir.Variable
function BlockSchedule:reorder(...) end
--- The iterators of a block in another order: their numbers, from 0.
---@param block perilune.tir.Variable
---@param new_order integer[]
function BlockSchedule:reorder_block_iter_var(block, new_order) end
--- A loop of one round around a block or loop.
---@param block_or_loop perilune.tir.Variable
---@return perilune.tir.Variable
function BlockSchedule:add_unit_loop(block_or_loop) end
---@param loop perilune.tir.Variable
function BlockSchedule:parallel(loop) end
---@param loop perilune.tir.Variable
function BlockSchedule:vectorize(loop) end
---@param loop perilune.tir.Variable
function BlockSchedule:unroll(loop) end
--- Binds a loop to an axis of threads, such as "threadIdx.x".
---@param loop perilune.tir.Variable
---@param thread_axis string
function BlockSchedule:bind(loop, thread_axis) end
--- A copy of a buffer that a block reads (by number from 0), in a storage scope, which the
--- consumers (all that read it) read instead. The block that copies.
---@param block perilune.tir.Variable
---@param read_buffer_index integer
---@param storage_scope string
---@param consumer_blocks? perilune.tir.Variable[]
---@return perilune.tir.Variable
function BlockSchedule:cache_read(block, read_buffer_index, storage_scope, consumer_blocks) end
--- The block writes a buffer in a storage scope instead, which is then copied. The block that copies.
---@param block perilune.tir.Variable
---@param write_buffer_index integer
---@param storage_scope string
---@return perilune.tir.Variable
function BlockSchedule:cache_write(block, write_buffer_index, storage_scope) end
--- The block accesses a buffer ({ "read" or "write", number from 0 }) by its iterators as they are,
--- in a buffer of their extents, which is copied from the elements that it read, or to those that it
--- wrote. The block that copies.
---@param block perilune.tir.Variable
---@param buffer { [1]: "read"|"write", [2]: integer }
---@return perilune.tir.Variable
function BlockSchedule:reindex(block, buffer) end
--- What the block reads of a buffer (by number from 0) is copied to a buffer in a storage scope, in
--- which it is where a map of the block's iterators says. The block that copies.
---@param block perilune.tir.Variable
---@param read_buffer_index integer
---@param storage_scope string
---@param index_map (fun(...: perilune.Node): perilune.Node ...)|perilune.IndexMap
---@return perilune.tir.Variable
function BlockSchedule:reindex_cache_read(block, read_buffer_index, storage_scope, index_map) end
--- The same of what the block writes, which is then copied to where it was written before.
---@param block perilune.tir.Variable
---@param write_buffer_index integer
---@param storage_scope string
---@param index_map (fun(...: perilune.Node): perilune.Node ...)|perilune.IndexMap
---@return perilune.tir.Variable
function BlockSchedule:reindex_cache_write(block, write_buffer_index, storage_scope, index_map) end
--- A block that reads and writes a buffer works on a copy of it. The block that copies in front of
--- it, and the one that copies back.
---@param block perilune.tir.Variable
---@param read_buffer_index integer
---@param storage_scope string
---@return perilune.tir.Variable[]
function BlockSchedule:cache_inplace(block, read_buffer_index, storage_scope) end
--- What a block computes of its iterators alone at least `cse_thresh` times (0) in a store is computed
--- in front of its loops, and read from buffers in a storage scope. The blocks that compute it, large
--- expressions first.
---@param block perilune.tir.Variable
---@param storage_scope string
---@param cse_thresh? integer
---@return perilune.tir.Variable[]
function BlockSchedule:cache_index(block, storage_scope, cse_thresh) end
--- Each round of a loop begins with a block, annotated auto_copy, that copies all that the round
--- reads of a buffer to a storage scope.
---@param loop perilune.tir.Variable
---@param block perilune.tir.Variable
---@param read_buffer_index integer
---@param storage_scope string
---@return perilune.tir.Variable
function BlockSchedule:read_at(loop, block, read_buffer_index, storage_scope) end
--- Each round of a loop ends with a block, annotated auto_copy, that copies all that the round wrote
--- of a buffer, in a storage scope, back.
---@param loop perilune.tir.Variable
---@param block perilune.tir.Variable
---@param write_buffer_index integer
---@param storage_scope string
---@return perilune.tir.Variable
function BlockSchedule:write_at(loop, block, write_buffer_index, storage_scope) end
--- Sets the storage scope of a buffer that a block writes.
---@param block perilune.tir.Variable
---@param buffer_index integer
---@param storage_scope string
function BlockSchedule:set_scope(block, buffer_index, storage_scope) end
--- Wants the stride of a dimension of a buffer that a block writes to be factor * k + offset.
---@param block perilune.tir.Variable
---@param buffer_index integer
---@param axis integer from 0, or from the end
---@param factor integer
---@param offset integer
function BlockSchedule:storage_align(block, buffer_index, axis, factor, offset) end
--- Computes a block inside of a loop of its consumers: what a round of the loop reads.
---@param block perilune.tir.Variable
---@param loop perilune.tir.Variable
---@param preserve_unit_loops? boolean false
---@param index? integer -1: the last possible place (default), -2: the first
function BlockSchedule:compute_at(block, loop, preserve_unit_loops, index) end
--- Computes a block inside of a loop of its producers: what a round of the loop gives.
---@param block perilune.tir.Variable
---@param loop perilune.tir.Variable
---@param preserve_unit_loops? boolean false
---@param index? integer -1: the last possible place (default), -2: the first
function BlockSchedule:reverse_compute_at(block, loop, preserve_unit_loops, index) end
--- Computes the elements of a block where they are read.
---@param block perilune.tir.Variable
function BlockSchedule:compute_inline(block) end
--- Makes a block part of its only producer.
---@param block perilune.tir.Variable
function BlockSchedule:reverse_compute_inline(block) end
--- Takes the init of a reduction out, to before a loop: the new block.
---@param block perilune.tir.Variable
---@param loop perilune.tir.Variable
---@return perilune.tir.Variable
function BlockSchedule:decompose_reduction(block, loop) end
--- The iterators of a block whose indices are iterators and constants run to multiples of some
--- numbers: what it reads is copied with zeros behind its end, what it writes is copied up to its
--- end. A reduction is a sum of products.
---@param block perilune.tir.Variable
---@param padding integer[] a number for each iterator
function BlockSchedule:pad_einsum(block, padding) end
--- Takes apart a block that stores if_then_else(inside, value, constant), where `inside` bounds its
--- iterators: a new block fills with the constant, in front of the loop, and the block computes
--- what is inside. The new block.
---@param block perilune.tir.Variable
---@param loop perilune.tir.Variable
---@return perilune.tir.Variable
function BlockSchedule:decompose_padding(block, loop) end
--- Whether decompose_padding of the block would be done.
---@param block perilune.tir.Variable
---@param loop perilune.tir.Variable
---@return boolean
function BlockSchedule:can_decompose_padding(block, loop) end
--- Reduces a loop later: each of its rounds has a result of its own, which is dimension
--- `factor_axis` of a new buffer. The block that computes them.
---@param loop perilune.tir.Variable
---@param factor_axis integer
---@return perilune.tir.Variable
function BlockSchedule:rfactor(loop, factor_axis) end
--- Annotates a block or loop, unless it has the key.
---@param block_or_loop perilune.tir.Variable
---@param key string
---@param value string|number|boolean|table
function BlockSchedule:annotate(block_or_loop, key, value) end
---@param block_or_loop perilune.tir.Variable
---@param key string
function BlockSchedule:unannotate(block_or_loop, key) end
--- Makes a block of a loop and of all in it: a chain of loops around a block.
---@param target perilune.tir.Variable the loop
---@param preserve_unit_iters? boolean true
---@return perilune.tir.Variable
function BlockSchedule:blockize(target, preserve_unit_iters) end
--- Makes a block, or a loop and all in it, the implementation of an intrinsic, whose description is
--- compared with it: pl.tir.TensorIntrin.register.
---@param block_or_loop perilune.tir.Variable
---@param tensor_intrin string
---@param preserve_unit_iters? boolean true
function BlockSchedule:tensorize(block_or_loop, tensor_intrin, preserve_unit_iters) end
--- Puts the elements of a buffer of a block ({ "read" or "write", number from 0 }) where a
--- bijective map from indices to indices says. That of a parameter changes what the function takes.
--- pl.te.AXIS_SEPARATOR among the results of a function sets axis separators, as another step.
---@param block perilune.tir.Variable
---@param buffer { [1]: "read"|"write", [2]: integer }
---@param index_map (fun(...: perilune.Node): perilune.Node ...)|perilune.IndexMap
function BlockSchedule:transform_layout(block, buffer, index_map) end
--- Makes the iterators of a block, which loops of their own bind, what a bijective map gives for
--- them, with a loop each.
---@param block perilune.tir.Variable
---@param index_map (fun(...: perilune.Node): perilune.Node ...)|perilune.IndexMap
function BlockSchedule:transform_block_layout(block, index_map) end
--- Flattens the dimensions of a buffer of a block ({ "read" or "write", number from 0 }) apart:
--- those before and behind each of these numbers.
---@param block perilune.tir.Variable
---@param buffer { [1]: "read"|"write", [2]: integer }
---@param axis_separators integer[] increasing, from 1 to the number of dimensions - 1
function BlockSchedule:set_axis_separator(block, buffer, axis_separators) end
--- Stores the elements of a buffer that a block writes, and another allocates, as a dtype. They
--- are converted back where they are read, and may be rounded.
---@param block perilune.tir.Variable
---@param buffer_index integer
---@param dtype string
function BlockSchedule:unsafe_set_dtype(block, buffer_index, dtype) end
--- What a block writes (a buffer by number from 0) is computed once, though the windows overlap that
--- rounds of a loop around it and its consumers compute: the buffer is as large as a window in the
--- dimension that the outermost such loop moves, and holds elements modulo that.
---@param block perilune.tir.Variable
---@param write_buffer_index integer
function BlockSchedule:rolling_buffer(block, write_buffer_index) end
--- A block does not say any more that it reads, or writes, buffers (by numbers from 0). Primitives
--- then do not know of these accesses.
---@param block perilune.tir.Variable
---@param buf_type "read"|"write"
---@param buf_index_array integer[]
function BlockSchedule:unsafe_hide_buffer_access(block, buf_type, buf_index_array) end
--- Marks in the trace where postprocessing begins.
function BlockSchedule:enter_postproc() end
--- Another schedule with the same steps and variables; `seed` begins its decisions anew.
---@param seed? integer
---@return perilune.tir.Schedule
function BlockSchedule:copy(seed) end
--- Takes back the last step.
---@return perilune.tir.Schedule itself
function BlockSchedule:undo() end
---@return integer
function BlockSchedule:n_steps() end
--- Applies the steps of a trace or schedule behind its own, all or none of them.
---@param other perilune.tir.Trace|perilune.tir.Schedule
---@return perilune.tir.Schedule itself
function BlockSchedule:apply_trace(other) end
--- The same of a text that trace:as_json gave.
---@param text string
---@return perilune.tir.Schedule itself
function BlockSchedule:apply_json(text) end

--- A schedule of a PrimFunc, or of those of a module; te.create_prim_func makes one of tensors.
---@param program perilune.Module|perilune.Node
--- `decisions`: what sample_* primitives decide, in order (false: as the seed has it), or a function of the number
--- of a decision and of how many alternatives it has, which gives the number of one, both from 1 on.
--- `refit`: what does not fit is decided anew.
---@param options? { seed?: integer, decisions?: (integer|integer[]|false)[]|fun(i: integer, n: integer): integer, refit?: boolean }
---@return perilune.tir.Schedule
function pl.tir.Schedule(program, options) end

--- Intrinsics of schedules, by name: what is computed, and how, by PrimFuncs of the same Buffers
--- whose body is one block.
pl.tir.TensorIntrin = {}
---@param name string
---@param desc perilune.Node
---@param impl perilune.Node
---@param override? boolean also a name that is taken
---@return { name: string, desc: perilune.Node, impl: perilune.Node }
function pl.tir.TensorIntrin.register(name, desc, impl, override) end
---@param name string
---@param allow_missing? boolean
---@return { name: string, desc: perilune.Node, impl: perilune.Node }?
function pl.tir.TensorIntrin.get(name, allow_missing) end

pl.te = {}
--- Between two indices of a map: the dimensions before and behind it are flattened apart.
---@type table
pl.te.AXIS_SEPARATOR = {}
---@param shape any
---@param dtype? string "float32"
---@param name? string
---@return perilune.te.Tensor
function pl.te.placeholder(shape, dtype, name) end
---@param shape any
---@param fcompute fun(...): any
---@param name? string
---@param options? { tag?: string, attrs?: table }
---@return perilune.te.Tensor ...
function pl.te.compute(shape, fcompute, name, options) end
---@param init any
---@param update any
---@param state any
---@param options? { inputs?: perilune.te.Tensor[], name?: string, tag?: string, attrs?: table }
---@return perilune.te.Tensor ...
function pl.te.scan(init, update, state, options) end
--- The operations of a scan's step that depend on its state or inputs, producers first (TVM's
--- ScanGetBody).
---@param scan perilune.te.Operation
---@return perilune.te.Operation[]
function pl.te.scan_get_body(scan) end
--- Which of scan.spatial_axis are fix points: what is computed at an index of such an axis depends
--- on the state at the same index only, so that a part of the axis can be computed alone (TVM's
--- ScanFixPointAnalysis, src/te/schedule/graph.cc).
---@param scan perilune.te.Operation
---@return boolean[]
function pl.te.scan_fix_point_analysis(scan) end
---@param shape any
---@param inputs perilune.te.Tensor[]
---@param fcompute fun(ins: perilune.Node[], outs: perilune.Node[]): any
---@param options? table name, dtype, in_buffers, out_buffers, tag, attrs
---@return perilune.te.Tensor ...
function pl.te.extern(shape, inputs, fcompute, options) end
---The derivatives of a tensor by others. With a head of shape (..., the output's shape) they are the
---products with it, of shape (..., an input's shape); without one all derivatives.
---@param output perilune.te.Tensor
---@param inputs perilune.te.Tensor|perilune.te.Tensor[]
---@param head? perilune.te.Tensor
---@return perilune.te.Tensor[]
function pl.te.gradient(output, inputs, head) end
--- What a hybrid function writes its program with. `range` (serial), `parallel`, `vectorize` and
--- `unroll` are for loops: for i in h.range(n), h.range(first, last). They are the axes of the
--- operation, in the order in which they are written. `bind` is a loop over the threads of a tag, which
--- is no axis.
---@class perilune.te.HybridBuilder
---@field range fun(first: any, last?: any, name?: string): fun(): perilune.Node?
---@field serial fun(first: any, last?: any, name?: string): fun(): perilune.Node?
---@field parallel fun(first: any, last?: any, name?: string): fun(): perilune.Node?
---@field vectorize fun(first: any, last?: any, name?: string): fun(): perilune.Node?
---@field unroll fun(first: any, last?: any, name?: string): fun(): perilune.Node?
---@field bind fun(tag: string, extent: any, name?: string): fun(): perilune.Node?
---@field if_ fun(condition: perilune.Node, f: function, g?: function)
---@field output_tensor fun(shape: any, dtype?: string, name?: string): table
---@field allocate fun(shape: any, dtype?: string, scope?: string, name?: string): table
---@field emit fun(stmt: perilune.Node)

pl.te.hybrid = {}
--- A function of tensors that gives the tensors which f computes in loops. f gets the builder and,
--- for each tensor, a buffer that is read and written by indices: c[{ i, j }] = a[i].
---@param f fun(h: perilune.te.HybridBuilder, ...: any): any
---@param options? { name?: string }
---@return fun(...: any): perilune.te.Tensor ...
function pl.te.hybrid.script(f, options) end

---@param tag string
---@param f function
---@param ... any
---@return any ...
function pl.te.tag_scope(tag, f, ...) end
---@param ops any
---@return perilune.te.Schedule
function pl.te.create_schedule(ops) end
--- An intrinsic for stage:tensorize. The function returns what computes the operation; of a
--- reduction also what sets the initial value (or nil) and what adds to it.
---@param op perilune.te.Operation|perilune.te.Tensor of placeholders
---@param fcompute fun(ins: perilune.Node[], outs: perilune.Node[]): any, any, any
---@param options? { name?: string, binds?: table, default_buffer_params?: table }
---@return perilune.te.TensorIntrin
function pl.te.decl_tensor_intrin(op, fcompute, options) end
--- The PrimFunc of tensors and Vars, its parameters in this order: one block an operation, which
--- pl.tir.Schedule schedules; intermediates are buffers of the root block. Operations are
--- placeholder, compute and extern.
---@param args perilune.te.Tensor|(perilune.te.Tensor|perilune.Node)[]
---@param options? { index_dtype_override?: "int32"|"int64" } the dtype of all indices and sizes
---@return perilune.Node
function pl.te.create_prim_func(args, options) end
---@param name? string
---@param dtype? string
---@return perilune.Node
function pl.te.var(name, dtype) end
---@param name? string
---@param dtype? string
---@return perilune.Node
function pl.te.size_var(name, dtype) end
---@param dom any { first, last }
---@param name? string
---@return perilune.Node
function pl.te.reduce_axis(dom, name) end
---@param dom any { first, last }, or the tag
---@param tag? string
---@param name? string
---@return perilune.Node
function pl.te.thread_axis(dom, tag, name) end
for _, name in ipairs { "const", "comm_reducer", "sum", "min", "max", "any", "all", "if_then_else", "exp",
  "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "floor", "ceil", "trunc",
  "round", "abs", "power", "fmod", "isnan", "isinf", "isfinite", "div", "indexdiv", "indexmod",
  "truncdiv", "truncmod", "floordiv", "floormod", "max_value", "min_value" } do
  pl.te[name] = pl.tir[name]
end

---@class perilune.BuildOptions
---@field target? "c"
---@field cc? string the compiler: a command or a path; otherwise $CC, else cc
---@field flags? string|string[] its flags; otherwise -O3, -march=native and others
---@field run? "child"|"process" where calls happen
---@field threads? integer that parallel loops may use; otherwise they are serial
---@field asserts? boolean checks assertions and divisors
---@field vector_bytes? 16|32|64 those of this machine
---@field stack_bytes? integer of arrays in a function, 65536
---@field cache? string a folder of compiled objects; "" keeps none
---@field seconds? number a time limit of a call in a child process, 60
---@field compile_seconds? number a time limit of the compiler; otherwise 60 of a processor, 600 of wall time
---@field compile_memory? integer bytes of each of its processes, 4 GiB
---@field schedules? string what is decided for kernels of a model ("KEY: NAME=VALUE ...;"), in place of what tuning left in it
---@field external? table<string, { source: string, symbol: string }> C that computes the functions of a model with the
--- attribute Compiler, by its value: a file and a function in it, or the builder of pl.tune.placement's backend
---@field units? boolean each function is compiled by itself and its object kept in the cache: of two programs those
--- that both have are compiled once (false)
---@field winograd? boolean false: convolutions of models are computed by their definition; otherwise some by 3 x 3 weights
--- are transformed (Winograd, F(4, 3) or F(2, 3) along each axis), with errors of some 1e-5 of the largest result

---@class perilune.Built functions by name, each called on tensors and numbers
local Built = {}
--- Calls a function on tensors or nested tables for buffers and numbers for scalars: what each
--- buffer is after the call. Arguments do not change.
---@param name string
---@param ... any
---@return perilune.Tensor[]
function Built:run(name, ...) end
--- Calls a function again and again: the least time of a call in seconds (of this thread's
--- processor time, unless it has threads), and the results.
---@param name string
---@param args any[]
---@param options? { least?: number, seconds?: number, evict?: integer } evict: bytes written before each call
---@return number, perilune.Tensor[]
function Built:time(name, args, options) end
---@return string the C source
function Built:source() end
---@return string the header that declares its functions
function Built:header() end
---@return table[] { name =, c_name =, params = { { name =, dtype =, lanes =, rank =, ... } } }
function Built:functions() end
---@param kind? "so"|"o"
---@return { path: string, command: string, version: string, cached: boolean }
function Built:artifact(kind) end
--- Writes NAME.c, NAME.h, NAME.so or NAME.o, by the ending.
---@param path string
---@return string path
function Built:save(path) end
--- What is known of a model; nil of other modules. arena_bytes are those of values of constant
--- sizes; values of symbolic sizes lie behind them.
---@return { inputs: perilune.Type[], outputs: perilune.Type[], weight_bytes: integer, arena_bytes: integer, calls: integer }?
function Built:model() end

--- PrimFuncs as C: a module whose functions are called. The compiler runs at the first call. A
--- module with a main function of Relay code is a model: its operators become loops (FuseOps,
--- LowerTE), built.main(inputs) gives its outputs, save writes its constants to NAME.bin. Dims of
--- its inputs may be symbols, or not known: it is built once for all sizes, which are read from the
--- inputs at each call. A size that depends on data is refused. An If runs one of its branches.
--- A Loop or Scan repeats its body; one that stacks results fails if it runs another number of
--- rounds than the shape of its result says.
---@param program perilune.Module|perilune.Node
---@param options? perilune.BuildOptions
---@return perilune.Built
function pl.build(program, options) end

return pl
