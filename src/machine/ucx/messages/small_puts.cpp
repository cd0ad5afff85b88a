#include "machine/ucx/messages/small_puts.h"

#include <algorithm>
#include <cstdio>

#include "weft/base/copy_bytes.h"

#include "base/format.h"
#include "machine/staging/staged_machine.h"

namespace weft::machine::ucx {

using base::Completion;
using base::Status;
using base::StatusCode;

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

// A caller that is gone needs no answer. Another one waits until the job ends.
void report_unanswered(const Status& status) {
  if (!status.failed() || status.code() == StatusCode::kPeerFailed || status.code() == StatusCode::kClosed)
    return;
  std::fputs(base::format("weft: the answer to a put was not sent, so its caller will wait for it: {}\n",
                          status.to_string())
                 .c_str(),
             stderr);
}

}  // namespace

SmallPuts::SmallPuts(ShortMessages& messages, const MemoryRegions& regions)
    : messages_(messages),
      regions_(regions),
      num_pes_(static_cast<std::uint32_t>(messages.machine().num_pes())),
      own_pe_(static_cast<std::uint32_t>(messages.machine().pe())),
      end_of_regions_(num_pes_ <= SmallPutRequest::mask(SmallPutRequest::kPeBits)
                          ? std::uint64_t{1} << SmallPutRequest::kRegionBits
                          : 0),
      num_in_flight_to_(num_pes_),
      answered_(&SmallPuts::on_answer_sent) {}

SmallPuts::~SmallPuts() = default;

Status SmallPuts::open(ucp_worker_h worker) {
  Status status = messages_.set_handler<&SmallPuts::on_put>(worker, kSmallPutAmId, this);
  if (status.failed()) return status;
  return messages_.set_handler<&SmallPuts::on_answer>(worker, kSmallPutAnswerAmId, this);
}

// --- the caller ---

SmallPuts::Put& SmallPuts::make_put() {
  puts_.push_back(std::make_unique<Put>(*this, static_cast<std::uint32_t>(puts_.size())));
  free_ = puts_.back().get();
  return *free_;
}

void SmallPuts::on_sent(Completion* completion, Status status, std::size_t) {
  auto& put = *static_cast<Put*>(completion);
  put.is_sending = false;
  if (put.is_over) {
    put.owner.end(put, std::move(put.outcome), put.fails_flushes);
  } else if (status.failed()) {
    put.owner.end(put, std::move(status));
  }
}

void SmallPuts::end(Put& put, Status status, bool fails_flushes) {
  if (put.is_sending) {
    if (put.is_over) return;  // the first outcome stays
    put.is_over = true;
    put.outcome = std::move(status);
    put.fails_flushes = fails_flushes;
    return;
  }
  put.is_over = false;
  Completion* const user = leave(put);
  if (!flushes_.empty()) end_in_flushes(put, status, fails_flushes);
  recycle(put);
  const std::size_t size_bytes = status.ok() ? put.size_bytes : 0;
  user->function(user, std::move(status), size_bytes);
}

void SmallPuts::on_answer(void* self, std::span<const std::byte> header, const std::byte*, std::size_t) {
  auto& puts = *static_cast<SmallPuts*>(self);
  MessageWords words;
  if (!read_words(header.data(), header.size(), words)) return;
  // A peer's answer is a claim. The slot of a put that has ended by a failure may hold another put by now.
  const SmallPutAnswer answer = SmallPutAnswer::unpack(words);
  if (answer.slot >= puts.puts_.size()) return;
  Put& put = puts.put_in(answer.slot);
  if (put.user == nullptr || static_cast<std::uint32_t>(put.pe) != answer.source_pe ||
      ticket_of(put.number) != answer.number) {
    return;
  }
  if (answer.code == static_cast<std::uint32_t>(StatusCode::kOk) && !put.is_sending && puts.flushes_.empty())
      [[likely]] {
    Completion* const user = puts.leave(put);
    puts.recycle(put);
    user->function(user, {}, put.size_bytes);
  } else {
    puts.end_by_answer(put, answer);
  }
}

void SmallPuts::end_by_answer(Put& put, const SmallPutAnswer& answer) {
  const auto code = static_cast<StatusCode>(std::min(answer.code, std::uint32_t{0xff}));
  if (code == StatusCode::kOk) return end(put, {});
  end(put, refused_by_owner(code, put.pe, "put"), false);
}

void SmallPuts::close(const Status& status) {
  // UCX reads no buffer any more.
  for (const auto& put : puts_) put->is_sending = false;
  end_failed([](int) { return true; }, [&](int, std::size_t) { return status; });
}

// --- the owner ---

void SmallPuts::on_put(void* self, std::span<const std::byte> header, const std::byte* data,
                       std::size_t size_bytes) {
  auto& puts = *static_cast<SmallPuts*>(self);
  MessageWords words;
  if (!read_words(header.data(), header.size(), words)) return;
  const SmallPutRequest request = SmallPutRequest::unpack(words);
  if (request.source_pe >= puts.num_pes_) return;
  const SmallPutAnswer answer{request.slot, puts.own_pe_, request.number,
                              static_cast<std::uint32_t>(puts.serve(request, data, size_bytes))};
  const Status sent = puts.messages_.send(static_cast<int>(request.source_pe), kSmallPutAnswerAmId,
                                          answer.pack(), nullptr, 0, &puts.answered_);
  if (sent.failed()) [[unlikely]]
    report_unanswered(sent);
}

void SmallPuts::on_answer_sent(Completion*, Status status, std::size_t) { report_unanswered(status); }

inline StatusCode SmallPuts::serve(const SmallPutRequest& request, const std::byte* data,
                                   std::size_t size_bytes) const {
  if (data == nullptr || size_bytes > kMostBytes) return StatusCode::kCorrupt;
  const MemoryRegions::HostRegion* const region = regions_.find_host(request.region);
  if (region == nullptr) return StatusCode::kNotFound;
  if (request.offset_bytes > region->size_bytes || size_bytes > region->size_bytes - request.offset_bytes) {
    return StatusCode::kOutOfRange;
  }
  base::copy_bytes(region->data + request.offset_bytes, data, size_bytes);
  return StatusCode::kOk;
}

// --- flushes ---

void SmallPuts::end_in_flushes(const Put& put, const Status& status, bool fails_flushes) {
  // By index: the end of a flush takes it out of the list, and its completion may begin another.
  for (std::size_t i = flushes_.size(); i-- > 0;) {
    Flush* const flush = flushes_[i].get();
    if (!flush->covers(put)) continue;
    if (status.failed() && fails_flushes && flush->status.ok()) flush->status = status;
    if (--flush->num_puts == 0 && flush->is_flushed) finish(flush);
  }
}

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
