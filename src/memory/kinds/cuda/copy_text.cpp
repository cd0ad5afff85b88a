#include "memory/kinds/cuda/copy_text.h"

#include <string_view>

#include "memory/kinds/cuda/kernel_text.h"

namespace weft::memory {

namespace {

// Does a copy of `left` bytes. `width` is the widest vector for which both sides are aligned alike. The first bytes up to such an address and the last ones are
// fewer than 16, one for a thread.
constexpr std::string_view kCopyBeginText = R"(
  {
  .reg .pred p;
  .reg .u16 byte;
  .reg .u64 width, mask, head, at, limit, advance, wide_advance, reach, load, store;
  setp.eq.u64 p, left, 0;
  @p bra over;
  xor.b64 width, to, from;
  or.b64 width, width, 16;
  neg.s64 mask, width;
  and.b64 width, width, mask;
  sub.u64 mask, width, 1;
  neg.s64 head, to;
  and.b64 head, head, mask;
  min.u64 head, head, left;
  setp.ge.u64 p, index, head;
  @p bra aligned;
  add.u64 load, from, index;
  add.u64 store, to, index;
  ld.global.u8 byte, [load];
  st.global.u8 [store], byte;
aligned:
  add.u64 to, to, head;
  add.u64 from, from, head;
  sub.u64 left, left, head;
  and.b64 limit, left, mask;
  sub.u64 limit, left, limit;
  mul.lo.u64 at, index, width;
  mul.lo.u64 advance, stride, width;
  mul.lo.u64 wide_advance, advance, 4;
)";

constexpr std::string_view kCopyLoopText = R"(
  setp.ne.u64 p, width, $width;
  @p bra not_$width;
  {
  .reg .$type a<4>, b<4>, c<4>, d<4>;
wide:
  mad.lo.u64 reach, advance, 3, at;
  setp.ge.u64 p, reach, limit;
  @p bra narrow;
  add.u64 load, from, at;
  ld.global$vector.$type $a, [load];
  add.u64 load, load, advance;
  ld.global$vector.$type $b, [load];
  add.u64 load, load, advance;
  ld.global$vector.$type $c, [load];
  add.u64 load, load, advance;
  ld.global$vector.$type $d, [load];
  add.u64 store, to, at;
  st.global$vector.$type [store], $a;
  add.u64 store, store, advance;
  st.global$vector.$type [store], $b;
  add.u64 store, store, advance;
  st.global$vector.$type [store], $c;
  add.u64 store, store, advance;
  st.global$vector.$type [store], $d;
  add.u64 at, at, wide_advance;
  bra wide;
narrow:
  setp.ge.u64 p, at, limit;
  @p bra rest;
  add.u64 load, from, at;
  add.u64 store, to, at;
  ld.global$vector.$type $a, [load];
  st.global$vector.$type [store], $a;
  add.u64 at, at, advance;
  bra narrow;
  }
not_$width:
)";

constexpr std::string_view kCopyEndText = R"(
rest:
  add.u64 at, limit, index;
  setp.ge.u64 p, at, left;
  @p bra over;
  add.u64 load, from, at;
  add.u64 store, to, at;
  ld.global.u8 byte, [load];
  st.global.u8 [store], byte;
over:
  }
)";

}  // namespace

std::string copy_text() {
  std::string text(kCopyBeginText);
  struct Width {
    const char* bytes;
    const char* vector;
    const char* type;
  };
  for (const Width& width :
       {Width{"16", ".v4", "u32"}, {"8", "", "u64"}, {"4", "", "u32"}, {"2", "", "u16"}, {"1", "", "u8"}}) {
    const auto registers = [&](const std::string& name) {
      return filled(*width.vector == 0 ? "$name0" : "{$name0, $name1, $name2, $name3}", {{"name", name}});
    };
    text += filled(kCopyLoopText, {{"width", width.bytes},
                                   {"vector", width.vector},
                                   {"type", width.type},
                                   {"a", registers("a")},
                                   {"b", registers("b")},
                                   {"c", registers("c")},
                                   {"d", registers("d")}});
  }
  return text += kCopyEndText;
}

}  // namespace weft::memory
