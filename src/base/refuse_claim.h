// How a function that unpacks refuses a message or a state.
#pragma once

#include <string_view>

namespace weft::base {

// Throws Error(kCorrupt): a peer, or a file, claims what cannot be. Handlers of messages call it: the runtime ends the job then. So do
// functions that a pup function of the program calls. All else returns a Status. `question`: what the reader should look at.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_claim(
    std::string_view claim, std::string_view question = "do all PEs run the same program?");

}  // namespace weft::base
