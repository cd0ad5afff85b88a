// Entry methods between two chares of one PE: how many messages per second pass through its scheduler.
#include "weft/weft.h"

#include "benchmarks/entry_peer.h"
#include "benchmarks/measuring.h"

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  Arguments arguments = parse_arguments(argc, argv);
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) -> weft::Task<> {
    if (runtime.num_pes() != 1) die("this needs 1 PE: weft run -n 1 local_entry_rate ...");
    const bool is_measured = arguments.way == "measured";
    if (is_measured) {
      return play<MeasuredEntryPeer>(
          runtime, weft::Array<MeasuredEntryPeer>::create(runtime, {2}, /*pinned=*/true), arguments);
    }
    return play<EntryPeer>(runtime, weft::Array<EntryPeer>::create(runtime, {2}, /*pinned=*/true), arguments);
  });
}
