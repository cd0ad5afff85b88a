// The origin's side of accesses.
#include <algorithm>
#include <cstring>
#include <new>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "models/mpi/collective/collective_request.h"
#include "models/mpi/collective/typed_view.h"
#include "models/mpi/datatype/basic_type.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/process.h"
#include "models/mpi/window/accumulation.h"
#include "models/mpi/window/target_runs.h"
#include "models/mpi/window/window.h"

namespace weft::mpi {

// An access by messages, or by a copy.
struct Window::OutgoingAccess {
  AccessHeader header;
  int target = 0;
  std::vector<WindowRun> runs;
  DataView origin;
  DataView result;
  std::vector<std::byte> values;  // of kCompareAndSwap: the value to compare with, and the new one
  rma::GlobalAddress segment;     // of the target memory of a copy; null for messages
};

namespace {

bool is_accumulate(AccessKind kind) { return kind >= AccessKind::kAccumulate; }
bool has_result(AccessKind kind) { return kind != AccessKind::kPut && kind != AccessKind::kAccumulate; }

bool has_operand(const WindowAccess& access) {
  return access.kind != AccessKind::kGet &&
         (access.operation == nullptr || access.operation->handle() != MPI_NO_OP);
}

// Packed values of a view in host memory: its own bytes if they are dense.
class PackedView {
 public:
  explicit PackedView(const DataView& view) : data_(view.data) {
    if (view.is_dense()) return;
    packed_.resize(view.size_bytes);
    view.pack(packed_.data());
    data_ = packed_.data();
  }
  const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> packed_;
  const std::byte* data_;
};

// A copy in host memory of values on a device.
class HostCopy {
 public:
  explicit HostCopy(const DataView& view) : view_(view) {
    if (view.place.is_host()) return;
    bytes_.resize(view.size_bytes);
    view_ = DataView::of_bytes(bytes_.data(), bytes_.size());
  }
  bool is_copy() const { return !bytes_.empty(); }
  const DataView& view() const { return view_; }

 private:
  DataView view_;
  std::vector<std::byte> bytes_;
};

}  // namespace

// It wraps for addresses that no memory has: the target refuses them.
MPI_Aint Window::displacement_bytes(const WindowAccess& access) const {
  return static_cast<MPI_Aint>(static_cast<std::uint64_t>(access.displacement) *
                               static_cast<std::uint64_t>(target(access.target).displacement_unit));
}

// --- Checks

Error Window::check_access(const WindowAccess& access) const {
  const Target& target = this->target(access.target);
  if (!has_epoch_with(target)) [[unlikely]] {
    return {MPI_ERR_RMA_SYNC,
            base::format(
                "no epoch with rank {} is open; call MPI_Win_fence, MPI_Win_start or MPI_Win_lock before",
                access.target)};
  }
  const std::optional<MPI_Count> size = access.type->packed_size(access.count);
  if (!size)
    return {MPI_ERR_COUNT, base::format("{} elements at the target have too many bytes", access.count)};
  const auto size_bytes = static_cast<std::size_t>(*size);
  if ((has_operand(access) && access.origin.size_bytes != size_bytes) ||
      (has_result(access.kind) && access.result.size_bytes != size_bytes)) [[unlikely]] {
    return {
        MPI_ERR_TRUNCATE,
        base::format("the access is of {} bytes at the target, {} at the origin and {} of the result; give "
                     "the same amount everywhere",
                     size_bytes, access.origin.size_bytes, access.result.size_bytes)};
  }
  if (is_dynamic() || *size == 0) return {};
  const Wide between = Wide{access.count - 1} * access.type->extent();
  const Wide start = Wide{access.displacement} * target.displacement_unit + access.type->true_lower_bound();
  const Wide low = start + std::min<Wide>(between, 0);
  const Wide high = start + std::max<Wide>(between, 0) + access.type->true_extent();
  if (low >= 0 && high <= Wide{target.size_bytes}) [[likely]]
    return {};
  return {MPI_ERR_RMA_RANGE,
          base::format(
              "{} elements at displacement {} are outside of the window of rank {}, which has {} bytes "
              "there, with a displacement unit of {}",
              access.count, access.displacement, access.target, target.size_bytes, target.displacement_unit)};
}

namespace {

// Those of one value that MPI compares: integers of C, Fortran and several languages, logical values and bytes.
bool can_be_compared(const Datatype& type) {
  if (!type.is_predefined() || type.only_basic() == nullptr || type.only_basic()->handle != type.handle())
    return false;
  const BasicKind kind = type.only_basic()->kind;
  return kind == BasicKind::kInteger || kind == BasicKind::kLogical || type.handle() == MPI_BYTE;
}

// Names of one type of values, such as MPI_INT and MPI_INT32_T, are as good as each other.
bool have_equal_values(const Datatype& one, const Datatype& other) {
  if (one.handle() == other.handle()) return true;
  const BasicType* const basic = basic_type(one.handle());
  const BasicType* const other_basic = basic_type(other.handle());
  return basic != nullptr && other_basic != nullptr && basic->kind == other_basic->kind &&
         basic->number == other_basic->number;
}

// Accumulation::whole_bytes for elements that are combined as bytes and consist of larger values.
std::uint32_t whole_bytes(const Datatype& type, const Datatype& unit) {
  const bool has_bytes = type.only_basic() != nullptr && type.only_basic()->handle == MPI_BYTE;
  if (unit.handle() != MPI_BYTE || has_bytes) return 0;
  return static_cast<std::uint32_t>(std::min<MPI_Count>(type.size_bytes(), Accumulation::kAllBytes));
}

}  // namespace

Error Window::find_unit(const WindowAccess& access, const Datatype** unit) const {
  const PredefinedTypes& types = this_rank().types;
  if (access.kind == AccessKind::kCompareAndSwap) {
    *unit = access.type;
    if (can_be_compared(*access.type)) return {};
    return {MPI_ERR_TYPE,
            "the datatype is not compared; give a predefined datatype of integers, logical values or bytes"};
  }
  *unit = unit_of(*access.type, types);
  if (!access.operation->is_predefined())
    return {MPI_ERR_OP, "the operator is not predefined; an accumulate takes one of those of mpi.h"};
  const MPI_Op op = access.operation->handle();
  if (op == MPI_REPLACE || op == MPI_NO_OP) {
    // As bytes if there is no other choice.
    if (*unit == nullptr) *unit = types.find(MPI_BYTE);
    return {};
  }
  if (*unit == nullptr)
    return {MPI_ERR_TYPE, "the datatype at the target does not consist of a single predefined datatype"};
  const Datatype* const origin = unit_of(*access.origin_type, types);
  if (origin == nullptr || !have_equal_values(*origin, **unit)) {
    return {MPI_ERR_TYPE,
            "the datatypes at the origin and at the target are not of the same predefined datatype"};
  }
  return access.operation->check(**unit);
}

// --- Now

namespace {

Accumulation how(const WindowAccess& access, const Datatype& unit) {
  return {*access.operation, unit, whole_bytes(*access.type, unit)};
}

// The target memory of an access that this process reaches, with the functions of ProcessMemory.
class MappedMemory {
 public:
  explicit MappedMemory(const DataView& view) : view_(view) {}
  std::size_t size_bytes() const { return view_.size_bytes; }
  void put(const DataView& from) const { from.copy_to(view_); }
  void get(const DataView& to) const { view_.copy_to(to); }
  void accumulate(const Accumulation& how, const std::byte* operand, std::byte* before,
                  WindowControl* control) const {
    mpi::accumulate(how, operand, view_, before, control);
  }
  void compare_and_swap(const std::byte* compare, const std::byte* desired, std::byte* before,
                        WindowControl* control) const {
    mpi::compare_and_swap(compare, desired, view_, before, control);
  }

 private:
  DataView view_;
};

}  // namespace

template <class Memory>
void Window::access_now(const WindowAccess& access, const Datatype* unit, Memory& memory) {
  WindowControl* const control = target(access.target).control;
  const HostCopy origin(access.origin);
  const HostCopy compared(access.compared);
  const HostCopy result(access.result);
  Process& process = this_process();
  if (has_operand(access) && origin.is_copy()) process.run(copy_locally(access.origin, origin.view()));
  if (compared.is_copy()) process.run(copy_locally(access.compared, compared.view()));
  if (access.kind == AccessKind::kPut) {
    memory.put(origin.view());
  } else if (access.kind == AccessKind::kGet) {
    memory.get(result.view());
  } else {
    std::vector<std::byte> packed(has_result(access.kind) && !result.view().is_dense() ? memory.size_bytes()
                                                                                       : 0);
    std::byte* before = packed.empty() ? result.view().data : packed.data();
    if (!has_result(access.kind)) before = nullptr;
    if (access.kind == AccessKind::kCompareAndSwap) {
      memory.compare_and_swap(compared.view().data, origin.view().data, before, control);
    } else if (has_operand(access)) {
      const PackedView operand(origin.view());
      memory.accumulate(how(access, *unit), operand.data(), before, control);
    } else {
      memory.accumulate(how(access, *unit), nullptr, before, control);
    }
    if (!packed.empty()) result.view().unpack(packed.data(), packed.size());
  }
  if (result.is_copy()) process.run(copy_locally(result.view(), access.result));
}

void Window::access_directly(const WindowAccess& access, const Datatype* unit) {
  const Target& target = this->target(access.target);
  std::byte* const start = target.memory + access.displacement * target.displacement_unit;
  // The view keeps a layout of the datatype for the call alone.
  const MappedMemory memory(typed_view(const_cast<Datatype&>(*access.type), start, access.count));
  access_now(access, unit, memory);
}

bool Window::access_by_system(const WindowAccess& access, const Datatype* unit, base::Status* status) {
  const Target& target = this->target(access.target);
  // Accumulates are in order: those that are under way come first.
  if (!target.process || (is_accumulate(access.kind) && target.num_outstanding > 0)) return false;
  ProcessMemory memory(target.process, runs_of(*access.type, access.count, displacement_bytes(access)));
  if (memory.num_pieces() > ProcessMemory::kMostPieces) return false;
  access_now(access, unit, memory);
  *status = memory.status();
  return true;
}

// --- By messages

Window::OutgoingAccess Window::outgoing(const WindowAccess& access, const Datatype* unit) {
  OutgoingAccess out;
  const Target& target = this->target(access.target);
  out.target = access.target;
  out.runs = runs_of(*access.type, access.count, displacement_bytes(access));
  out.origin = has_operand(access) ? access.origin : DataView();
  out.result = access.result;
  AccessHeader& header = out.header;
  header.kind = access.kind;
  header.size_bytes = static_cast<std::uint64_t>(access.count * access.type->size_bytes());
  header.num_runs = out.runs.size();
  header.number = ++last_number_;
  if (is_accumulate(access.kind)) {
    header.unit = static_cast<std::uint16_t>(predefined_number(unit->handle()));
    header.whole_bytes = whole_bytes(*access.type, *unit);
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
  std::size_t size_bytes = sizeof header;
  if (out.runs.size() <= (kMostMessageBytes - size_bytes) / sizeof(WindowRun)) {
    header.flags |= kRunsInside;
    size_bytes += out.runs.size() * sizeof(WindowRun);
  }
  if (out.origin.place.is_host() && out.origin.size_bytes <= kMostMessageBytes - size_bytes)
    header.flags |= kDataInside;
  if (out.result.place.is_host() && header.size_bytes <= kMostMessageBytes - sizeof(ReplyHeader))
    header.flags |= kReplyInside;
  return out;
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

runtime::Task<> Window::carry_out(Ref<Window> self, OutgoingAccess access, Outcome* outcome) {
  return access.segment.is_null() ? access_by_messages(std::move(self), std::move(access), outcome)
                                  : access_by_copy(std::move(self), std::move(access), outcome);
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

Error Window::start(const WindowAccess& access, Ref<Request>* request) {
  if (Error error = check_access(access); !error.ok()) [[unlikely]]
    return error;
  const Datatype* unit = nullptr;
  const bool is_comparison = access.kind == AccessKind::kCompareAndSwap;
  const bool is_empty = access.count == 0 || access.type->size_bytes() == 0;
  base::Status status;
  if (is_comparison || (is_accumulate(access.kind) && !is_empty)) {
    if (Error error = find_unit(access, &unit); !error.ok()) return error;
  }
  const bool is_direct = !is_empty && target(access.target).is_direct;
  if (is_direct) access_directly(access, unit);
  if (is_direct || is_empty || access_by_system(access, unit, &status)) {
    if (status.failed()) [[unlikely]]
      return {MPI_ERR_OTHER, std::string(status.message())};
    if (request != nullptr) {
      auto finished = Request::make<FinishedRequest>(messenger(), Request::Type::kCollective, Outcome());
      finished->start();
      *request = as_request(std::move(finished));
    }
    return {};
  }
  OutgoingAccess out = outgoing(access, unit);
  if (out.runs.size() > kMostRuns)
    return {MPI_ERR_UNSUPPORTED_OPERATION,
            base::format("the target memory has more than {} pieces; access it in parts", kMostRuns)};
  ++of(access.target).num_outstanding;
  ++num_outstanding_;
  if (request == nullptr) {
    messenger().spawn(access_unobserved(Ref<Window>(*this), std::move(out)), "an access to a window");
    return {};
  }
  const auto body = [self = Ref<Window>(*this), shared = std::make_shared<OutgoingAccess>(std::move(out))](
                        Outcome* outcome) -> runtime::Task<> {
    return access_observed(self, shared, outcome);
  };
  auto made = Request::make<CollectiveRequest>(messenger(), body);
  made->set_scope(*this);
  made->start();
  *request = as_request(std::move(made));
  return {};
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

}  // namespace weft::mpi
