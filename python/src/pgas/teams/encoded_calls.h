// Calls with encoded arguments of functions of the extension, and their outcomes.
#pragma once

#include <string>
#include <string_view>

#include "weft/pgas/rpc.h"
#include "weft/pgas/team.h"

#include "codec/encoder.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// --- The caller's side. Throws base::Error.
// `where` names the call for an error that nothing awaits. Returns a weft.Future.
Ref send_with_result(Engine& engine, const pgas::Team& team, int rank, const pgas::RpcInfo& function,
                     Encoder& encoder, std::string where);
void send_without_result(const pgas::Team& team, int rank, const pgas::RpcInfo& function, Encoder& encoder);

// --- The callee's side
// Sends the encoded value to the caller, if it wants one.
void reply_value(const pgas::RpcCall& call, PyObject* value);
// Sends the caught exception. REQUIRES: called in a catch block. `name`: of the function, for the message.
void reply_error(const pgas::RpcCall& call, std::string_view name);

}  // namespace weft::python
