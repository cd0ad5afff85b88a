// The list of memory kinds with one line more. The test's target finds this header before Weft's own.
#pragma once

#define WEFT_FOR_EACH_MEMORY_KIND(kind) \
  kind(kHost, host) kind(kCuda, cuda) kind(kEmulated, emulated) kind(kThrowAway, throw_away)
