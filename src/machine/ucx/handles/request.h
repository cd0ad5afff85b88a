// Weft's record of an operation, which lies in the space that UCX reserves in each request, and the lists of
// operations that are not over.
//
// UCX may call a completion callback inside a start call, of the operation being started or of another one. A
// message to the own PE does both. Weft's contract forbids completions inside a start call. The tracker
// therefore records them, and reports them as the call's result or from the next progress().
//
// Threads: the PE's thread. Nothing here allocates.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/transport_machine.h"
#include "machine/ucx/handles/boundary.h"

namespace weft::machine::ucx {

enum class TransportOperation : std::uint8_t {
  kTagSend,
  kTagReceive,
  kAmSend,
  kAmReceive,
  kPut,
  kGet,
  kFlush,
};

enum class RequestState : std::uint8_t { kIdle, kDoneInStart, kInFlight, kDeferred };

struct Request {
  Request* previous = nullptr;
  Request* next = nullptr;
  base::Completion* completion = nullptr;
  std::size_t size_bytes = 0;      // of the local buffer
  std::size_t received_bytes = 0;  // of the message, for receives
  int peer = -1;                   // -1: no single peer
  TransportOperation operation = TransportOperation::kTagSend;
  RequestState state = RequestState::kIdle;
  ucs_status_t status = UCS_OK;

  // UCX calls this once for the space of each request. finish() leaves the request idle, ready for its next use.
  static void initialize(void* request);
};

// The description of an operation, for its record and its error message.
struct Started {
  TransportOperation operation;
  int peer = -1;
  std::size_t size_bytes = 0;
};

class RequestTracker {
 public:
  // Turns a UCX status into the status for the user. The implementation knows which peers have failed and
  // whether the machine is closing.
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
  // Runs a UCX start call. Returns the operation's status: ok or a failure if it is over, else pending.
  template <class Call>
  base::Status start(const Started& what, base::Completion* completion, Call call) {
    starting_ = true;
    const ucs_status_ptr_t result = call();
    starting_ = false;
    if (result == nullptr) return {};
    return record(what, completion, result);
  }
  // The callback for UCX of operations that receive nothing.
  static void on_sent(void* request, ucs_status_t status, void* tracker) {
    at_boundary([&] { static_cast<RequestTracker*>(tracker)->done(request, status, 0); });
  }
  // Completes an operation; called by the callbacks that UCX calls.
  void done(void* request, ucs_status_t status, std::size_t received_bytes);

  // Calls the completions of operations that finished inside start calls. Returns whether there were any.
  bool deliver_deferred();
  bool has_deferred() const { return deferred_.next != &deferred_; }

  // Asks UCX to cancel the operation. UCX can cancel tag receives only; it ends other operations when their
  // endpoints close.
  void cancel(ucp_worker_h worker, base::Completion* completion);
  void cancel_all(ucp_worker_h worker);
  bool anything_in_flight() const { return in_flight_.next != &in_flight_; }
  bool is_in_flight_to(int peer) const;
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
