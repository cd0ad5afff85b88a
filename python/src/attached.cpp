#include "attached.h"

#include "future.h"

namespace weft::python {

namespace {

constexpr const char* kCapsuleName = "weft.landed_memory";

struct InPlace {
  Ref keeper;
  std::shared_ptr<BuffersFree> done;
};

// The engine last: the memory goes back to its pool.
struct Landed {
  EngineRef engine;
  runtime::Attachment attachment;
};

void free_landed(PyObject* capsule) {
  delete static_cast<Landed*>(PyCapsule_GetPointer(capsule, kCapsuleName));
}

}  // namespace

BuffersFree::BuffersFree(PyFutureState* state) : state_(state) { state_->acquire(); }

BuffersFree::~BuffersFree() {
  if (!state_->runtime().exiting()) state_->set(Ref::borrow(Py_None));
  state_->release();
}

runtime::Attachment attach(Ref keeper, const void* data, std::size_t size_bytes,
                           std::shared_ptr<BuffersFree> done) {
  auto release = [](void* owner, const memory::Buffer&) { delete static_cast<InPlace*>(owner); };
  memory::Buffer buffer{const_cast<void*>(data), size_bytes, {}, nullptr};
  return runtime::Attachment(buffer, release, new InPlace{std::move(keeper), std::move(done)});
}

Ref make_memory_owner(Engine& engine, runtime::Attachment attachment) {
  auto landed = std::make_unique<Landed>(Landed{EngineRef(engine), std::move(attachment)});
  Ref capsule = checked(PyCapsule_New(landed.get(), kCapsuleName, &free_landed));
  static_cast<void>(landed.release());
  return capsule;
}

}  // namespace weft::python
