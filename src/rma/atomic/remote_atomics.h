// Atomic operations that this PE cannot do by itself: a message to the segment's owner, which does them with its CPU.
//
// On host memory the message is urgent: the owner serves it inside progress(), also while its program computes and calls
// that, and in any turn.
//
// Threads: the PE's. Invariant: the state of each operation completes exactly once, also at the end of the job.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "weft/base/status.h"
#include "weft/rma/global_ptr.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "rma/atomic/device_atomics.h"
#include "rma/atomic/words.h"
#include "rma/segment/segments.h"

namespace weft::rma {

class RemoteAtomics {
 public:
  RemoteAtomics(runtime::Runtime& runtime, runtime::HandlerId handler, Segments& segments);
  RemoteAtomics(const RemoteAtomics&) = delete;
  RemoteAtomics& operator=(const RemoteAtomics&) = delete;

  struct RemoteOperation {
    AtomicKind kind = AtomicKind::kLoad;
    AtomicType type = AtomicType::kInteger64;
    GlobalAddress address;
    std::uint64_t operand = 0;
    std::uint64_t compare = 0;
  };
  // Starts it; `state` has room for the value before behind it, and completes. Throws Error for misuse that this PE knows
  // of. Then `state` is not used.
  void start(const RemoteOperation& operation, runtime::OperationState* state);
  // Ends what is not over.
  void close();

 private:
  struct Request;
  struct Answer;
  struct Pending {
    runtime::OperationState* state = nullptr;
    RemoteOperation operation;
    int pe = -1;
    bool is_sent = false;
  };

  runtime::Task<> learn(std::uint64_t request, GlobalAddress address);
  // The segment is known.
  void begin(std::uint64_t request, const RemoteOperation& operation, KnownSegment& segment);
  void send_request(std::uint64_t request, const RemoteOperation& operation);
  void serve(const RemoteOperation& operation, KnownSegment& segment, DeviceAtomics::Ended ended);
  void end(std::uint64_t request, const base::Status& status, std::uint64_t before);
  void on_message(runtime::Message& message);
  void on_request(int pe, const Request& request);
  void answer(int pe, const Answer& answer);

  runtime::Runtime& runtime_;
  runtime::HandlerId handler_;
  Segments& segments_;
  DeviceAtomics device_;
  // To one owner. What a program starts beyond waits here: an owner that serves requests alone would run nothing else.
  static constexpr int kMostUnderWay = 1024;
  struct Owner {
    int num_under_way = 0;
    std::deque<std::uint64_t> waiting;  // numbers of requests
  };

  bool closed_ = false;
  std::uint64_t last_request_ = 0;
  std::unordered_map<int, Owner> owners_;
  std::unordered_map<std::uint64_t, Pending> pending_;
};

}  // namespace weft::rma
