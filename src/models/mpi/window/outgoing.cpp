// The origin's side of accesses by messages and by copies.
#include "models/mpi/window/outgoing.h"

#include <cstring>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "models/mpi/collective/collective_request.h"
#include "models/mpi/datatype/basic_type.h"
#include "models/mpi/process.h"
#include "models/mpi/window/access_parts.h"
#include "models/mpi/window/accumulation.h"
#include "models/mpi/window/target_runs.h"

namespace weft::mpi {

Window::OutgoingAccess Window::outgoing(const WindowAccess& access, const Datatype* unit) {
  OutgoingAccess out;
  const Target& target = this->target(access.target);
  out.target = access.target;
  out.runs = runs_of(*access.type, access.count, displacement_bytes(access));
  out.origin = access.has_operand() ? access.origin : DataView();
  out.result = access.result;
  AccessHeader& header = out.header;
  header.kind = access.kind;
  header.size_bytes = static_cast<std::uint64_t>(access.count * access.type->size_bytes());
  header.num_runs = out.runs.size();
  header.number = ++last_number_;
  if (is_accumulate(access.kind)) {
    header.unit = static_cast<std::uint16_t>(predefined_number(unit->handle()));
    header.whole_bytes = whole_bytes_of(*access.type, *unit);
    out.element_bytes =
        header.whole_bytes > 0 ? header.whole_bytes : static_cast<std::uint64_t>(unit->size_bytes());
  }
  if (access.operation != nullptr)
    header.operation =
        static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(access.operation->handle()));
  if (access.kind == AccessKind::kCompareAndSwap) {
    const HostCopy compared(access.compared);
    const HostCopy desired(access.origin);
    Process& process = this_process();
    if (compared.is_copy()) process.run(copy_locally(access.compared, compared.view()));
    if (desired.is_copy()) process.run(copy_locally(access.origin, desired.view()));
    out.values.assign(compared.view().data, compared.view().data + header.size_bytes);
    out.values.insert(out.values.end(), desired.view().data, desired.view().data + header.size_bytes);
    out.origin = DataView::of_bytes(out.values.data(), out.values.size());
  }
  const bool is_copy = !is_accumulate(access.kind) && out.runs.size() == 1 && out.runs.front().count == 1 &&
                       out.origin.is_dense() && out.result.is_dense();
  if (is_copy && !target.segment.is_null()) {
    out.segment = target.segment.moved_by(out.runs.front().offset);
    return out;
  }
  if (out.runs.size() <= kMostRuns) [[likely]]
    out.choose_flags();
  return out;
}

void Window::OutgoingAccess::choose_flags() {
  std::size_t size_bytes = sizeof header;
  if (runs.size() <= (kMostMessageBytes - size_bytes) / sizeof(WindowRun)) {
    header.flags |= kRunsInside;
    size_bytes += runs.size() * sizeof(WindowRun);
  }
  if (origin.place.is_host() && origin.size_bytes <= kMostMessageBytes - size_bytes)
    header.flags |= kDataInside;
  if (result.place.is_host() && header.size_bytes <= kMostMessageBytes - sizeof(ReplyHeader))
    header.flags |= kReplyInside;
}

namespace {

std::vector<std::byte> request_of(const AccessHeader& header, const std::vector<WindowRun>& runs,
                                  const DataView& origin) {
  const std::size_t run_bytes = (header.flags & kRunsInside) != 0 ? runs.size() * sizeof(WindowRun) : 0;
  const std::size_t data_bytes = (header.flags & kDataInside) != 0 ? origin.size_bytes : 0;
  std::vector<std::byte> message(sizeof header + run_bytes + data_bytes);
  std::memcpy(message.data(), &header, sizeof header);
  if (run_bytes > 0) std::memcpy(message.data() + sizeof header, runs.data(), run_bytes);
  if (data_bytes > 0) origin.pack(message.data() + sizeof header + run_bytes);
  return message;
}

void keep_first(int error, Outcome& outcome) {
  if (outcome.error == MPI_SUCCESS) outcome.error = error;
}

}  // namespace

runtime::Task<> Window::access_by_messages(Ref<Window> self, OutgoingAccess access, Outcome* outcome) {
  const AccessHeader& header = access.header;
  const std::vector<std::byte> request = request_of(header, access.runs, access.origin);
  std::vector<std::byte> reply_bytes(sizeof(ReplyHeader) +
                                     ((header.flags & kReplyInside) != 0 ? header.received_bytes() : 0));
  const int reply = reply_tag(header.number);
  const auto answered =
      self->receive(access.target, reply, DataView::of_bytes(reply_bytes.data(), reply_bytes.size()));
  std::vector<Ref<SendRequest>> sends;
  sends.push_back(self->send(access.target, kRequestTag, DataView::of_bytes(request.data(), request.size())));
  if ((header.flags & kRunsInside) == 0) {
    sends.push_back(
        self->send(access.target, data_tag(header.number),
                   DataView::of_bytes(access.runs.data(), access.runs.size() * sizeof(WindowRun))));
  }
  if ((header.flags & kDataInside) == 0 && header.sent_bytes() > 0)
    sends.push_back(self->send(access.target, data_tag(header.number), access.origin));
  for (const auto& send : sends) {
    const Outcome sent = co_await self->completed(*send);
    keep_first(sent.error, *outcome);
  }
  const Outcome arrived = co_await self->completed(*answered);
  keep_first(arrived.error, *outcome);
  ReplyHeader answer;
  std::memcpy(&answer, reply_bytes.data(), sizeof answer);
  if (arrived.size_bytes < static_cast<std::int64_t>(sizeof answer)) answer.error = MPI_ERR_INTERN;
  keep_first(answer.error, *outcome);
  if (outcome->error != MPI_SUCCESS || header.received_bytes() == 0) co_return;
  if (answer.has_data != 0) {
    const auto data_bytes = static_cast<std::size_t>(arrived.size_bytes) - sizeof answer;
    if (data_bytes == access.result.size_bytes && (header.flags & kReplyInside) != 0) {
      access.result.unpack(reply_bytes.data() + sizeof answer, data_bytes);
    } else {
      outcome->error = MPI_ERR_INTERN;
    }
    co_return;
  }
  const auto data = self->receive(access.target, reply, access.result);
  const Outcome landed = co_await self->completed(*data);
  keep_first(landed.error, *outcome);
}

// By the layer of global memory: a device, or the network without the target's CPU.
runtime::Task<> Window::access_by_copy(Ref<Window> self, OutgoingAccess access, Outcome* outcome) {
  VirtualRank* const rank = VirtualRank::current();
  rma::GlobalMemory& memory = self->global_memory();
  try {
    if (access.header.kind == AccessKind::kPut) {
      const DataView& from = access.origin;
      const memory::ConstBuffer source{from.data, from.size_bytes, from.place, nullptr};
      co_await memory.put_memory(source, access.segment);
    } else {
      const DataView& to = access.result;
      const memory::Buffer destination{to.data, to.size_bytes, to.place, nullptr};
      co_await memory.get_memory(access.segment, destination);
    }
  } catch (const base::Error&) {
    outcome->error = MPI_ERR_OTHER;
  }
  VirtualRank::set_current(rank);
}

// All requests leave before the first wait: accumulates of this rank are applied in the order of the calls.
runtime::Task<> Window::access_in_parts(Ref<Window> self, OutgoingAccess access, Outcome* outcome) {
  ViewParts origin(access.origin);
  ViewParts result(access.result);
  auto runs = access.runs.cbegin();
  std::vector<Ref<CollectiveRequest>> requests;
  for (const RunPart& cut : cut_runs(access.runs, access.element_bytes, kMostRuns)) {
    const auto part = std::make_shared<OutgoingAccess>();
    part->header = access.header;
    part->header.size_bytes = cut.size_bytes;
    part->header.num_runs = cut.num_runs;
    part->header.number = ++self->last_number_;
    part->target = access.target;
    part->runs.assign(runs, runs + static_cast<std::ptrdiff_t>(cut.num_runs));
    runs += static_cast<std::ptrdiff_t>(cut.num_runs);
    part->origin = origin.next(cut.size_bytes);
    part->result = result.next(cut.size_bytes);
    part->choose_flags();
    requests.push_back(Request::make<CollectiveRequest>(self->messenger(), [self, part](Outcome* of_part) {
      return access_by_messages(self, std::move(*part), of_part);
    }));
    requests.back()->start();
  }
  for (const auto& request : requests) {
    const Outcome ended = co_await self->completed(*request);
    keep_first(ended.error, *outcome);
  }
}

runtime::Task<> Window::carry_out(Ref<Window> self, OutgoingAccess access, Outcome* outcome) {
  if (!access.segment.is_null()) return access_by_copy(std::move(self), std::move(access), outcome);
  if (access.runs.size() > kMostRuns) [[unlikely]]
    return access_in_parts(std::move(self), std::move(access), outcome);
  return access_by_messages(std::move(self), std::move(access), outcome);
}

runtime::Task<> Window::access_unobserved(Ref<Window> self, OutgoingAccess access) {
  const int target = access.target;
  Outcome outcome;
  co_await carry_out(self, std::move(access), &outcome);
  if (outcome.error != MPI_SUCCESS) {
    self->errors_.try_emplace(
        target, outcome.error,
        base::format("rank {} could not carry out an access that this call completes", target));
  }
  self->count_ended(target);
}

void Window::count_ended(int rank) {
  --of(rank).num_outstanding;
  --num_outstanding_;
  if (rank_ != nullptr) [[unlikely]]
    rank_->wake();
}

runtime::Task<> Window::access_observed(Ref<Window> self, std::shared_ptr<OutgoingAccess> access,
                                        Outcome* outcome) {
  const int target = access->target;
  try {
    co_await carry_out(self, std::move(*access), outcome);
  } catch (...) {
    self->count_ended(target);
    throw;
  }
  self->count_ended(target);
}

void Window::start_outgoing(OutgoingAccess access, Ref<Request>* request) {
  ++of(access.target).num_outstanding;
  ++num_outstanding_;
  if (request == nullptr) {
    messenger().spawn(access_unobserved(Ref<Window>(*this), std::move(access)), "an access to a window");
    return;
  }
  const auto body = [self = Ref<Window>(*this), shared = std::make_shared<OutgoingAccess>(std::move(access))](
                        Outcome* outcome) -> runtime::Task<> {
    return access_observed(self, shared, outcome);
  };
  auto made = Request::make<CollectiveRequest>(messenger(), body);
  made->set_scope(*this);
  made->start();
  *request = as_request(std::move(made));
}

}  // namespace weft::mpi
