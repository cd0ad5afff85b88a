// Copies of which this PE reaches neither end: the source's PE makes them and answers.
#include <utility>

#include "weft/base/error.h"
#include "weft/rma/done.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "rma/copy/copies.h"

namespace weft::rma {

using base::Error;
using base::Status;
using base::StatusCode;

namespace {

enum class CopyMessage : std::uint8_t { kRequest, kAnswer };

struct CopyAnswer {
  std::uint64_t request = 0;
  std::uint8_t code = 0;  // a StatusCode
  std::string why;
  void pup(base::Pup& p) { p | request | code | why; }
};

}  // namespace

struct Copies::Request {
  std::uint64_t request = 0;
  GlobalAddress from;
  GlobalAddress to;
  std::vector<Run> runs;
  void pup(base::Pup& p) { p | request | from | to | runs; }
};

runtime::Task<> Copies::ask_source(const Copy& copy) {
  const int pe = copy.from.address.pe();
  const std::uint64_t number = ++last_request_;
  const runtime::Future<> answer(runtime_);
  asked_.emplace(number, Asked{pe, answer});
  const Request request{number, copy.from.address, copy.to.address, copy.runs};
  runtime_.send(pe, runtime::Message::pack(runtime_, handler_, CopyMessage::kRequest, request));
  co_await answer;
}

void Copies::on_message(runtime::Message& message) {
  if (closed_) return;
  const int pe = static_cast<int>(message.envelope().source_pe);
  if (pe < 0 || pe >= runtime_.num_pes()) return;
  base::Pup p = message.unpacker();
  CopyMessage type{};
  p | type;
  if (type == CopyMessage::kRequest) {
    Request request;
    p | request;
    serve(pe, std::move(request));
  } else {
    CopyAnswer answer;
    p | answer;
    const bool is_code = answer.code <= static_cast<std::uint8_t>(StatusCode::kInternal);
    answered(pe, answer.request, is_code ? static_cast<StatusCode>(answer.code) : StatusCode::kCorrupt,
             answer.why);
  }
}

void Copies::serve(int pe, Request request) {
  if (request.from.pe() != runtime_.pe()) {
    base::refuse_claim(base::format("PE {} asks this PE for a copy from {}", pe, describe(request.from)));
  }
  auto* const state = make_state();
  Done done(runtime_, state);
  start({std::move(request.runs), request.from, request.to, {}}, state);
  std::move(done).then([this, pe, number = request.request](const Status& status) {
    const CopyAnswer answer{number, static_cast<std::uint8_t>(status.code()), std::string(status.message())};
    runtime_.send(pe, runtime::Message::pack(runtime_, handler_, CopyMessage::kAnswer, answer));
  });
}

void Copies::answered(int pe, std::uint64_t request, StatusCode code, const std::string& why) {
  const auto found = asked_.find(request);
  if (found == asked_.end() || found->second.pe != pe) {
    base::refuse_claim(base::format("PE {} answers a copy that it was not asked for", pe));
  }
  const runtime::Future<> answer = found->second.answer;
  asked_.erase(found);
  if (code == StatusCode::kOk) {
    answer.set();
  } else {
    answer.set_error(std::make_exception_ptr(Error(code, why)));
  }
}

}  // namespace weft::rma
