#include "models/mpi/connected/connected_processes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <exception>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "base/value_or_throw.h"

namespace weft::mpi {

namespace {

// A peer that takes nothing for this time at the end has stopped.
constexpr int kCloseMs = 10000;
// The launcher of a spawned job may name a death first, and it ends this job then.
constexpr double kLossGraceS = 1;

// In front of the names of a group.
struct CallHead {
  std::uint64_t port = 0;
  std::uint64_t call = 0;
};
struct AnswerHead {
  std::uint64_t call = 0;
  std::uint64_t context = 0;
};
// In front of a text.
struct EndedHead {
  std::uint64_t port = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

template <class Head>
Head head_of(std::span<const std::byte> bytes) {
  Head head;
  if (bytes.size() < sizeof head) base::refuse_claim("a message of another job is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  return head;
}

// The name of a port has the process, and the number of the port in it.
constexpr std::string_view kPortPrefix = "weft-port";

std::string port_name(const ProcessName& process, std::uint64_t port) {
  return base::format("{}:{:x}:{:x}:{}:{:x}", kPortPrefix, process.job[0], process.job[1], process.rank,
                      port);
}

struct PortName {
  ProcessName process;
  std::uint64_t port = 0;
};

std::optional<PortName> parse_port(std::string_view text) {
  if (!text.starts_with(kPortPrefix)) return std::nullopt;
  text.remove_prefix(kPortPrefix.size());
  PortName name;
  const auto take = [&text](auto& value, int base) {
    if (!text.starts_with(':')) return false;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 1, end, value, base);
    text = std::string_view(rest, static_cast<std::size_t>(end - rest));
    return error == std::errc();
  };
  const bool is_whole = take(name.process.job[0], 16) && take(name.process.job[1], 16) &&
                        take(name.process.rank, 10) && take(name.port, 16) && text.empty();
  return is_whole && !name.process.is_launcher() ? std::optional(name) : std::nullopt;
}

}  // namespace

ConnectedProcesses::ConnectedProcesses(runtime::Runtime& runtime, PointToPoint& engine)
    : runtime_(runtime),
      end_(runtime),
      engine_(engine),
      outsiders_(engine.shared().outsiders()),
      own_(outsiders_.name_of(engine.rank())),
      links_(base::value_or_throw(machine::Links::open(own_, kOutsideRevision, *this))) {
  runtime_.note_uncounted(end_);
  outsiders_.way = this;
  runtime_.model<collective::Engine>().set_outside(this);
}

ConnectedProcesses::~ConnectedProcesses() = default;

void ConnectedProcesses::close() {
  for (auto& [number, port] : ports_)
    for (const Caller& caller : port.callers) refuse(caller);
  ports_.clear();
  links_->close(kCloseMs);
  if (!end_.is_ready()) end_.set();
  if (std::exchange(loss_check_.owner, nullptr) != nullptr) runtime_.cancel_timer(loss_timer_);
}

// --- Ports

std::string ConnectedProcesses::open_port() {
  const std::uint64_t number = PointToPoint::new_outside_context_base();
  ports_.try_emplace(number);
  return port_name(own_, number);
}

ConnectedProcesses::Port* ConnectedProcesses::find_port(std::string_view name) {
  const std::optional<PortName> parsed = parse_port(name);
  if (!parsed || parsed->process != own_) return nullptr;
  const auto known = ports_.find(parsed->port);
  return known == ports_.end() ? nullptr : &known->second;
}

bool ConnectedProcesses::close_port(std::string_view name) {
  const Port* const port = find_port(name);
  if (port == nullptr) return false;
  for (const Caller& caller : port->callers) refuse(caller);
  ports_.erase(parse_port(name)->port);
  return true;
}

// The message makes a link, which tells when the process ends.
bool ConnectedProcesses::await_caller(std::string_view port, std::string_view caller) {
  const std::optional<PortName> parsed = parse_port(caller);
  Port* const opened = find_port(port);
  if (!parsed || opened == nullptr) return false;
  opened->awaited = parsed->process;
  return links_->send(parsed->process, kAwaits, {}).ok();
}

bool ConnectedProcesses::accept(const Caller& caller, std::uint64_t context, const ProcessNames& group) {
  const AnswerHead head{caller.call, context};
  return links_->send(caller.root, kAccepted, {bytes_of(head), std::as_bytes(std::span(group))}).ok();
}

void ConnectedProcesses::refuse(const Caller& caller) {
  const AnswerHead head{caller.call, 0};
  static_cast<void>(links_->send(caller.root, kRefused, {bytes_of(head)}));
}

std::uint64_t ConnectedProcesses::call(std::string_view port, const ProcessNames& group) {
  const std::optional<PortName> parsed = parse_port(port);
  if (!parsed) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("'{}' is no name of a port; MPI_Open_port gives them", port));
  }
  if (std::ranges::find(group, parsed->process) != group.end()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("rank {} of this job, which has the port '{}' open, is in the group that calls there",
                     parsed->process.rank, port));
  }
  const std::uint64_t number = ++last_call_;
  calls_[number].at = parsed->process;
  const CallHead head{parsed->port, number};
  const base::Status sent =
      links_->send(parsed->process, kCall, {bytes_of(head), std::as_bytes(std::span(group))});
  if (!sent.failed()) return number;
  calls_.erase(number);
  throw base::Error(sent.code(),
                    base::format("nobody has the port '{}' open on this host: {}", port, sent.message()));
}

// --- Sending

// The links tell of a process that has ended if there was one to it.
void ConnectedProcesses::send_or_drop(const ProcessName& to, std::uint32_t type,
                                      std::initializer_list<std::span<const std::byte>> parts) {
  const base::Status sent = links_->send(to, type, parts);
  if (sent.failed()) on_gone(to, sent.code() == base::StatusCode::kClosed);
}

void ConnectedProcesses::send(const ProcessName& to, Type type, std::span<const std::byte> first,
                              std::span<const std::byte> second, std::span<const std::byte> third) {
  send_or_drop(to, static_cast<std::uint32_t>(type), {first, second, third});
}

void ConnectedProcesses::send_step(int number, std::span<const std::byte> header,
                                   std::span<const std::byte> blocks) {
  const int rank = number - engine_.shared().map().num_pes() + engine_.shared().map().num_ranks();
  send_or_drop(outsiders_.name_of(rank), kStep, {header, blocks});
}

// --- Arrivals

void ConnectedProcesses::post(std::function<void()> function) {
  runtime_.post_from_any_thread([this, function = std::move(function)] {
    try {
      function();
    } catch (const std::exception& error) {
      runtime_.fail(error.what());
    }
  });
}

void ConnectedProcesses::arrived(const ProcessName& from, std::uint32_t type, std::vector<std::byte> bytes) {
  // Shared, because a std::function must be copyable.
  auto kept = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  post([this, from, type, kept = std::move(kept)] { handle(from, type, *kept); });
}

void ConnectedProcesses::gone(const ProcessName& from, bool is_closed) {
  if (!from.is_launcher()) post([this, from, is_closed] { on_gone(from, is_closed); });
}

void ConnectedProcesses::failed(const std::string& reason) { runtime_.fail(reason); }

void ConnectedProcesses::handle(const ProcessName& from, std::uint32_t type,
                                std::span<const std::byte> bytes) {
  if (from.is_launcher()) {
    if (type == kEnded) on_ended(bytes);
    return;
  }
  const int number = engine_.shared().number_of(from);
  // Processes of this job connect over links, and send all else as always.
  if (type <= kStep && !engine_.shared().is_outside(number))
    base::refuse_claim(base::format("rank {} sends this job a message as a process of another job", number));
  switch (type) {
    case static_cast<std::uint32_t>(Type::kMessage):
    case static_cast<std::uint32_t>(Type::kAnswer):
      return engine_.on_outside(number, static_cast<Type>(type), bytes);
    case kStep:
      return runtime_.model<collective::Engine>().arrive_from_outside(engine_.shared().member_number(number),
                                                                      bytes);
    case kCall:
      return on_call(from, bytes);
    case kAccepted:
    case kRefused:
      return on_answer(from, type == kAccepted, bytes);
    case kAwaits:
      return;
    default:
      base::refuse_claim(base::format("a process of another job has sent a message of type {}", type));
  }
}

ProcessNames ConnectedProcesses::group_in(const ProcessName& from, std::span<const std::byte> bytes) const {
  ProcessNames names(bytes.size() / sizeof(ProcessName));
  if (bytes.size() % sizeof(ProcessName) != 0 || names.size() > kMostProcesses)
    base::refuse_claim(base::format("a group of another job has {} bytes", bytes.size()));
  if (!names.empty()) std::memcpy(names.data(), bytes.data(), bytes.size());
  ProcessNames sorted = names;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    base::refuse_claim("a group of another job has a process twice");
  if (!std::ranges::binary_search(sorted, from))
    base::refuse_claim("a process of another job speaks for a group in which it is not");
  for (const ProcessName& name : names) outsiders_.check(name);
  return names;
}

void ConnectedProcesses::on_call(const ProcessName& from, std::span<const std::byte> bytes) {
  const auto head = head_of<CallHead>(bytes);
  Caller caller{from, head.call, group_in(from, bytes.subspan(sizeof head))};
  const auto port = ports_.find(head.port);
  if (port == ports_.end()) return refuse(caller);
  port->second.callers.push_back(std::move(caller));
}

void ConnectedProcesses::on_answer(const ProcessName& from, bool is_accepted,
                                   std::span<const std::byte> bytes) {
  const auto head = head_of<AnswerHead>(bytes);
  if (head.call == 0 || head.call > last_call_)
    base::refuse_claim("a process of another job answers a call that was not made");
  const auto found = calls_.find(head.call);
  // A process that ends refuses the calls that come then, and its end has refused them here.
  if (found == calls_.end() || found->second.state != Call::State::kWaits) return;
  Call& call = found->second;
  if (call.at != from) base::refuse_claim("a process of another job answers a call at another one");
  if (is_accepted) {
    if (!PointToPoint::is_outside_context_base(head.context))
      base::refuse_claim(base::format("a process of another job gives {} as a context", head.context));
    call.context = head.context;
    call.group = group_in(from, bytes.subspan(sizeof head));
  }
  call.state = is_accepted ? Call::State::kAccepted : Call::State::kRefused;
}

void ConnectedProcesses::on_ended(std::span<const std::byte> bytes) {
  const auto head = head_of<EndedHead>(bytes);
  const auto port = ports_.find(head.port);
  if (port == ports_.end()) return;  // the jobs are connected already
  const auto text = bytes.subspan(sizeof head);
  port->second.ended = std::string(reinterpret_cast<const char*>(text.data()), text.size());
}

// Its calls are forgotten, and ours at its ports are refused.
void ConnectedProcesses::on_gone(const ProcessName& from, bool is_closed) {
  for (auto& [number, call] : calls_)
    if (call.at == from && call.state == Call::State::kWaits) call.state = Call::State::kRefused;
  for (auto& [number, port] : ports_) {
    std::erase_if(port.callers, [&](const Caller& caller) { return caller.root == from; });
    if (port.awaited == from) port.ended = "the process that was to call has ended";
  }
  // A process that has called MPI_Finalize answers no more.
  if (!is_closed || engine_.awaits_answer_of(engine_.shared().number_of(from))) note_loss(from);
}

void ConnectedProcesses::watch(const ProcessNames& group) {
  for (const ProcessName& name : group)
    if (lost_.contains(name)) note_loss(name);
}

void ConnectedProcesses::note_loss(const ProcessName& process) {
  lost_.insert(process);
  if (!outsiders_.is_in_use(process) || loss_check_.owner != nullptr) return;
  loss_check_.owner = this;
  loss_check_.function = [](runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
    ConnectedProcesses* const owner = std::exchange(static_cast<LossCheck*>(self)->owner, nullptr);
    if (action != runtime::WorkAction::kRun || owner == nullptr) return;
    for (const ProcessName& lost : owner->lost_) {
      if (!owner->outsiders_.is_in_use(lost)) continue;
      return runtime.fail(
          base::format("rank {} of a connected job has ended before MPI_Comm_disconnect", lost.rank));
    }
  };
  loss_timer_ = runtime_.post_after(kLossGraceS, &loss_check_);
}

}  // namespace weft::mpi
