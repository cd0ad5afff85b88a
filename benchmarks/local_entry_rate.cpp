// Entry methods between two chares of one PE: how many messages per second pass through its scheduler.
#include "weft/weft.h"

#include "benchmarks/entry_peer.h"
#include "benchmarks/measuring.h"

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  Arguments arguments = parse_arguments(argc, argv);
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) -> weft::Task<> {
    if (runtime.num_pes() != 1) die("this needs 1 PE: weft run -n 1 local_entry_rate ...");
    auto peers = weft::Array<EntryPeer>::create(runtime, {2}, /*pinned=*/true);
    for (const Step& step : arguments.steps) {
      weft::Future<double> done(runtime);
      peers[0].send<&EntryPeer::begin>(static_cast<int>(arguments.bench), step, /*partner=*/1, done);
      report(arguments.bench, step, co_await done);
    }
  });
}
