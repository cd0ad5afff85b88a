// A whole job in one process whose PEs have the PGAS model.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/pgas/pgas.h"

#include "tests/support/device_memory.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::rma {

using pgas::Pgas;  // a model that has it

}  // namespace weft::rma

namespace weft::testing {

// How PEs reach each other's segments.
struct PgasWay {
  const char* machine = "loopback";
  bool maps = true;  // or all through the machine
};

class PgasJob : public InProcessJob {
 public:
  explicit PgasJob(int num_pes, const PgasWay& way = {}, int pe_without_devices = -1,
                   std::chrono::nanoseconds device_timeout = memory::kDeviceTimeout)
      : InProcessJob(num_pes, way.machine, {}, machine::StagingMode::kDevice, pe_without_devices,
                     device_timeout) {
    for (int pe = 0; pe < num_pes; ++pe) {
      runtime(pe).install<pgas::Pgas>();
      this->pgas(pe).set_mapping(way.maps);
    }
  }

  pgas::Pgas& pgas(int pe) { return runtime(pe).model<pgas::Pgas>(); }

  // Runs `body` on that PE to its end, while all PEs take turns.
  void run_on(int pe, std::function<Task<>(pgas::Pgas&)> body) {
    bool is_over = false;
    auto whole = [](pgas::Pgas& pgas, std::function<Task<>(pgas::Pgas&)> body_in, bool& over) -> Task<> {
      co_await body_in(pgas);
      over = true;
    };
    runtime(pe).spawn(whole(this->pgas(pe), std::move(body), is_over), "the test");
    ASSERT_EQ(run_until([&] { return is_over; }), "");
  }
  // Takes turns until all that is under way has arrived.
  void settle() {
    int idle_turns = 0;
    ASSERT_EQ(run_until([&] {
                bool busy = false;
                for (int pe = 0; pe < num_pes(); ++pe) busy |= runtime(pe).step();
                idle_turns = busy ? 0 : idle_turns + 1;
                return idle_turns > 50;
              }),
              "");
  }

  // The bytes of a segment where a test can read and write them.
  std::span<std::uint8_t> bytes(int pe, const rma::Segment& segment) {
    return {view(memory(pe), segment.buffer()), segment.size_bytes()};
  }
};

// The first error of an operation, at the call or later; "" if there is none.
inline Task<std::string> pgas_error(std::function<rma::Done()> start) {
  try {
    rma::Done done = start();
    co_await done;
  } catch (const base::Error& error) {
    co_return error.what();
  }
  co_return "";
}

}  // namespace weft::testing
