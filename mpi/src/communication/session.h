// Session: the object of a handle of type MPI_Session.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/objects/info.h"
#include "models/mpi/p2p/buffer_space.h"

namespace weft::mpi {

class Session final : public ErrorScope {
 public:
  Session(Ref<ErrorHandler> handler, Info::Pairs info_in)
      : ErrorScope(ObjectKind::kSession, std::move(handler)), info(std::move(info_in)) {}

  Info::Pairs info;
  // The memory of buffered sends on communicators that come from the session. They share it.
  const std::shared_ptr<BufferSpace> buffer_space = std::make_shared<BufferSpace>();
};

// Errors: MPI_ERR_SESSION.
Error find_session(MPI_Session handle, Session** found);
// Calls `body(session)`, which returns an Error, after the checks.
template <class Body>
int with_session(const char* function, MPI_Session session, std::initializer_list<PointerArgument> arguments,
                 const Body& body) {
  return guarded(function, session, [&]() -> Error {
    if (Error error = require(arguments); !error.ok()) return error;
    Session* found = nullptr;
    if (Error error = find_session(session, &found); !error.ok()) return error;
    return body(*found);
  });
}

}  // namespace weft::mpi
