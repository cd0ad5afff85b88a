// The structures of DLPack 1.1, of DLPack before 1.0, which has no version number, and the table of C functions of
// DLPack 1.3, with the memory layout of its specification: include/dlpack/dlpack.h of github.com/dmlc/dlpack. Minor
// versions add codes, and members behind those that are here.
#pragma once

#include <cstdint>

namespace weft::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  // From version 1.1 on.
  kFloat8E3m4 = 7,
  kFloat8E4m3 = 8,
  kFloat8E4m3b11fnuz = 9,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
  kFloat8E8m0fnu = 14,
  kFloat4E2m1fn = 17,
};

struct Device {
  std::int32_t type;
  std::int32_t ordinal;
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t num_dimensions;
  DataType type;
  std::int64_t* shape;    // may be null if there are no dimensions
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};

// The form before version 1.0. Its capsule is named "dltensor", and "used_dltensor" after a consumer took the
// tensor.
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);  // may be null
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

enum Flag : std::uint64_t { kReadOnly = 1, kIsCopy = 2 };

// The form from version 1.0 on. Its capsule is named "dltensor_versioned", and "used_dltensor_versioned" after a
// consumer took the tensor. If the major version differs, only the first three members may be accessed.
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);  // may be null
  std::uint64_t flags;
  Tensor tensor;
};

// C functions for the arrays of a type, which has the table in its attribute of that name, as a capsule. The producer
// keeps it for the life of the process. Each function returns 0, or -1 with a Python exception set.
struct ExchangeApi {
  Version version;
  const ExchangeApi* previous;  // a table of an older major version; may be null
  int (*allocate)(Tensor*, ManagedVersioned**, void*, void (*)(void*, const char*, const char*));
  // The caller owns the tensor. No stream is waited for.
  int (*managed_from_object)(void* object, ManagedVersioned** tensor);
  int (*object_from_managed)(ManagedVersioned* tensor, void** object);
  // May be null. The tensor is valid until the caller returns control to Python.
  int (*tensor_from_object)(void* object, Tensor* tensor);
  // The stream on which the producer queues its work now; null: the default stream.
  int (*current_work_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};
inline constexpr const char* kExchangeAttribute = "__dlpack_c_exchange_api__";
inline constexpr const char* kExchangeName = "dlpack_exchange_api";

inline constexpr Version kVersion{1, 1};

inline constexpr const char* kName = "dltensor";
inline constexpr const char* kUsedName = "used_dltensor";
inline constexpr const char* kVersionedName = "dltensor_versioned";
inline constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

}  // namespace weft::python::dlpack
