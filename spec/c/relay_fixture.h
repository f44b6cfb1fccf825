/* relay_fixture.h: a module that has a bit of everything that Relay's text can
 * say, for tests that do something to all of it. */

#ifndef RICH_TEXT_H
#define RICH_TEXT_H

static const char rich_text[] =
    "#[version = \"0.0.5\"]\n"
    "type List[A] {\n  Cons(A, List[A]),\n  Nil,\n}\n"
    "extern type Box[A]\n"
    "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
    "  match (%l) {\n"
    "    Cons(%h: A, %t) => { Cons(%f(%h), @map(%f, %t)) },\n"
    "    Nil => { Nil },\n  }\n}\n"
    "def @main(%x: Tensor[(2, N), float32] /* ty=int32 span=a:1:2 */, "
    "%\"a b\": (int32, bool), %r: ref(float32), Inline=1, s=\"a\\\"\\x41\", "
    "l=[[1], [2, 3f], [True, None]], d={k=\"v\"}, scope.name=\"g\", "
    "scope.input_names=[\"p\"]) -> Tensor[(2, N), float32] {\n"
    "  keep 2f;\n"
    "  keep %3: Tensor[(2, N), float32] = exp(%x);\n"
    "  %4: Tensor[(2, 2), float32] = exp(%x);\n"
    "  keep some.domain::Op(%4, f=function(0), s=[function(0)]);\n"
    "  %0 = add(%x, 1f) /* ty=Tensor[(2, N), float32] span=from:3:4 */;\n"
    "  let %y: Tensor[(2, N), float32] = nn.relu(%0);\n"
    "  let %g = fn (%a: int32) -> int32 { if (%a < 1i32) { --0 } else "
    "{ %a - 1 } };\n"
    "  %1 = (%y, %0, (let %z = %g(%\"a b\".0); %z), (), (1,));\n"
    "  ref_write(%r, 1.5e-3f);\n"
    "  %2 = if (%\"a b\".1, k=1, then.name=\"t\", else.x=[]) "
    "{ keep tanh(%x); %1.0 } else { %0 };\n"
    "  %5 = if (True, n_results=2) { (1, 2) } else { (3, 4) };\n"
    "  %6 = nn.matmul(meta[relay.Constant][0], %2, units=None);\n"
    "  match? (%1) { (%p, _, _, _, _) => %p * %6 / inff }\n"
    "}\n"
    "#[metadata]\n"
    "{\"root\": 1, \"nodes\": [{\"type_key\": \"\"}, {\"type_key\": \"Map\", "
    "\"keys\": [\"relay.Constant\", \"IRModule\"], \"data\": [2, 4]}, "
    "{\"type_key\": \"Array\", \"data\": [3]}, "
    "{\"type_key\": \"relay.Constant\", \"attrs\": {\"data\": \"0\"}}, "
    "{\"type_key\": \"Array\", \"data\": [5]}, "
    "{\"type_key\": \"runtime.String\", \"repr_str\": \"n=8, d={k=[1f], "
    "s=\\\"\\\\xff\\\"}\"}], \"b64ndarrays\": "
    "[\"P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQACA"
    "AAAAAAAAAIAAAAAAAAAEAAAAAAAAAAAAIA/AAAAAAAAAAAAAIA/\"]}";

#endif
