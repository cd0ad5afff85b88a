// ProgramStream: what a handle of type MPIX_Stream stands for, a stream of a device on which a rank queues messages and
// collectives.
//
// Threads: the PE's.
#pragma once

#include <memory>

#include "weft/memory/buffer.h"
#include "weft/runtime/runtime.h"

#include "memory/kinds/kind.h"
#include "models/mpi/objects/object.h"
#include "queued/stream_watch.h"

namespace weft::mpi {

class ProgramStream final : public Object {
 public:
  enum class Owner : bool { kProgram, kThis };

  // `stream` (null: the kind's own) belongs to `device`, and lives as long as this object. kThis: it goes with the object.
  ProgramStream(runtime::Runtime& runtime, memory::Place device, memory::StreamHandle stream, Owner owner);

  memory::Place device() const { return device_; }
  memory::StreamHandle handle() const { return stream_; }
  runtime::Runtime& runtime() const { return runtime_; }
  memory::KindBackend& backend() const;
  // Notes what is queued here.
  const std::shared_ptr<queued::StreamWatch>& watch() const { return watch_; }
  // Ends when all messages and collectives that are queued are over. Throws the first failure.
  runtime::Task<> over();
  // Ends when all that is queued on the stream is done, the program's own work too. Throws the first failure.
  runtime::Task<> synchronize();

 protected:
  ~ProgramStream() override;

 private:
  runtime::Runtime& runtime_;
  memory::Place device_;
  memory::StreamHandle stream_;
  Owner owner_;
  std::shared_ptr<queued::StreamWatch> watch_;
};

}  // namespace weft::mpi
