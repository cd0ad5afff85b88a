#include "machine/ucx/small_puts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "base/format.h"
#include "machine/staging/staged_machine.h"

namespace weft::machine::ucx {

using base::Completion;
using base::Status;
using base::StatusCode;

// The headers of both messages. Same build on all PEs, so they travel as they lie in memory.
struct SmallPuts::Request {
  std::uint64_t region;
  std::uint64_t offset_bytes;
  std::uint32_t slot;
  std::int32_t source_pe;
  std::uint32_t number;
  std::uint32_t reserved;
};
struct SmallPuts::Answer {
  std::uint32_t slot;
  std::int32_t source_pe;
  std::uint32_t number;
  std::uint32_t code;  // a StatusCode
};

// A put in flight. It is the completion of its message. It ends when its outcome is here and the message is sent: until then UCX
// reads the caller's buffer.
struct SmallPuts::Put : Completion {
  explicit Put(SmallPuts& owner_in, std::uint32_t slot_in)
      : Completion(&SmallPuts::on_sent), owner(owner_in), slot(slot_in) {}

  SmallPuts& owner;
  std::uint32_t slot;
  int pe = -1;
  bool is_sending = false;
  bool is_over = false;  // while it is being sent: the outcome is here
  bool fails_flushes = false;
  Status outcome;
  std::size_t size_bytes = 0;
  Completion* user = nullptr;  // null: there is no put
  std::uint64_t number = 0;    // in the order of the starts
  std::uint32_t ticket() const { return static_cast<std::uint32_t>(number); }
  Put* next_free = nullptr;
};

// A flush that began while puts were in flight. It is the completion of the transport's flush.
struct SmallPuts::Flush : Completion {
  Flush(SmallPuts& owner_in, int pe_in, Completion* user_in)
      : Completion(&SmallPuts::on_flushed),
        owner(owner_in),
        pe(pe_in),
        before(owner_in.num_started_),
        user(user_in) {}
  bool covers(const Put& put) const { return put.number < before && (pe < 0 || pe == put.pe); }

  SmallPuts& owner;
  int pe;
  std::uint64_t before;  // the number of the first put that it does not cover
  std::size_t num_puts = 0;
  bool is_flushed = false;
  Status
      status;  // of the transport's flush, or of a put whose failure is the peer's or the machine's, whichever failed first
  Completion* user;
};

namespace {

template <class Header>
std::span<const std::byte> bytes_of(const Header& header) {
  return std::as_bytes(std::span(&header, 1));
}

// A caller that is gone needs no answer. Another one waits until the job ends.
void report_unanswered(const Status& status) {
  if (!status.failed() || status.code() == StatusCode::kPeerFailed || status.code() == StatusCode::kClosed)
    return;
  std::fputs(base::format("weft: the answer to a put was not sent, so its caller will wait for it: {}\n",
                          status.to_string())
                 .c_str(),
             stderr);
}

template <class Header>
bool read_header(const AmArrival& arrival, Header& header) {
  if (arrival.header.size() != sizeof header) return false;
  std::memcpy(&header, arrival.header.data(), sizeof header);
  return true;
}

}  // namespace

SmallPuts::SmallPuts(TransportMachine& machine, const MemoryRegions& regions)
    : machine_(machine), regions_(regions), num_in_flight_to_(static_cast<std::size_t>(machine.num_pes())) {}

SmallPuts::~SmallPuts() = default;

Status SmallPuts::open() {
  Status status = machine_.transport_set_am_handler(kSmallPutAmId, &SmallPuts::on_put, this);
  if (status.failed()) return status;
  return machine_.transport_set_am_handler(kSmallPutAnswerAmId, &SmallPuts::on_answer, this);
}

// --- the caller ---

SmallPuts::Put& SmallPuts::take(int pe, std::size_t size_bytes) {
  if (free_ == nullptr) [[unlikely]] {
    puts_.push_back(std::make_unique<Put>(*this, static_cast<std::uint32_t>(puts_.size())));
    free_ = puts_.back().get();
  }
  Put& put = *free_;
  free_ = put.next_free;
  put.pe = pe;
  put.size_bytes = size_bytes;
  put.number = num_started_++;
  return put;
}

void SmallPuts::recycle(Put& put) { put.next_free = std::exchange(free_, &put); }

Status SmallPuts::start(int pe, const memory::ConstBuffer& local, std::uint64_t region,
                        std::size_t offset_bytes, Completion* completion) {
  Put& put = take(pe, local.size_bytes);
  const Request request{region, offset_bytes, put.slot, machine_.pe(), put.ticket(), 0};
  Status sent = machine_.transport_am_send(pe, kSmallPutAmId, bytes_of(request), local, &put);
  if (sent.failed()) [[unlikely]] {
    recycle(put);
    return sent;
  }
  // Neither an answer nor the end of the send is delivered inside a start.
  put.user = completion;
  put.is_sending = sent.is_pending();
  ++num_in_flight_;
  ++num_in_flight_to_[static_cast<std::size_t>(pe)];
  return Status::pending();
}

void SmallPuts::on_sent(Completion* completion, Status status, std::size_t) {
  auto& put = *static_cast<Put*>(completion);
  put.is_sending = false;
  if (put.is_over) {
    put.owner.end(put.slot, std::move(put.outcome), put.fails_flushes);
  } else if (status.failed()) {
    put.owner.end(put.slot, std::move(status));
  }
}

std::pair<int, std::size_t> SmallPuts::in_flight(std::size_t slot) const {
  const Put& put = *puts_[slot];
  return put.user == nullptr ? std::pair(-1, std::size_t{0}) : std::pair(put.pe, put.size_bytes);
}

void SmallPuts::end(std::size_t slot, Status status, bool fails_flushes) {
  Put& put = *puts_[slot];
  if (put.is_sending) [[unlikely]] {
    if (put.is_over) return;  // the first outcome stays
    put.is_over = true;
    put.outcome = std::move(status);
    put.fails_flushes = fails_flushes;
    return;
  }
  Completion* const user = std::exchange(put.user, nullptr);
  put.is_over = false;
  const std::size_t size_bytes = status.ok() ? put.size_bytes : 0;
  --num_in_flight_;
  --num_in_flight_to_[static_cast<std::size_t>(put.pe)];
  if (!flushes_.empty()) [[unlikely]] {
    // By index: the end of a flush takes it out of the list, and its completion may begin another.
    for (std::size_t i = flushes_.size(); i-- > 0;) {
      Flush* const flush = flushes_[i].get();
      if (!flush->covers(put)) continue;
      if (status.failed() && fails_flushes && flush->status.ok()) flush->status = status;
      if (--flush->num_puts == 0 && flush->is_flushed) finish(flush);
    }
  }
  recycle(put);
  user->function(user, std::move(status), size_bytes);
}

void SmallPuts::on_answer(void* self, AmArrival& arrival) {
  auto& puts = *static_cast<SmallPuts*>(self);
  Answer answer;
  if (!read_header(arrival, answer)) return;
  // A peer's answer is a claim. The slot of a put that has ended by a failure may hold another put by now.
  if (answer.slot >= puts.puts_.size()) return;
  const Put& put = *puts.puts_[answer.slot];
  if (put.user == nullptr || put.pe != answer.source_pe || put.ticket() != answer.number) return;
  if (answer.code == static_cast<std::uint32_t>(StatusCode::kOk)) [[likely]] {
    puts.end(answer.slot, {});
  } else {
    const auto code = static_cast<StatusCode>(std::min(answer.code, std::uint32_t{0xff}));
    puts.end(answer.slot, refused_by_owner(code, answer.source_pe, "put"), false);
  }
}

void SmallPuts::close(const Status& status) {
  // UCX reads no buffer any more.
  for (const auto& put : puts_) put->is_sending = false;
  end_failed([](int) { return true; }, [&](int, std::size_t) { return status; });
}

// --- the owner ---

void SmallPuts::on_put(void* self, AmArrival& arrival) {
  const auto& puts = *static_cast<const SmallPuts*>(self);
  Request request;
  if (!read_header(arrival, request)) return;
  if (request.source_pe < 0 || request.source_pe >= puts.machine_.num_pes()) return;
  const Answer answer{request.slot, puts.machine_.pe(), request.number,
                      static_cast<std::uint32_t>(puts.serve(request, arrival))};
  // One for all answers: none is cancelled.
  static Completion answered([](Completion*, Status status, std::size_t) { report_unanswered(status); });
  report_unanswered(puts.machine_.transport_am_send(request.source_pe, kSmallPutAnswerAmId, bytes_of(answer),
                                                    {}, &answered));
}

StatusCode SmallPuts::serve(const Request& request, const AmArrival& arrival) const {
  const std::size_t size_bytes = arrival.payload_size_bytes;
  if (arrival.data == nullptr || size_bytes > kMostBytes) return StatusCode::kCorrupt;
  const MemoryRegions::HostRegion* const region = regions_.find_host(request.region);
  if (region == nullptr) return StatusCode::kNotFound;
  if (request.offset_bytes > region->size_bytes || size_bytes > region->size_bytes - request.offset_bytes) {
    return StatusCode::kOutOfRange;
  }
  std::memcpy(region->data + request.offset_bytes, arrival.data, size_bytes);
  return StatusCode::kOk;
}

// --- flushes ---

SmallPuts::Flush* SmallPuts::begin_flush(int pe, Completion* completion) {
  auto flush = std::make_unique<Flush>(*this, pe, completion);
  flush->num_puts = in_flight_to(pe);
  flushes_.push_back(std::move(flush));
  return flushes_.back().get();
}

Status SmallPuts::flush_started(Flush* flush, Status status) {
  if (status.is_pending()) return status;
  if (status.failed()) {
    std::erase_if(flushes_, [&](const auto& other) { return other.get() == flush; });
    return status;
  }
  flush->is_flushed = true;  // no put has ended inside the start, so there are some to wait for
  return Status::pending();
}

Completion* SmallPuts::as_completion(Flush* flush) { return flush; }

void SmallPuts::on_flushed(Completion* completion, Status status, std::size_t) {
  auto* const flush = static_cast<Flush*>(completion);
  flush->is_flushed = true;
  if (flush->status.ok()) flush->status = std::move(status);
  if (flush->num_puts == 0) flush->owner.finish(flush);
}

void SmallPuts::finish(Flush* flush) {
  const auto place = std::ranges::find(flushes_, flush, &std::unique_ptr<Flush>::get);
  const std::unique_ptr<Flush> over = std::move(*place);
  flushes_.erase(place);
  over->user->function(over->user, std::move(over->status), 0);
}

}  // namespace weft::machine::ucx
