// A graph of an emulated device.
#pragma once

#include <functional>

#include "weft/weft.h"

#include "device_streams/graph.h"

namespace miniapps {

class EmulatedGraph final : public Graph {
 public:
  // Of what `queue` queues on the stream.
  EmulatedGraph(weft::Stream& stream, const std::function<void()>& queue)
      : stream_(stream), graph_(stream.capture(queue)) {}
  void launch() override { stream_.launch(graph_); }

 private:
  weft::Stream& stream_;
  weft::StreamGraph graph_;
};

}  // namespace miniapps
