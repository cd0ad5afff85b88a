#include "buffers/dlpack/export.h"

#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dlpack_abi.h"
#include "buffers/arrays/dtype.h"
#include "buffers/arrays/element_types.h"
#include "engine/engine.h"
#include "memory/kinds/native_api.h"
#include "memory/memory.h"

namespace weft::python {

namespace {

[[noreturn]] void buffer_error(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  throw PythonError();
}

dlpack::Device device_of(const memory::Buffer& memory) {
  switch (memory::native_api_of(memory.place.kind)) {
    case memory::NativeApi::kHost:
      return {dlpack::kCpu, 0};
    case memory::NativeApi::kCuda:
      return {dlpack::kCuda, memory.place.device};
    case memory::NativeApi::kNone:
      break;
  }
  buffer_error(
      base::format("memory on {} stands in for a device's: no other library can use it; await "
                   "array.to_host() instead",
                   memory::place_name(memory.place)));
}

dlpack::DataType type_of(const ArrayForm& form) {
  // First, because NumPy counts some of these types as its floats.
  if (const ElementType* type = element_type_of(form.dtype.get())) return type->dlpack;
  auto bits = static_cast<std::uint8_t>(item_size_bytes(form.dtype) * 8);
  if (is_native_byte_order(form.dtype) && item_size_bytes(form.dtype) <= 16) {
    switch (dtype_letter(form.dtype)) {
      case 'i':
        return {dlpack::kInt, bits, 1};
      case 'u':
        return {dlpack::kUInt, bits, 1};
      case 'f':
        return {dlpack::kFloat, bits, 1};
      case 'c':
        return {dlpack::kComplex, bits, 1};
      case 'b':
        return {dlpack::kBool, bits, 1};
      default:
        break;
    }
  }
  buffer_error(base::format("DLPack has no element type for {}", dtype_name(form.dtype)));
}

void expect_no_other_device(const memory::Buffer& memory, PyObject* wanted) {
  if (wanted == nullptr || wanted == Py_None) return;
  Ref mine = make_dlpack_device(memory);
  int same = PyObject_RichCompareBool(mine.get(), wanted, Py_EQ);
  checked(same);
  if (same == 0) {
    buffer_error(
        base::format("the array is on the DLPack device {} and does not move to {}; copy it with "
                     "weft.DeviceArray.copy_from",
                     readable(mine.get()), readable(wanted)));
  }
}

// The consumer's stream. Null if the consumer asks for no synchronization, or for host memory.
memory::StreamHandle consumer_stream(const memory::Buffer& memory, PyObject* stream) {
  constexpr std::uintptr_t kLegacyDefault = 1;
  if (stream == nullptr || stream == Py_None) {
    return memory.place.is_host() ? nullptr : reinterpret_cast<memory::StreamHandle>(kLegacyDefault);
  }
  int overflow = 0;
  long long number = PyLong_Check(stream) ? PyLong_AsLongLongAndOverflow(stream, &overflow) : 0;
  bool is_allowed = memory.place.is_host() ? number == -1 : number == -1 || number > 0;
  if (is_allowed && overflow == 0) {
    return number > 0 ? reinterpret_cast<memory::StreamHandle>(number) : nullptr;
  }
  PyErr_Format(PyExc_ValueError,
               memory.place.is_host() ? "__dlpack__ of host memory takes no stream, not %R"
                                      : "__dlpack__ takes a stream's handle, 1 for CUDA's legacy default "
                                        "stream, 2 for its per-thread one, or -1, not %R",
               stream);
  throw PythonError();
}

// Makes the consumer's stream wait for the work queued on the array's own stream. Data of completed operations
// needs no wait: it is visible to every stream.
void make_stream_wait(const memory::Buffer& memory, memory::StreamHandle stream) {
  if (stream == nullptr || memory.stream == nullptr || stream == memory.stream) return;
  try {
    static_cast<void>(Engine::current());
  } catch (const base::Error& error) {  // called on another thread, or the job has ended
    buffer_error(base::format("an array with a stream of its own cannot be exported here: {}", error.what()));
  }
  memory::KindBackend& kind = *Engine::current().runtime().memory().backend(memory.place.kind);
  base::Result<memory::EventHandle> event = kind.record(memory.stream, memory.place.device);
  base::check(event.status());
  const base::Status status = kind.stream_wait(stream, memory.place.device, *event);
  kind.release_event(*event);
  base::check(status);
}

bool wants_versioned(PyObject* max_version) {
  if (max_version == nullptr || max_version == Py_None) return false;
  Ref major = checked(PySequence_GetItem(max_version, 0));
  long number = PyLong_AsLong(major.get());
  if (number == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return number >= static_cast<long>(dlpack::kVersion.major);
}

// The managed tensor of one export, with the arrays that it points to and the owner of its memory.
template <class ManagedTensor>
struct Export {
  ManagedTensor managed{};
  Ref keeper;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  // The deleter. A consumer may call it on any thread, with or without the GIL.
  static void destroy(ManagedTensor* managed) {
    PyGILState_STATE gil = PyGILState_Ensure();
    delete static_cast<Export*>(managed->context);
    PyGILState_Release(gil);
  }
};

template <class ManagedTensor>
void destroy_untaken(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (std::string_view(name).starts_with("used_")) return;
  auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class ManagedTensor>
Ref make_capsule(const ArrayForm& form, const memory::Buffer& memory, Ref keeper, const char* name) {
  auto exported = std::make_unique<Export<ManagedTensor>>();
  exported->keeper = std::move(keeper);
  exported->shape = form.extents;
  exported->strides = strides_in(1, form.extents);
  ManagedTensor& managed = exported->managed;
  managed.context = exported.get();
  managed.deleter = &Export<ManagedTensor>::destroy;
  managed.tensor = {memory.data,
                    device_of(memory),
                    static_cast<std::int32_t>(form.extents.size()),
                    type_of(form),
                    exported->shape.data(),
                    exported->strides.data(),
                    0};
  if constexpr (std::is_same_v<ManagedTensor, dlpack::ManagedVersioned>) managed.version = dlpack::kVersion;
  Ref capsule = checked(PyCapsule_New(&managed, name, &destroy_untaken<ManagedTensor>));
  static_cast<void>(exported.release());  // owned by the capsule, then by the consumer that takes the tensor
  return capsule;
}

}  // namespace

Ref make_dlpack_device(const memory::Buffer& memory) {
  dlpack::Device device = device_of(memory);
  return checked(Py_BuildValue("(ii)", device.type, device.ordinal));
}

Ref make_dlpack_capsule(const ArrayForm& form, const memory::Buffer& memory, Ref keeper,
                        const Arguments& arguments) {
  expect_no_other_device(memory, arguments[2]);
  if (arguments[3] != nullptr && PyObject_IsTrue(arguments[3]) != 0) {
    buffer_error("__dlpack__ does not copy this array (copy=True); copy it with weft.DeviceArray.copy_from");
  }
  const memory::StreamHandle stream = consumer_stream(memory, arguments[0]);
  Ref capsule =
      wants_versioned(arguments[1])
          ? make_capsule<dlpack::ManagedVersioned>(form, memory, std::move(keeper), dlpack::kVersionedName)
          : make_capsule<dlpack::Managed>(form, memory, std::move(keeper), dlpack::kName);
  make_stream_wait(memory, stream);
  return capsule;
}

}  // namespace weft::python
