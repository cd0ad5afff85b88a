// Entry methods between two PEs: element 0 of a group calls element 1, which calls back.
#include "weft/weft.h"

#include "benchmarks/entry_peer.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

template <class Peer>
weft::Task<> play(weft::Runtime& runtime, const Arguments& arguments) {
  auto peers = weft::Group<Peer>::create(runtime, /*pinned=*/true);
  for (const Step& step : arguments.steps) {
    weft::Future<double> done(runtime);
    peers[0].template send<&Peer::begin>(static_cast<int>(arguments.bench), step, /*partner=*/1, done);
    report(arguments.bench, step, co_await done);
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  Arguments arguments = parse_arguments(argc, argv);
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) -> weft::Task<> {
    if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 entry_pingpong ...");
    const bool is_measured = arguments.way == "measured";
    return is_measured ? play<MeasuredEntryPeer>(runtime, arguments) : play<EntryPeer>(runtime, arguments);
  });
}
