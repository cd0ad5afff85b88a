#include "models/mpi/stream/program_stream.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "memory/memory.h"
#include "rma/copy/batch.h"

namespace weft::mpi {

namespace {

// For errors: what has failed, and what the reader should look at.
constexpr const char* kStreamMessages =
    "operations that streams order (MPIX_Send_enqueue, MPIX_Allreduce_enqueue and their kin). The tags and "
    "the sizes of the receives "
    "must be those of "
    "the sends, in the same order; the label of a message is (tag + 1) * 2^32 + its number of bytes";

}  // namespace

ProgramStream::ProgramStream(runtime::Runtime& runtime, memory::Place device, memory::StreamHandle stream,
                             Owner owner)
    : Object(ObjectKind::kStream),
      runtime_(runtime),
      device_(device),
      stream_(stream),
      owner_(owner),
      watch_(std::make_shared<queued::StreamWatch>(runtime, kStreamMessages)) {}

ProgramStream::~ProgramStream() {
  if (owner_ == Owner::kThis) static_cast<void>(backend().destroy_stream(stream_));
}

memory::KindBackend& ProgramStream::backend() const { return *runtime_.memory().backend(device_.kind); }

runtime::Task<> ProgramStream::over() {
  const Ref<ProgramStream> self(*this);
  try {
    co_await watch_->over();
  } catch (const base::Error& error) {
    throw base::Error(error.code(), base::format("{}. This is of {}", error.what(), kStreamMessages));
  }
}

runtime::Task<> ProgramStream::synchronize() {
  const Ref<ProgramStream> self(*this);
  co_await over();
  rma::Batch batch(runtime_);
  batch.start([this](base::Completion* completion) {
    return runtime_.memory().when_queued_done(device_, stream_, completion);
  });
  co_await batch;
  base::check(batch.status());
}

}  // namespace weft::mpi
