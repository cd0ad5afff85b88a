// The target's side of accesses by messages. All that arrives is a claim.
#include <cstring>
#include <string>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/mpi/rank.h"
#include "models/mpi/window/accumulation.h"
#include "models/mpi/window/target_runs.h"
#include "models/mpi/window/window.h"

namespace weft::mpi {

namespace {

DataView view_of(std::vector<std::byte>& bytes) { return DataView::of_bytes(bytes.data(), bytes.size()); }

[[noreturn]] void refuse_follower(int source, std::size_t size_bytes, std::size_t expected_bytes) {
  base::refuse_claim(base::format("a one-sided access of rank {} of a window is followed by {} bytes, not {}",
                                  source, size_bytes, expected_bytes),
                     "do all PEs run the same version of Weft?");
}

void check_follower(int source, const Outcome& outcome, std::size_t expected_bytes) {
  if (outcome.cancelled) throw TransferFailed(MPI_ERR_OTHER);
  if (outcome.error != MPI_SUCCESS && outcome.error != MPI_ERR_TRUNCATE) throw TransferFailed(outcome.error);
  if (outcome.error != MPI_SUCCESS || outcome.size_bytes != static_cast<std::int64_t>(expected_bytes))
    refuse_follower(source, static_cast<std::size_t>(outcome.size_bytes), expected_bytes);
}

// Accesses of one rank wait for those before them while these hold more than that here.
constexpr std::uint64_t kMostHeldBytes = std::uint64_t{16} << 20;

bool is_dense(const std::vector<WindowRun>& runs) { return runs.size() == 1 && runs.front().count == 1; }

// The memory that an access takes at the target while it is under way: packed values of memory with gaps, and what an accumulate
// combines and returns. The runs are known.
std::uint64_t held_bytes(const ArrivedAccess& access) {
  const AccessHeader& header = access.header;
  if (header.is_accumulate())
    return header.received_bytes() + (access.awaits_data() ? header.sent_bytes() : 0);
  const bool is_message =
      header.kind == AccessKind::kPut ? access.awaits_data() : (header.flags & kReplyInside) == 0;
  return is_message && !is_dense(access.runs) ? header.size_bytes : 0;
}

// Counts the bytes while it lives.
class HeldBytes {
 public:
  HeldBytes(std::uint64_t& sum, std::uint64_t size_bytes) : sum_(sum), size_bytes_(size_bytes) {
    sum_ += size_bytes_;
  }
  ~HeldBytes() { sum_ -= size_bytes_; }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

 private:
  std::uint64_t& sum_;
  std::uint64_t size_bytes_;
};

}  // namespace

runtime::Task<> Window::listen(Ref<Window> self) {
  std::vector<std::byte> buffer(kMostMessageBytes);
  for (;;) {
    self->listening_ = self->receive(kAny, kRequestTag, view_of(buffer));
    const Outcome outcome = co_await self->completed(*self->listening_);
    if (outcome.cancelled) break;
    if (outcome.error != MPI_SUCCESS)
      refuse_follower(outcome.source, static_cast<std::size_t>(outcome.size_bytes), kMostMessageBytes);
    std::vector<std::byte> message(buffer.begin(), buffer.begin() + outcome.size_bytes);
    self->messenger().spawn(serve(self, outcome.source, std::move(message)), "an access to a window");
  }
  self->listening_ = {};
  if (self->rank_ != nullptr) [[unlikely]]
    self->rank_->wake();
}

// The place of an access in an order: it waits until those that have come before are over.
class Window::Turn {
 public:
  Turn(Order& order, runtime::Messenger& messenger) : order_(order), mine_(messenger) {
    previous_ = std::exchange(order_.last, mine_);
    ++order_.num_waiting;
  }
  bool must_wait() const { return previous_.has_value(); }
  // REQUIRES: must_wait().
  runtime::Task<> come() const {
    VirtualRank* const rank = VirtualRank::current();
    co_await *previous_;
    VirtualRank::set_current(rank);
  }
  void end() {
    mine_.set();
    if (--order_.num_waiting == 0) order_.last.reset();
  }

 private:
  Order& order_;
  runtime::Future<> mine_;
  std::optional<runtime::Future<>> previous_;
};

runtime::Task<> Window::serve(Ref<Window> self, int source, std::vector<std::byte> message) {
  ArrivedAccess access = parse_access(source, message);
  std::optional<Turn> turn;
  if (access.header.is_accumulate()) {
    Order& order = self->orders_[source];
    if (access.awaits_runs() || access.awaits_data() || order.num_waiting > 0 ||
        access.header.received_bytes() > kMostMessageBytes)
      turn.emplace(order, self->messenger());
  }
  ReplyHeader reply;
  reply.error = self->check_size(access.header);
  // Runs may be many, so those of one access alone are in memory for each source.
  std::optional<Turn> announced;
  if (access.awaits_runs()) {
    announced.emplace(self->announced_orders_[source], self->messenger());
    if (announced->must_wait()) co_await announced->come();
    co_await receive_runs(*self, source, access, reply.error != MPI_SUCCESS);
  }
  if (reply.error == MPI_SUCCESS) reply.error = self->check_place(access.runs);
  std::vector<std::byte> got;
  const std::uint64_t size_bytes = reply.error == MPI_SUCCESS ? held_bytes(access) : 0;
  std::optional<Turn> large;
  if (size_bytes > 0 && !access.header.is_accumulate())
    large.emplace(self->large_orders_[source], self->messenger());
  const std::optional<Turn>& order = access.header.is_accumulate() ? turn : large;
  if (order && order->must_wait() && self->held_bytes_[source] + size_bytes > kMostHeldBytes)
    co_await order->come();
  const HeldBytes held(self->held_bytes_[source], size_bytes);
  if (reply.error != MPI_SUCCESS) {
    if (access.awaits_data()) co_await drop(*self, source, data_tag(access.header.number));
    // Later ones wait for this one, which must not be over before those that came earlier.
    if (turn && turn->must_wait()) co_await turn->come();
  } else if (access.header.kind == AccessKind::kPut) {
    co_await serve_put(*self, source, access);
  } else if (access.header.kind == AccessKind::kGet) {
    co_await serve_get(*self, access, got);
  } else {
    co_await serve_accumulate(*self, source, access, turn ? &*turn : nullptr, got);
  }
  // What it has got is held until the reply has gone.
  const bool is_full = self->held_bytes_[source] > kMostHeldBytes;
  if (turn && !is_full) turn->end();
  co_await send_reply(self, source, std::move(access), reply, std::move(got));
  if (turn && is_full) turn->end();
  if (large) large->end();
  if (announced) announced->end();
}

runtime::Task<> Window::drop(Window& self, int source, int tag) {
  const auto dropped = self.receive(source, tag, {});
  co_await self.completed(*dropped);
}

runtime::Task<> Window::receive_runs(Window& self, int source, ArrivedAccess& access, bool is_refused) {
  if (is_refused) co_return co_await drop(self, source, data_tag(access.header.number));
  access.runs.resize(access.header.num_runs);
  const std::size_t run_bytes = access.runs.size() * sizeof(WindowRun);
  const auto arriving =
      self.receive(source, data_tag(access.header.number), DataView::of_bytes(access.runs.data(), run_bytes));
  const Outcome arrived = co_await self.completed(*arriving);
  check_follower(source, arrived, run_bytes);
  check_runs(source, access.header, access.runs);
}

runtime::Task<> Window::serve_put(Window& self, int source, ArrivedAccess& access) {
  const DataView target = self.local_view(access.runs);
  if (access.awaits_data()) {
    const auto landing = self.receive(source, data_tag(access.header.number), target);
    const Outcome landed = co_await self.completed(*landing);
    check_follower(source, landed, target.size_bytes);
  } else if (target.place.is_host()) {
    target.unpack(access.data.data(), access.data.size());
  } else {
    co_await self.copy_locally(view_of(access.data), target);
  }
}

// Without bytes in `got`, the reply is sent from the memory of the window itself.
runtime::Task<> Window::serve_get(Window& self, const ArrivedAccess& access, std::vector<std::byte>& got) {
  if ((access.header.flags & kReplyInside) == 0) co_return;
  if (access.header.size_bytes > kMostMessageBytes)
    base::refuse_claim("a one-sided access wants more bytes in its reply than fit");
  const DataView target = self.local_view(access.runs);
  got.resize(target.size_bytes);
  if (target.place.is_host()) {
    target.pack(got.data());
  } else {
    co_await self.copy_locally(target, view_of(got));
  }
}

// `turn`: null if no access comes first, and nothing follows the request.
runtime::Task<> Window::serve_accumulate(Window& self, int source, ArrivedAccess& access, const Turn* turn,
                                         std::vector<std::byte>& got) {
  if (access.header.received_bytes() > 0) got.resize(access.header.received_bytes());
  if (access.awaits_data()) {
    access.data.resize(access.header.sent_bytes());
    const auto landing = self.receive(source, data_tag(access.header.number), view_of(access.data));
    const Outcome landed = co_await self.completed(*landing);
    check_follower(source, landed, access.data.size());
  }
  if (turn != nullptr && turn->must_wait()) co_await turn->come();
  const DataView target = self.local_view(access.runs);
  if (target.place.is_host()) {
    self.apply(access, target, got, &self.own_control());
  } else {
    co_await accumulate_on_device(self, access, target, got);
  }
}

// One at a time, from all ranks.
runtime::Task<> Window::accumulate_on_device(Window& self, const ArrivedAccess& access,
                                             const DataView& target, std::vector<std::byte>& got) {
  Turn turn(self.device_order_, self.messenger());
  if (turn.must_wait()) co_await turn.come();
  std::vector<std::byte> values(target.size_bytes);
  co_await self.copy_locally(target, view_of(values));
  self.apply(access, view_of(values), got, nullptr);
  co_await self.copy_locally(view_of(values), target);
  turn.end();
}

void Window::apply(const ArrivedAccess& access, const DataView& target, std::vector<std::byte>& got,
                   WindowControl* control) {
  const AccessHeader& header = access.header;
  std::byte* const before = got.empty() ? nullptr : got.data();
  if (header.kind == AccessKind::kCompareAndSwap) {
    const std::byte* const compare = access.data.data();
    return compare_and_swap(compare, compare + header.size_bytes, target, before, control);
  }
  Rank& rank = this_rank();
  const auto handle = reinterpret_cast<MPI_Datatype>(std::uintptr_t{header.unit} + kFirstTypeConstant);
  const ReductionOperator& operation =
      *rank.operations.find(reinterpret_cast<MPI_Op>(std::uintptr_t{header.operation}));
  const Datatype& unit = *rank.types.find(handle);
  if (!operation.check(unit).ok())
    base::refuse_claim("a one-sided access combines values by an operator that is not defined for them");
  accumulate({operation, unit, header.whole_bytes}, access.data.empty() ? nullptr : access.data.data(),
             target, before, control);
}

runtime::Task<> Window::send_reply(Ref<Window> self, int source, ArrivedAccess access, ReplyHeader reply,
                                   std::vector<std::byte> got) {
  const int tag = reply_tag(access.header.number);
  const bool has_data = reply.error == MPI_SUCCESS && access.header.received_bytes() > 0;
  const bool is_inside = has_data && (access.header.flags & kReplyInside) != 0;
  reply.has_data = is_inside ? 1 : 0;
  std::vector<std::byte> message(sizeof reply + (is_inside ? got.size() : 0));
  std::memcpy(message.data(), &reply, sizeof reply);
  if (is_inside) std::memcpy(message.data() + sizeof reply, got.data(), got.size());
  const auto answer = self->send(source, tag, view_of(message));
  Ref<SendRequest> data;
  if (has_data && !is_inside)
    data = self->send(source, tag, got.empty() ? self->local_view(access.runs) : view_of(got));
  co_await self->completed(*answer);
  if (data) co_await self->completed(*data);
}

}  // namespace weft::mpi
