// Work of a stream that is captured once.
#pragma once

namespace miniapps {

class Graph {
 public:
  virtual ~Graph() = default;
  // Queues all of it once more.
  virtual void launch() = 0;
};

}  // namespace miniapps
