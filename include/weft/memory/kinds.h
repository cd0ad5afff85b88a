// The list of memory kinds, in the order of their numbers. A new kind is one line here and one folder
// src/memory/kinds/<name>/; src/memory/README.md has the recipe.
//
// Each line is the enumerator of Kind and the kind's name. The name is used in options, in messages and in
// Python. The folder defines `const KindFactory kinds::<name>` (src/memory/kinds/kind_factory.h).
#pragma once

#define WEFT_FOR_EACH_MEMORY_KIND(kind) kind(kHost, host) kind(kCuda, cuda) kind(kEmulated, emulated)
