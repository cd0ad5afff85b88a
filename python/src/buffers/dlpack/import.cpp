#include "buffers/dlpack/import.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dlpack_abi.h"
#include "buffers/arrays/dtype.h"
#include "buffers/arrays/element_types.h"
#include "buffers/streams/stream.h"
#include "engine/engine.h"
#include "memory/memory.h"

namespace weft::python {

namespace {

// The destructor of the capsule that owns a producer's tensor.
template <class ManagedTensor>
void destroy_taken(PyObject* keeper) {
  auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(keeper, nullptr));
  if (managed->deleter == nullptr) return;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  // The deleter may run Python code, which must not start with an exception set.
  PyErr_Fetch(&type, &value, &traceback);
  managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

template <class ManagedTensor>
Ref take(PyObject* capsule, const char* name, const char* used_name) {
  void* managed = PyCapsule_GetPointer(capsule, name);
  Ref keeper = checked(PyCapsule_New(managed, nullptr, &destroy_taken<ManagedTensor>));
  if (PyCapsule_SetName(capsule, used_name) != 0) {
    PyCapsule_SetDestructor(keeper.get(), nullptr);  // the producer's capsule still owns the tensor
    throw PythonError();
  }
  return keeper;
}

struct Taken {
  Ref keeper;
  const dlpack::Tensor* tensor;
  std::uint64_t flags;
};

// The keeper owns the tensor.
Taken versioned(const BufferRequest& request, const dlpack::ManagedVersioned& managed, Ref keeper) {
  if (managed.version.major != dlpack::kVersion.major) {
    unusable(request, base::format("that speaks DLPack {}.{}, and Weft knows version {}; use an older "
                                   "release of its library",
                                   managed.version.major, managed.version.minor, dlpack::kVersion.major));
  }
  return {std::move(keeper), &managed.tensor, managed.flags};
}

Taken take_tensor(const BufferRequest& request, PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, dlpack::kVersionedName) != 0) {
    auto* managed =
        static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule, dlpack::kVersionedName));
    Ref keeper = take<dlpack::ManagedVersioned>(capsule, dlpack::kVersionedName, dlpack::kUsedVersionedName);
    return versioned(request, *managed, std::move(keeper));
  }
  if (PyCapsule_IsValid(capsule, dlpack::kName) == 0) {
    unusable(request, base::format("whose __dlpack__ gives {}, not a tensor", readable(capsule)));
  }
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, dlpack::kName));
  return {take<dlpack::Managed>(capsule, dlpack::kName, dlpack::kUsedName), &managed->tensor, 0};
}

bool is_on_device(std::int32_t type) { return type == dlpack::kCuda || type == dlpack::kCudaManaged; }

dlpack::Device expect_known(const BufferRequest& request, dlpack::Device device) {
  if (is_on_device(device.type) || device.type == dlpack::kCpu || device.type == dlpack::kCudaHost) {
    return device;
  }
  unusable(request,
           base::format("on the DLPack device ({}, {}), which Weft does not know; move it to the host "
                        "or to a CUDA device",
                        device.type, device.ordinal));
}

dlpack::Device device_of(const BufferRequest& request) {
  Ref method = optional_attribute(request, "__dlpack_device__");
  Ref pair = method ? checked(PyObject_CallNoArgs(method.get())) : Ref();
  dlpack::Device device{};
  if (pair && PyTuple_Check(pair.get()) && PyTuple_GET_SIZE(pair.get()) == 2) {
    device.type = static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(pair.get(), 0)));
    device.ordinal = static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(pair.get(), 1)));
  }
  if (PyErr_Occurred() != nullptr) throw PythonError();
  return expect_known(request, device);
}

// Weft's own stream of the device. The producer makes its work visible on it.
memory::StreamHandle stream_for(const BufferRequest& request, dlpack::Device device) {
  Engine& engine = Engine::current();
  expect_cuda(request);
  return engine.own_stream({memory::Kind::kCuda, static_cast<std::int16_t>(device.ordinal)});
}

Ref call_dlpack(PyObject* method, memory::StreamHandle stream, bool versioned) {
  Ref keywords = checked(PyDict_New());
  if (stream != nullptr) {
    Ref number = checked(PyLong_FromVoidPtr(stream));
    checked(PyDict_SetItemString(keywords.get(), "stream", number.get()));
  }
  if (versioned) {
    Ref version = checked(Py_BuildValue("(II)", dlpack::kVersion.major, dlpack::kVersion.minor));
    checked(PyDict_SetItemString(keywords.get(), "max_version", version.get()));
  }
  Ref nothing = checked(PyTuple_New(0));
  return Ref::steal(PyObject_Call(method, nothing.get(), keywords.get()));
}

// A function of the producer has raised.
[[noreturn]] void refused(const BufferRequest& request, const char* function) {
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw PythonError();
  Ref error = PythonError::take();
  unusable(request, base::format("whose {} refuses ({}: {})", function, type_name_of(error.get()),
                                 readable(error.get())));
}

Ref capsule_of(const BufferRequest& request, PyObject* method, memory::StreamHandle stream) {
  Ref capsule = call_dlpack(method, stream, true);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Clear();  // the producer does not know max_version, which DLPack 1.0 added
    capsule = call_dlpack(method, stream, false);
  }
  if (!capsule) refused(request, "__dlpack__");
  return capsule;
}

// The numpy.dtype; null for element types that neither NumPy nor Weft has.
Ref dtype_from(const dlpack::DataType& type) {
  if (const ElementType* named = element_type_from_dlpack(type)) return dtype_of(*named);
  char letter = 0;
  switch (type.code) {
    case dlpack::kInt:
      letter = 'i';
      break;
    case dlpack::kUInt:
      letter = 'u';
      break;
    case dlpack::kFloat:
      letter = 'f';
      break;
    case dlpack::kComplex:
      letter = 'c';
      break;
    case dlpack::kBool:
      letter = 'b';
      break;
    default:
      return {};
  }
  if (type.lanes != 1) return {};
  try {
    return make_dtype(make_text(base::format("{}{}", letter, type.bits / 8)).get());
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
}

ArrayForm form_of(const BufferRequest& request, const dlpack::Tensor& tensor) {
  const std::size_t item_bits = std::size_t{tensor.type.bits} * tensor.type.lanes;
  if (item_bits % 8 != 0) {
    unusable(request, base::format("whose elements have {} bits; Weft moves whole bytes", item_bits));
  }
  const std::size_t item_bytes = item_bits / 8;
  ArrayForm form;
  form.extents.assign(tensor.shape, tensor.shape + tensor.num_dimensions);
  for (std::int64_t extent : form.extents) {
    if (extent < 0) unusable(request, "whose DLPack tensor has a negative extent");
  }
  if (!total_bytes(form.extents, item_bytes, form.size_bytes)) {
    unusable(request, "whose DLPack tensor has a shape of too many bytes");
  }
  if (tensor.strides != nullptr) {
    const std::vector<std::int64_t> strides(tensor.strides, tensor.strides + tensor.num_dimensions);
    if (!is_c_order(strides, 1, form.extents)) {
      not_contiguous(request, is_fortran_order(strides, 1, form.extents));
    }
  }
  form.dtype = dtype_from(tensor.type);
  return form;
}

void expect_access(const BufferRequest& request, std::uint64_t flags) {
  if (request.access != Access::kWrite) return;
  if ((flags & dlpack::kReadOnly) != 0) unusable(request, "that is read-only; pass a writable array");
  if ((flags & dlpack::kIsCopy) != 0) {
    unusable(request, "whose __dlpack__ gives a copy, in which what is received would be lost");
  }
}

// Takes the memory of a tensor; its work is queued on the stream.
void use(const BufferRequest& request, Taken taken, memory::StreamHandle stream, ObjectBuffer& found) {
  expect_access(request, taken.flags);
  const dlpack::Tensor& tensor = *taken.tensor;
  ArrayForm form = form_of(request, tensor);
  if (form.size_bytes > 0) {
    void* address = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    memory::Place place =
        is_on_device(tensor.device.type) ? cuda_place_of(request, address) : memory::Place{};
    found.memory = {address, form.size_bytes, place, place.is_host() ? nullptr : stream};
  }
  found.keeper = std::move(taken.keeper);
  if (request.form != nullptr) *request.form = std::move(form);
}

// The table of the object's type that this version can read; null if there is none.
const dlpack::ExchangeApi* exchange_api_of(PyObject* object) {
  static PyObject* const name = make_text(dlpack::kExchangeAttribute).release();
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (PyObject_HasAttr(type, name) == 0) return nullptr;  // raises nothing inside, unlike PyObject_GetAttr
  const Ref capsule = Ref::steal(PyObject_GetAttr(type, name));
  if (!capsule) PyErr_Clear();
  if (!capsule || PyCapsule_IsValid(capsule.get(), dlpack::kExchangeName) == 0) return nullptr;
  const auto* api =
      static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.get(), dlpack::kExchangeName));
  while (api != nullptr && api->version.major != dlpack::kVersion.major) api = api->previous;
  const bool is_usable =
      api != nullptr && api->managed_from_object != nullptr && api->current_work_stream != nullptr;
  return is_usable ? api : nullptr;
}

// Owns the tensor from then on.
Ref keep(dlpack::ManagedVersioned* managed) {
  Ref keeper = Ref::steal(PyCapsule_New(managed, nullptr, &destroy_taken<dlpack::ManagedVersioned>));
  if (!keeper && managed->deleter != nullptr) managed->deleter(managed);
  return checked(keeper.release());
}

// The stream of the producer's work, for which the copy of this tensor waits.
memory::StreamHandle work_stream(const BufferRequest& request, const dlpack::ExchangeApi& api,
                                 dlpack::Device device) {
  expect_cuda(request);
  void* stream = nullptr;
  if (api.current_work_stream(device.type, device.ordinal, &stream) != 0) {
    refused(request, "current_work_stream (DLPack)");
  }
  return stream == nullptr ? legacy_default_stream() : static_cast<memory::StreamHandle>(stream);
}

}  // namespace

bool has_exchange_table(PyObject* object) { return exchange_api_of(object) != nullptr; }

bool find_exchanged_memory(const BufferRequest& request, ObjectBuffer& found) {
  const dlpack::ExchangeApi* const api = exchange_api_of(request.object);
  if (api == nullptr) return false;
  dlpack::ManagedVersioned* managed = nullptr;
  if (api->managed_from_object(request.object, &managed) != 0) {
    refused(request, "managed_tensor_from_py_object_no_sync (DLPack)");
  }
  if (managed == nullptr)
    unusable(request, "whose managed_tensor_from_py_object_no_sync (DLPack) gives no tensor");
  Taken taken = versioned(request, *managed, keep(managed));
  // A complex tensor of PyTorch may be a conjugate of its memory, which its table does not say and its __dlpack__ refuses.
  if (taken.tensor->type.code == dlpack::kComplex) return false;
  const dlpack::Device device = expect_known(request, taken.tensor->device);
  memory::StreamHandle stream = is_on_device(device.type) ? work_stream(request, *api, device) : nullptr;
  use(request, std::move(taken), stream, found);
  return true;
}

bool is_on_dlpack_device(PyObject* object) {
  if (const dlpack::ExchangeApi* api = exchange_api_of(object); api != nullptr && api->tensor_from_object) {
    dlpack::Tensor tensor{};
    if (api->tensor_from_object(object, &tensor) == 0) return is_on_device(tensor.device.type);
    PyErr_Clear();
  }
  Ref pair = Ref::steal(PyObject_CallMethod(object, "__dlpack_device__", nullptr));
  if (!pair) PyErr_Clear();
  if (!pair || PyTuple_Check(pair.get()) == 0 || PyTuple_GET_SIZE(pair.get()) != 2) return false;
  long type = PyLong_AsLong(PyTuple_GET_ITEM(pair.get(), 0));
  PyErr_Clear();
  return is_on_device(static_cast<std::int32_t>(type));
}

bool find_dlpack_memory(const BufferRequest& request, ObjectBuffer& found) {
  Ref method = optional_attribute(request, "__dlpack__");
  if (!method) return false;
  dlpack::Device device = device_of(request);
  memory::StreamHandle stream = nullptr;
  Ref capsule;
  auto ask = [&] { capsule = capsule_of(request, method.get(), stream); };
  if (is_on_device(device.type)) {
    stream = stream_for(request, device);
    // PyTorch exports only tensors of the current device.
    memory::KindBackend* backend = Engine::current().runtime().memory().backend(memory::Kind::kCuda);
    base::check(backend->with_current(device.ordinal, ask));
  } else {
    ask();
  }
  use(request, take_tensor(request, capsule.get()), stream, found);
  return true;
}

}  // namespace weft::python
