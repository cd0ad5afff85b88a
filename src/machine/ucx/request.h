// What Weft keeps in the space that UCX reserves in each of its requests, and the list of those in flight.
//
// UCX may call a completion callback inside a start call: that of the operation being started or of another
// one. A message to the own PE does both. Weft's contract forbids it, so the tracker records completions inside
// a start call and reports them as the call's result or from the next progress().
//
// Threads: the PE's thread. Nothing here allocates.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/staging/transport_machine.h"

namespace weft::machine::ucx {

enum class Operation : std::uint8_t {
  kTagSend,
  kTagReceive,
  kAmSend,
  kAmReceive,
  kPut,
  kGet,
  kFlush,
};

struct Request {
  enum class State : std::uint8_t { kIdle, kDoneInStart, kInFlight, kDeferred };

  Request* previous = nullptr;
  Request* next = nullptr;
  base::Completion* completion = nullptr;
  std::size_t size_bytes = 0;      // of the local buffer
  std::size_t received_bytes = 0;  // of the message, for receives
  int peer = -1;                   // -1: none in particular
  Operation operation = Operation::kTagSend;
  State state = State::kIdle;
  ucs_status_t status = UCS_OK;

  // UCX prepares the space of each request with this, once; finish() leaves it as it was.
  static void initialize(void* request);
};

// What an operation was about, for its record and its error message.
struct Started {
  Operation operation;
  int peer = -1;
  std::size_t size_bytes = 0;
};

class RequestTracker {
 public:
  // Turns a UCX status into the one that the user sees; knows which peers have failed and whether we are
  // closing.
  struct Translator {
    virtual base::Status translate(const Request& request) const = 0;
    virtual base::Status translate(const Started& started, ucs_status_t status) const = 0;

   protected:
    ~Translator() = default;
  };

  RequestTracker(const Translator& translator, Attention& attention)
      : translator_(translator), attention_(attention) {
    in_flight_.previous = in_flight_.next = &in_flight_;
    deferred_.previous = deferred_.next = &deferred_;
  }
  RequestTracker(const RequestTracker&) = delete;
  RequestTracker& operator=(const RequestTracker&) = delete;

  bool starting() const { return starting_; }
  // Runs a UCX start call and gives the operation's status: ok and failures at once, or pending.
  template <class Call>
  base::Status start(const Started& what, base::Completion* completion, Call call) {
    starting_ = true;
    const ucs_status_ptr_t result = call();
    starting_ = false;
    if (result == nullptr) return {};
    return record(what, completion, result);
  }
  // For the callbacks that UCX calls.
  void done(void* request, ucs_status_t status, std::size_t received_bytes);

  // Completes what finished inside start calls. Returns whether there was anything.
  bool deliver_deferred();
  bool has_deferred() const { return deferred_.next != &deferred_; }

  // Asks UCX to end a tag receive. UCX ends other operations when their endpoints close.
  void cancel(ucp_worker_h worker, base::Completion* completion);
  void cancel_all(ucp_worker_h worker);
  bool anything_in_flight() const { return in_flight_.next != &in_flight_; }
  // Detaches the completions of operations that UCX did not end. The caller destroys the worker first, so that
  // UCX no longer uses their buffers, and then calls the completions.
  std::vector<base::Completion*> take_all();

 private:
  base::Status record(const Started& what, base::Completion* completion, ucs_status_ptr_t result);
  void finish(Request* request);
  void defer(Request* request);

  static void link(Request& list, Request* request) {
    request->previous = list.previous;
    request->next = &list;
    list.previous->next = request;
    list.previous = request;
  }
  static void unlink(Request* request) {
    request->previous->next = request->next;
    request->next->previous = request->previous;
  }

  const Translator& translator_;
  Attention& attention_;
  Request in_flight_;
  Request deferred_;
  bool starting_ = false;
};

}  // namespace weft::machine::ucx
