// Entry methods between two PEs: element 0 of a group calls element 1, which calls back.
#include "weft/weft.h"

#include "benchmarks/entry_peer.h"
#include "benchmarks/measuring.h"

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  Arguments arguments = parse_arguments(argc, argv);
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) -> weft::Task<> {
    if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 entry_pingpong ...");
    auto peers = weft::Group<EntryPeer>::create(runtime, /*pinned=*/true);
    for (const Step& step : arguments.steps) {
      weft::Future<double> done(runtime);
      peers[0].send<&EntryPeer::begin>(static_cast<int>(arguments.bench), step, /*partner=*/1, done);
      report(arguments.bench, step, co_await done);
    }
  });
}
