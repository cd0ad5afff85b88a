// A whole job in one process whose PEs have the MPI model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "models/mpi/model.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/point_to_point_requests.h"
#include "tests/support/in_process_job.h"

namespace weft::testing {

// Elements with gaps, of so many bytes that no memory holds their packed form.
class TooLargeToPack final : public mpi::ElementLayout {
 public:
  static mpi::DataView view() {
    mpi::DataView view;
    view.size_bytes = std::size_t{1} << 50;
    view.layout = std::make_shared<TooLargeToPack>();
    view.count = 1;
    return view;
  }
  void pack(const std::byte*, std::int64_t, std::byte*) const override {}
  void unpack(const std::byte*, std::size_t, std::byte*, std::int64_t) const override {}
  void visit_runs(const std::byte*, std::int64_t, std::size_t, const mpi::RunVisitor&) const override {}
};

// Several ranks for each PE.
struct RanksOn {
  std::vector<int> pe_of_rank;
};

class MpiJob : public InProcessJob {
 public:
  explicit MpiJob(int num_pes, std::string_view machine = "loopback") : InProcessJob(num_pes, machine) {
    for (int pe = 0; pe < num_pes; ++pe) {
      runtime(pe).install<mpi::Mpi>();
    }
  }
  MpiJob(int num_pes, const RanksOn& pes) : MpiJob(num_pes) {
    for (int pe = 0; pe < num_pes; ++pe)
      runtime(pe).model<mpi::Mpi>().place_ranks(mpi::RankMap(pes.pe_of_rank, num_pes));
  }
  mpi::PointToPoint& rank(int pe, int number) {
    return *runtime(pe).model<mpi::Mpi>().engines().find(number);
  }
  // The first rank of a PE.
  mpi::PointToPoint& ranks(int pe) { return runtime(pe).model<mpi::Mpi>().point_to_point(); }

  // Takes turns until the requests are complete.
  template <class... Requests>
  void wait(const Requests&... requests) {
    ASSERT_EQ(run_until([&] { return (requests->is_complete() && ...); }), "");
  }
  // Takes turns until all that is under way has arrived.
  void settle() {
    int idle_turns = 0;
    ASSERT_EQ(run_until([&] {
                bool busy = false;
                for (int pe = 0; pe < num_pes(); ++pe) busy |= runtime(pe).step();
                idle_turns = busy ? 0 : idle_turns + 1;
                return idle_turns > 3;
              }),
              "");
  }
};

}  // namespace weft::testing
