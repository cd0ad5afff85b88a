// A collective operation as a request: a coroutine that completes the request when it ends. One coroutine serves the blocking,
// the non-blocking and the persistent call.
//
// Threads: the PE's.
#pragma once

#include <functional>
#include <utility>

#include "weft/runtime/task.h"

#include "models/mpi/p2p/request.h"

namespace weft::mpi {

class CollectiveRequest final : public Request {
 public:
  // Makes the coroutine for one execution. The function owns what the coroutine refers to: it lives until the request is freed
  // and its last execution has ended.
  // It may write what the status of the request tells.
  using Body = std::function<runtime::Task<>(Outcome*)>;

  explicit CollectiveRequest(Body body) : Request(Type::kCollective), body_(std::move(body)) {}

  // Runs the coroutine until it first waits. An Error that leaves it is the outcome.
  void start() override;

 private:
  runtime::Task<> run(Ref<CollectiveRequest> self);

  Body body_;
};

}  // namespace weft::mpi
