// Which part of a program sets a future, for the error of a second set: the chare, and the function and line that call set().
//
// It is packed into bytes: they are behind the value in the message that sets a future of another PE. What comes from another PE
// is checked when it is described.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/runtime/messenger.h"

namespace weft::python {

// Of the Python code that calls into the extension.
std::string packed_setter();
// "Ring[3] on PE 1 (Ring.work, ring.py:12)". As much of it as `packed`, which may be empty, says.
std::string describe_setter(runtime::Messenger& messenger, std::uint32_t pe, std::string_view packed);

// Has futures that are set from other PEs described so. Once, when the extension is initialised.
void init_setter();

}  // namespace weft::python
