// Info objects.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/objects.h"

using namespace weft::mpi;

namespace {

MPI_Info make_info(Info::Pairs pairs) {
  return make_handle<MPI_Info>(Ref<Info>::adopt(new Info(std::move(pairs))));
}

// One that the program may change.
Error find_own(MPI_Info handle, Info** info) {
  if (handle == MPI_INFO_ENV)
    return {MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed or freed; duplicate it first"};
  return find_object(handle, info);
}

// The value of a key, or null. `body` gets it when all arguments are right.
template <class Body>
int with_value(const char* name, MPI_Info handle, const char* key, const void* result, int* flag,
               const Body& body) {
  return guarded(name, kNoObject, [&]() -> Error {
    Info* info = nullptr;
    if (Error error = find_object(handle, &info); !error.ok()) return error;
    if (Error error = check_info_key(key); !error.ok()) return error;
    if (Error error = require({{result, "value"}, {flag, "flag"}}); !error.ok()) return error;
    const std::string* const value = info->find(key);
    *flag = value == nullptr ? 0 : 1;
    return value == nullptr ? Error() : body(*value);
  });
}

}  // namespace

int MPI_Info_create(MPI_Info* info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{info, "info"}}); !error.ok()) return error;
    *info = make_info({});
    return {};
  });
}

int MPI_Info_create_env(int argc, char* argv[], MPI_Info* info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{info, "info"}}); !error.ok()) return error;
    *info = make_info(environment_pairs(argc, argv));
    return {};
  });
}

int MPI_Info_dup(MPI_Info info, MPI_Info* newinfo) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{newinfo, "newinfo"}}); !error.ok()) return error;
    Info* source = nullptr;
    if (Error error = find_object(info, &source); !error.ok()) return error;
    *newinfo = make_info(source->pairs());
    return {};
  });
}

int MPI_Info_free(MPI_Info* info) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{info, "info"}}); !error.ok()) return error;
    Info* object = nullptr;
    if (Error error = find_own(*info, &object); !error.ok()) return error;
    object->release();
    *info = MPI_INFO_NULL;
    return {};
  });
}

int MPI_Info_set(MPI_Info info, const char* key, const char* value) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Info* object = nullptr;
    if (Error error = find_own(info, &object); !error.ok()) return error;
    return object->set(key, value);
  });
}

int MPI_Info_delete(MPI_Info info, const char* key) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Info* object = nullptr;
    if (Error error = find_own(info, &object); !error.ok()) return error;
    return object->remove(key);
  });
}

int MPI_Info_get_nkeys(MPI_Info info, int* nkeys) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{nkeys, "nkeys"}}); !error.ok()) return error;
    Info* object = nullptr;
    if (Error error = find_object(info, &object); !error.ok()) return error;
    *nkeys = static_cast<int>(object->pairs().size());
    return {};
  });
}

int MPI_Info_get_nthkey(MPI_Info info, int n, char* key) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{key, "key"}}); !error.ok()) return error;
    Info* object = nullptr;
    if (Error error = find_object(info, &object); !error.ok()) return error;
    const std::size_t num_keys = object->pairs().size();
    if (n < 0 || static_cast<std::size_t>(n) >= num_keys) {
      return {MPI_ERR_ARG,
              weft::base::format("the info object has {} keys; there is no key {}", num_keys, n)};
    }
    copy_string(object->pairs()[static_cast<std::size_t>(n)].first, MPI_MAX_INFO_KEY, key);
    return {};
  });
}

int MPI_Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) {
  return with_value(__func__, info, key, buflen, flag, [&](const std::string& text) -> Error {
    const int size = *buflen;
    if (size < 0) return {MPI_ERR_ARG, weft::base::format("the length {} of the buffer is negative", size)};
    if (size > 0)
      if (Error error = require({{value, "value"}}); !error.ok()) return error;
    copy_string(text, static_cast<std::size_t>(size), value);
    *buflen = static_cast<int>(text.size()) + 1;  // with the terminating zero
    return {};
  });
}

int MPI_Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) {
  return with_value(__func__, info, key, value, flag, [&](const std::string& text) -> Error {
    if (valuelen < 0)
      return {MPI_ERR_ARG, weft::base::format("the length {} of the value is negative", valuelen)};
    copy_string(text, static_cast<std::size_t>(valuelen) + 1,
                value);  // the length does not count the terminating zero
    return {};
  });
}

int MPI_Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) {
  return with_value(__func__, info, key, valuelen, flag, [&](const std::string& text) -> Error {
    *valuelen = static_cast<int>(text.size());
    return {};
  });
}
