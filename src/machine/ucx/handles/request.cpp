#include "machine/ucx/handles/request.h"

#include <new>

namespace weft::machine::ucx {
namespace {

bool is_receive(TransportOperation operation) {
  return operation == TransportOperation::kTagReceive || operation == TransportOperation::kAmReceive;
}

}  // namespace

void Request::initialize(void* request) { new (request) Request{}; }

base::Status RequestTracker::record(const Started& what, base::Completion* completion,
                                    ucs_status_ptr_t result) {
  if (UCS_PTR_IS_ERR(result)) return translator_.translate(what, UCS_PTR_STATUS(result));
  auto* request = static_cast<Request*>(result);
  request->completion = completion;
  request->size_bytes = what.size_bytes;
  request->peer = what.peer;
  request->operation = what.operation;
  if (request->state != RequestState::kDoneInStart) [[likely]] {
    request->state = RequestState::kInFlight;
    link(in_flight_, request);
    completion->in_flight = request;
    return base::Status::pending();
  }
  // A receive that got fewer bytes than its buffer has, inside the start call. The call's result cannot report
  // the size, so the operation completes from progress().
  if (request->status == UCS_OK && is_receive(what.operation) && request->received_bytes != what.size_bytes) {
    defer(request);
    completion->in_flight = request;
    return base::Status::pending();
  }
  base::Status status = request->status == UCS_OK ? base::Status() : translator_.translate(*request);
  request->state = RequestState::kIdle;
  ucp_request_free(request);
  return status;
}

void RequestTracker::defer(Request* request) {
  request->state = RequestState::kDeferred;
  link(deferred_, request);
  attention_.wanted = true;
}

void RequestTracker::done(void* ucx_request, ucs_status_t status, std::size_t received_bytes) {
  auto* request = static_cast<Request*>(ucx_request);
  request->status = status;
  request->received_bytes = received_bytes;
  if (request->state == RequestState::kIdle) {
    request->state = RequestState::kDoneInStart;
    return;
  }
  unlink(request);
  if (starting_) {
    defer(request);
    return;
  }
  finish(request);
}

void RequestTracker::finish(Request* request) {
  base::Completion* completion = request->completion;
  const std::size_t size_bytes =
      is_receive(request->operation) ? request->received_bytes : request->size_bytes;
  base::Status status;
  if (request->status != UCS_OK) [[unlikely]]
    status = translator_.translate(*request);
  request->state = RequestState::kIdle;
  ucp_request_free(request);
  if (completion == nullptr) return;  // take_all() detached it
  completion->in_flight = nullptr;
  completion->function(completion, std::move(status), size_bytes);
}

bool RequestTracker::deliver_deferred() {
  bool any = false;
  while (has_deferred()) {
    Request* request = deferred_.next;
    unlink(request);
    finish(request);
    any = true;
  }
  return any;
}

void RequestTracker::cancel(ucp_worker_h worker, base::Completion* completion) {
  auto* request = static_cast<Request*>(completion->in_flight);
  // A deferred operation is over already; the next progress() reports its status.
  if (request != nullptr && request->state == RequestState::kInFlight) ucp_request_cancel(worker, request);
}

void RequestTracker::cancel_all(ucp_worker_h worker) {
  // A completion function may cancel others, so each request is moved aside before it is cancelled.
  Request tried;
  tried.previous = tried.next = &tried;
  while (anything_in_flight()) {
    Request* request = in_flight_.next;
    unlink(request);
    link(tried, request);
    ucp_request_cancel(worker, request);
  }
  while (tried.next != &tried) {
    Request* request = tried.next;
    unlink(request);
    link(in_flight_, request);
  }
}

bool RequestTracker::is_in_flight_to(int peer) const {
  for (const Request* request = in_flight_.next; request != &in_flight_; request = request->next) {
    if (request->peer == peer && request->completion != nullptr) return true;
  }
  return false;
}

std::vector<base::Completion*> RequestTracker::take_all() {
  std::vector<base::Completion*> taken;
  for (Request* list : {&in_flight_, &deferred_}) {
    for (Request* request = list->next; request != list; request = request->next) {
      if (request->completion == nullptr) continue;
      request->completion->in_flight = nullptr;
      taken.push_back(std::exchange(request->completion, nullptr));
    }
  }
  return taken;
}

}  // namespace weft::machine::ucx
