// One chare per PE says where it is, and main waits until all have.
//
//   weft run -n 2 build/release/examples/hello
#include <cstdio>

#include "weft/weft.h"

struct Greeter : weft::Chare<Greeter> {
  void greet() { std::printf("hello from PE %d of %d\n", pe(), num_pes()); }
};

weft::Task<> start(weft::Runtime& runtime) {
  auto greeters = weft::Group<Greeter>::create(runtime);
  co_await greeters.call<&Greeter::greet>();
  std::printf("all PEs have said hello\n");
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
