#include "chare/calls/combined_calls.h"

#include <cstring>
#include <utility>

#include "weft/chare/sections.h"

#include "chare/calls/calls.h"
#include "chare/classes/call_header.h"
#include "codec/decoder.h"
#include "support/errors.h"

namespace weft::python {

namespace {

chare::Sections& sections_of(const CombinedMethod& method) {
  return method.proxy->cores.front().engine->chares().sections();
}

// The results of a call, gathered for each part.
struct CombinedResults {
  Ref values;
  std::vector<std::exception_ptr> errors;  // by part
  std::size_t num_missing;
};

void read_part(CombinedResults& results, const chare::CombinedMembers& members, std::size_t i, Pup& p) {
  const chare::CombinedMembers::Part& part = members.parts()[i];
  const std::vector<std::uint64_t> places = part.members->places_by_index();
  std::uint64_t count = 0;
  results.errors[i] = chare::read_gathered(
      p, [&count](std::uint64_t all) { count = all; },
      [&](std::uint64_t k, Pup& from) {
        Decoder decoder(from);
        const std::uint64_t place = part.first + (places.empty() ? k : places.at(k));
        checked(
            PyList_SetItem(results.values.get(), static_cast<Py_ssize_t>(place), decoder.value().release()));
        decoder.finish(from);
      });
  if (!results.errors[i] && count != part.members->size())
    throw base::Error(base::StatusCode::kCorrupt, "the results of a call to a combined section are damaged");
}

void set_results(CombinedResults& results, PyFutureState& state) {
  for (const std::exception_ptr& error : results.errors) {
    if (error) return state.set_error(error);
  }
  state.set(std::move(results.values));
}

}  // namespace

bool CombinedMethod::has_post_entry() const {
  for (std::size_t i = 0; i < methods.size(); ++i) {
    if (proxy->cores[i].info->post_entry(methods[i]) != nullptr) return true;
  }
  return false;
}

void encode_combined(Encoder& encoder, const CombinedProxy& proxy) {
  Engine& engine = *proxy.cores.front().engine;
  engine.expect_open_on_any_thread();
  encoder.tag(ValueTag::kCombinedSection);
  encoder.packed(Pup::sizer(&engine.runtime()), [&proxy](Pup& p) { proxy.members->pack(p); });
  for (const ProxyCore& core : proxy.cores) encoder.name(core.info->key());
}

void send_combined(const CombinedMethod& method, std::span<const chare::ReplyTo> replies,
                   runtime::MessagePtr call) {
  sections_of(method).send(*method.proxy->members, replies, std::move(call),
                           [&method](std::size_t part, std::byte* arguments) {
                             CallHeader header;
                             std::memcpy(&header, arguments, sizeof header);
                             header.method = method.methods[part];
                             std::memcpy(arguments, &header, sizeof header);
                           });
}

runtime::OperationState* send_expecting_combined(
    const CombinedMethod& method, PyFutureState* state,
    const std::function<runtime::OperationState*(std::span<const chare::ReplyTo> replies)>& send) {
  const chare::CombinedMembers::Pointer& members = method.proxy->members;
  const auto results = std::make_shared<CombinedResults>();
  results->values = checked(PyList_New(static_cast<Py_ssize_t>(members->size())));
  results->errors.resize(members->parts().size());
  results->num_missing = members->parts().size();
  std::vector<chare::ReplyTo> replies;
  const runtime::FutureShare<PyFutureState> share(state);
  for (std::size_t i = 0; i < members->parts().size(); ++i) {
    replies.push_back(sections_of(method).expect_gather([share, results, members, i](Pup& p) {
      try {
        read_part(*results, *members, i, p);
      } catch (...) {
        results->errors[i] = caught_as_travelling_error();
      }
      --results->num_missing;
      if (share->is_set()) return;  // a member has failed, or the arguments did not reach a PE
      if (results->num_missing == 0 || results->errors[i]) set_results(*results, *share.get());
    }));
  }
  try {
    return send(replies);
  } catch (...) {
    sections_of(method).forget_replies(replies);
    throw;
  }
}

runtime::Target target_of_combined(const CombinedMethod& method, std::uint8_t result_form,
                                   std::span<const std::byte> bound) {
  std::vector<base::SmallBytes> calls;
  for (std::size_t i = 0; i < method.methods.size(); ++i) {
    Encoder encoder;
    encoder.number(chare::EntryHeader{method.proxy->cores[i].collection->id(), 0, python_entry().id, 0, {}});
    encoder.number(CallHeader{method.methods[i], CallHeader::Form::kResult, result_form});
    encoder.raw(bound.data(), bound.size());
    calls.emplace_back(encoder.copy());
  }
  return sections_of(method).target(*method.proxy->members, calls);
}

}  // namespace weft::python
