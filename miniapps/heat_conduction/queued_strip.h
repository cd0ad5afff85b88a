// A strip whose stream does everything: rows are sent and received by queued channels, and the ghost rows are the landings. The
// CPU looks at the hottest point of the last check while the device does the steps to the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/weft.h"

#include "device_streams/queued_iterations.h"
#include "kernels.h"
#include "plate.h"

namespace heat_conduction {

class QueuedStrip : public weft::Chare<QueuedStrip> {
 public:
  QueuedStrip(Problem problem, weft::Kind memory, bool uses_graphs);

  // Connects, loads the kernels and captures the graph. All of it may wait for the device, so all strips do it before one of
  // them queues a step: a stream that waits for another strip of this PE would then wait for ever.
  weft::Task<int> prepare();
  // The steps until a check has found the plate cold enough.
  weft::Task<int> run();
  // Against the exact temperatures.
  weft::Task<double> error(int num_steps);
  weft::Task<std::uint64_t> checksum();

 private:
  using Points = weft::DeviceArray<double>;
  struct Side {
    std::size_t mine, ghost;  // rows
    weft::QueuedChannel channel;
  };
  weft::Buffer row(int slot, std::size_t number);
  void add_side(int peer, std::size_t mine, std::size_t ghost);
  void queue_step(int slot);
  weft::Task<std::vector<double>> values();

  Problem problem_;
  bool uses_graphs_;
  std::size_t width_, num_rows_;
  weft::Stream stream_;
  std::unique_ptr<Kernels> kernels_;
  std::vector<Points> points_;  // by slot
  Points hottest_, hottest_on_host_;
  std::vector<Side> sides_;
  miniapps::QueuedIterations steps_;
};

}  // namespace heat_conduction
