#include "models/mpi/stream/program_stream.h"

#include "weft/base/error.h"

#include "memory/memory.h"
#include "rma/copy/batch.h"

namespace weft::mpi {

ProgramStream::ProgramStream(runtime::Runtime& runtime, memory::Place device, memory::StreamHandle stream,
                             Owner owner)
    : Object(ObjectKind::kStream),
      runtime_(runtime),
      device_(device),
      stream_(stream),
      owner_(owner),
      watch_(runtime,
             "a message of MPIX_Send_enqueue or its kin. The tags and the sizes of the receives must be "
             "those of the "
             "sends, in this order; the label of a message is (tag + 1) * 2^32 + its number of bytes") {}

ProgramStream::~ProgramStream() {
  if (owner_ == Owner::kThis) static_cast<void>(kind().destroy_stream(stream_));
}

memory::KindBackend& ProgramStream::kind() const { return *runtime_.memory().backend(device_.kind); }

runtime::Task<> ProgramStream::synchronize() {
  const Ref<ProgramStream> self(*this);
  co_await watch_.over();
  rma::Batch batch(runtime_);
  batch.start([this](base::Completion* completion) {
    return runtime_.memory().when_queued_done(device_, stream_, completion);
  });
  co_await batch;
  base::check(batch.status());
}

}  // namespace weft::mpi
