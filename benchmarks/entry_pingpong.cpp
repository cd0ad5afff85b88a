// Entry methods between two PEs: element 0 of a group calls element 1, which calls back.
#include "weft/weft.h"

#include "benchmarks/entry_peer.h"
#include "benchmarks/measuring.h"

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  Arguments arguments = parse_arguments(argc, argv);
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) -> weft::Task<> {
    if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 entry_pingpong ...");
    const bool is_measured = arguments.way == "measured";
    if (is_measured) {
      return play<MeasuredEntryPeer>(
          runtime, weft::Group<MeasuredEntryPeer>::create(runtime, /*pinned=*/true), arguments);
    }
    return play<EntryPeer>(runtime, weft::Group<EntryPeer>::create(runtime, /*pinned=*/true), arguments);
  });
}
