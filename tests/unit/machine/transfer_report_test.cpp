#include "machine/transfer_report.h"

#include <gtest/gtest.h>

#include "machine/transfer_counts.h"

namespace weft::machine {
namespace {

using memory::Kind;

TEST(TransferReport, AlignsWhatWasMovedInEachWay) {
  TransferCounts counts;
  counts.add(TransferType::kTagSend, TransferPath::kThroughUcx, Kind::kHost, 8);
  counts.add(TransferType::kTagSend, TransferPath::kThroughUcx, Kind::kHost, 16);
  counts.add(TransferType::kTagSend, TransferPath::kStaged, Kind::kEmulated, 1048576);
  counts.add(TransferType::kAmSend, TransferPath::kOwnPe, Kind::kHost, 0);
  const std::vector<PeerTransports> peers = {{{0}, "self/memory"}, {{1, 2, 3, 5}, "posix/memory"}};
  EXPECT_EQ(transfer_report(2, counts.uses(), peers),
            "weft: PE 2: transfer        memory    path           messages    bytes\n"
            "weft: PE 2: tagged send     host      through UCX           2       24\n"
            "weft: PE 2: tagged send     emulated  staged                1  1048576\n"
            "weft: PE 2: active message  host      own PE                1        0\n"
            "weft: PE 2: PE 0 by self/memory\n"
            "weft: PE 2: PE 1-3,5 by posix/memory\n");
}

TEST(TransferReport, SaysThatNothingWasMoved) {
  EXPECT_EQ(transfer_report(0, {}, {}), "weft: PE 0: nothing was moved\n");
}

}  // namespace
}  // namespace weft::machine
