// Attributes of communicators, datatypes and windows, and their keys.
#include "objects/attributes.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/type_handles.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/rank.h"
#include "models/mpi/window/window.h"

using namespace weft::mpi;

namespace {

// The address of a predefined attribute of communicators; null for other keys.
const int* predefined_attribute(int key) {
  const Rank& rank = this_rank();
  PredefinedAttributes& values = rank.predefined_attributes;
  switch (key) {
    case MPI_TAG_UB:
      return &values.tag_upper_bound;
    case MPI_IO:
      return &values.io;
    case MPI_HOST:
      return &values.host;
    case MPI_WTIME_IS_GLOBAL:
      return &values.wtime_is_global;
    case MPI_APPNUM:
      return &values.app_number;
    case MPI_UNIVERSE_SIZE:
      return &values.universe_size;
    case MPI_LASTUSEDCODE:
      return &values.last_used_code;
    case MPIX_FT:
      return &values.survives_losses;
    default:
      return nullptr;
  }
}

bool has_predefined(ObjectKind kind, int key) {
  if (kind == ObjectKind::kWindow) return Window::has_attribute(key);
  return kind == ObjectKind::kCommunicator && predefined_attribute(key) != nullptr;
}

// The value of a predefined attribute that the object has. That of MPI_WIN_BASE may be null.
const void* predefined_value(Object& object, int key) {
  if (object.kind() == ObjectKind::kWindow) return static_cast<Window&>(object).attribute(key);
  return predefined_attribute(key);
}

void store_pointer(const void* value, void* result) {
  std::memcpy(result, static_cast<const void*>(&value), sizeof(value));
}

// Datatypes have no error handler of their own.
template <class Handle>
auto scope_of(Handle object) {
  if constexpr (std::is_same_v<Handle, MPI_Datatype>) {
    return kNoObject;
  } else {
    return object;
  }
}

// Predefined functions are numbers, see AttributeKey::Predefined.
Error check_functions(const void* copy, const void* remove) {
  const bool is_copy = is_address(copy) || reinterpret_cast<std::uintptr_t>(copy) <= AttributeKey::kDuplicate;
  if (is_copy && !is_sentinel(remove)) return {};
  return {MPI_ERR_ARG,
          "a function of the key is no address; give a function, or one of MPI_COMM_NULL_COPY_FN, "
          "MPI_COMM_DUP_FN and MPI_COMM_NULL_DELETE_FN"};
}

template <class Copy, class Remove>
int create_key(const char* name, ObjectKind kind, Copy* copy, Remove* remove, int* number,
               void* extra_state) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error = require({{number, "keyval"}}); !error.ok()) return error;
    if (Error error =
            check_functions(reinterpret_cast<const void*>(copy), reinterpret_cast<const void*>(remove));
        !error.ok())
      return error;
    auto* const key = new AttributeKey(kind, reinterpret_cast<AttributeKey::Function>(copy),
                                       reinterpret_cast<AttributeKey::Function>(remove), extra_state);
    *number = this_rank().attribute_keys.add(Ref<AttributeKey>::adopt(key));
    return {};
  });
}

int free_key(const char* name, ObjectKind kind, int* number) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error = require({{number, "keyval"}}); !error.ok()) return error;
    if (Error error = this_rank().attribute_keys.free(*number, kind); !error.ok()) return error;
    *number = MPI_KEYVAL_INVALID;
    return {};
  });
}

template <class Handle>
int set_attribute(const char* name, Handle object, int number, void* value) {
  return guarded(name, scope_of(object), [&]() -> Error {
    Object* target = nullptr;
    if (Error error = find_attributed(object, &target); !error.ok()) return error;
    Ref<AttributeKey> key;
    if (Error error = this_rank().attribute_keys.find(number, target->kind(), &key); !error.ok())
      return error;
    return target->attributes().set(object, number, std::move(key), value);
  });
}

template <class Handle>
int get_attribute(const char* name, Handle object, int number, void* result, int* flag) {
  return guarded(name, scope_of(object), [&]() -> Error {
    if (Error error = require({{result, "attribute_val"}, {flag, "flag"}}); !error.ok()) return error;
    Object* target = nullptr;
    if (Error error = find_attributed(object, &target); !error.ok()) return error;
    if (has_predefined(target->kind(), number)) {
      store_pointer(predefined_value(*target, number), result);
      *flag = 1;
      return {};
    }
    Ref<AttributeKey> key;
    if (Error error = this_rank().attribute_keys.find(number, target->kind(), &key); !error.ok())
      return error;
    void* value = nullptr;
    *flag = target->has_attributes() && target->attributes().find(number, &value) ? 1 : 0;
    if (*flag != 0) store_pointer(value, result);
    return {};
  });
}

template <class Handle>
int delete_attribute(const char* name, Handle object, int number) {
  return guarded(name, scope_of(object), [&]() -> Error {
    Object* target = nullptr;
    if (Error error = find_attributed(object, &target); !error.ok()) return error;
    Ref<AttributeKey> key;
    if (Error error = this_rank().attribute_keys.find(number, target->kind(), &key); !error.ok())
      return error;
    void* value = nullptr;
    if (!target->has_attributes() || !target->attributes().find(number, &value)) {
      return {MPI_ERR_ARG, weft::base::format("the object has no attribute under key {}", number)};
    }
    return target->attributes().remove(object, number);
  });
}

}  // namespace

namespace weft::mpi {

Error find_attributed(MPI_Comm comm, Object** object) {
  *object = error_scope(comm);
  return *object != nullptr ? Error() : Error(MPI_ERR_COMM, "the handle is no communicator");
}

Error find_attributed(MPI_Datatype datatype, Object** object) {
  Datatype* type = nullptr;
  if (Error error = find_type(datatype, &type); !error.ok()) return error;
  *object = type;
  return {};
}

Error find_attributed(MPI_Win win, Object** object) {
  *object = error_scope(win);
  return *object != nullptr ? Error() : Error(MPI_ERR_WIN, "the handle is no window");
}

}  // namespace weft::mpi

int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                           MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval,
                           void* extra_state) {
  return create_key(__func__, ObjectKind::kCommunicator, comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval,
                    extra_state);
}
int MPI_Comm_free_keyval(int* comm_keyval) {
  return free_key(__func__, ObjectKind::kCommunicator, comm_keyval);
}
int MPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val) {
  return set_attribute(__func__, comm, comm_keyval, attribute_val);
}
int MPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag) {
  return get_attribute(__func__, comm, comm_keyval, attribute_val, flag);
}
int MPI_Comm_delete_attr(MPI_Comm comm, int comm_keyval) {
  return delete_attribute(__func__, comm, comm_keyval);
}

int MPI_Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                           MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval,
                           void* extra_state) {
  return create_key(__func__, ObjectKind::kDatatype, type_copy_attr_fn, type_delete_attr_fn, type_keyval,
                    extra_state);
}
int MPI_Type_free_keyval(int* type_keyval) { return free_key(__func__, ObjectKind::kDatatype, type_keyval); }
int MPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val) {
  return set_attribute(__func__, datatype, type_keyval, attribute_val);
}
int MPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag) {
  return get_attribute(__func__, datatype, type_keyval, attribute_val, flag);
}
int MPI_Type_delete_attr(MPI_Datatype datatype, int type_keyval) {
  return delete_attribute(__func__, datatype, type_keyval);
}

int MPI_Win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn,
                          MPI_Win_delete_attr_function* win_delete_attr_fn, int* win_keyval,
                          void* extra_state) {
  return create_key(__func__, ObjectKind::kWindow, win_copy_attr_fn, win_delete_attr_fn, win_keyval,
                    extra_state);
}
int MPI_Win_free_keyval(int* win_keyval) { return free_key(__func__, ObjectKind::kWindow, win_keyval); }
int MPI_Win_set_attr(MPI_Win win, int win_keyval, void* attribute_val) {
  return set_attribute(__func__, win, win_keyval, attribute_val);
}
int MPI_Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
  return get_attribute(__func__, win, win_keyval, attribute_val, flag);
}
int MPI_Win_delete_attr(MPI_Win win, int win_keyval) { return delete_attribute(__func__, win, win_keyval); }

// The deprecated names.
int MPI_Keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval,
                      void* extra_state) {
  return MPI_Comm_create_keyval(copy_fn, delete_fn, keyval, extra_state);
}
int MPI_Keyval_free(int* keyval) { return MPI_Comm_free_keyval(keyval); }
int MPI_Attr_put(MPI_Comm comm, int keyval, void* attribute_val) {
  return MPI_Comm_set_attr(comm, keyval, attribute_val);
}
int MPI_Attr_get(MPI_Comm comm, int keyval, void* attribute_val, int* flag) {
  return MPI_Comm_get_attr(comm, keyval, attribute_val, flag);
}
int MPI_Attr_delete(MPI_Comm comm, int keyval) { return MPI_Comm_delete_attr(comm, keyval); }
