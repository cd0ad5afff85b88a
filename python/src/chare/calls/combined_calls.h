// Entry methods of the members of combined sections: what entry_method.cpp needs of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/chare/combined_members.h"
#include "weft/chare/outcome.h"
#include "weft/runtime/target.h"

#include "await/future.h"
#include "chare/calls/proxy_core.h"
#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

// The members that a weft.CombinedSection names.
struct CombinedProxy {
  chare::CombinedMembers::Pointer members;
  std::vector<ProxyCore> cores;  // of the parts; never empty
};

// An entry method of all members: each part's class has it under a number of its own.
struct CombinedMethod {
  std::shared_ptr<const CombinedProxy> proxy;
  std::vector<std::uint16_t> methods;

  bool has_post_entry() const;
  friend bool operator==(const CombinedMethod& a, const CombinedMethod& b) {
    return *a.proxy->members == *b.proxy->members && a.methods == b.methods;
  }
};

void encode_combined(Encoder& encoder, const CombinedProxy& proxy);
// Sends the call, whose header was written for the first part.
void send_combined(const CombinedMethod& method, std::span<const chare::ReplyTo> replies,
                   runtime::MessagePtr call);
// Calls `send` with a reply for each part and returns its result. `state` gets the list of the results in the order of the members.
runtime::OperationState* send_expecting_combined(
    const CombinedMethod& method, PyFutureState* state,
    const std::function<runtime::OperationState*(std::span<const chare::ReplyTo> replies)>& send);
// As target_of_method(). `bound`: the number of bound arguments and these arguments, encoded.
runtime::Target target_of_combined(const CombinedMethod& method, std::uint8_t result_form,
                                   std::span<const std::byte> bound);

}  // namespace weft::python
