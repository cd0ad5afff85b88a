// Session: what a handle of type MPI_Session stands for.
#pragma once

#include <memory>
#include <utility>

#include "weft/mpi/mpi.h"

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

}  // namespace weft::mpi
