#include "models/mpi/objects/error_codes.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>

#include "base/format.h"
#include "models/mpi/objects/error_table.h"

namespace weft::mpi {

namespace {

const ErrorClass* find_class(int error_class) {
  const auto* const found = std::find_if(std::begin(kErrorClasses), std::end(kErrorClasses),
                                         [&](const ErrorClass& row) { return row.number == error_class; });
  return found == std::end(kErrorClasses) ? nullptr : found;
}

Error predefined_error(int code) {
  return {
      MPI_ERR_ARG,
      base::format("{} is a predefined error class; only those that the program has added can change", code)};
}

Error unknown_error(int code) {
  return {MPI_ERR_ARG,
          base::format("{} is no error class or code; MPI_Add_error_class and MPI_Add_error_code make "
                       "new ones",
                       code)};
}

}  // namespace

std::string_view error_class_name(int error_class) {
  const ErrorClass* const row = find_class(error_class);
  return row == nullptr ? std::string_view() : row->name;
}

int ErrorCodes::add(int error_class) {
  const int code = ++*last_used_;
  added_[code] = {.error_class = error_class == 0 ? code : error_class, .text = {}};
  return code;
}

Error ErrorCodes::find_added(int code, std::map<int, Added>::iterator* found) {
  *found = added_.find(code);
  if (*found != added_.end()) return {};
  return find_class(code) != nullptr || code == MPI_ERR_LASTCODE ? predefined_error(code)
                                                                 : unknown_error(code);
}

Error ErrorCodes::add_class(int* error_class) {
  const std::lock_guard lock(mutex_);
  *error_class = add(0);
  return {};
}

Error ErrorCodes::add_code(int error_class, int* code) {
  const std::lock_guard lock(mutex_);
  const auto found = added_.find(error_class);
  const bool is_class =
      found == added_.end() ? find_class(error_class) != nullptr : found->second.error_class == error_class;
  if (!is_class || error_class == MPI_SUCCESS) {
    return {MPI_ERR_ARG, base::format("{} is no error class that can have codes", error_class)};
  }
  *code = add(error_class);
  return {};
}

Error ErrorCodes::set_string(int code, std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::map<int, Added>::iterator found;
  if (Error error = find_added(code, &found); !error.ok()) return error;
  if (text.size() >= MPI_MAX_ERROR_STRING) {
    return {MPI_ERR_ARG, base::format("a string of {} bytes is too long for an error; {} is the most",
                                      text.size(), MPI_MAX_ERROR_STRING - 1)};
  }
  found->second.text = text;
  return {};
}

Error ErrorCodes::remove_class(int error_class) {
  const std::lock_guard lock(mutex_);
  std::map<int, Added>::iterator found;
  if (Error error = find_added(error_class, &found); !error.ok()) return error;
  if (found->second.error_class != error_class) {
    return {MPI_ERR_ARG,
            base::format("{} is an error code, no class; call MPI_Remove_error_code", error_class)};
  }
  for (const auto& [code, added] : added_) {
    if (added.error_class != error_class || code == error_class) continue;
    return {MPI_ERR_OTHER, base::format("the error class {} still has the code {}; remove its codes first",
                                        error_class, code)};
  }
  if (!found->second.text.empty()) {
    return {MPI_ERR_OTHER,
            base::format("the error class {} still has a string; remove it first", error_class)};
  }
  added_.erase(found);
  return {};
}

Error ErrorCodes::remove_code(int code) {
  const std::lock_guard lock(mutex_);
  std::map<int, Added>::iterator found;
  if (Error error = find_added(code, &found); !error.ok()) return error;
  if (found->second.error_class == code) {
    return {MPI_ERR_ARG, base::format("{} is an error class, no code; call MPI_Remove_error_class", code)};
  }
  if (!found->second.text.empty()) {
    return {MPI_ERR_OTHER, base::format("the error code {} still has a string; remove it first", code)};
  }
  added_.erase(found);
  return {};
}

Error ErrorCodes::remove_string(int code) {
  const std::lock_guard lock(mutex_);
  std::map<int, Added>::iterator found;
  if (Error error = find_added(code, &found); !error.ok()) return error;
  if (found->second.text.empty()) {
    return {MPI_ERR_OTHER, base::format("the error class or code {} has no string", code)};
  }
  found->second.text.clear();
  return {};
}

Error ErrorCodes::class_of(int code, int* error_class) const {
  const std::lock_guard lock(mutex_);
  const auto found = added_.find(code);
  if (found != added_.end()) {
    *error_class = found->second.error_class;
    return {};
  }
  if (find_class(code) == nullptr) return unknown_error(code);
  *error_class = code;
  return {};
}

Error ErrorCodes::string_of(int code, std::string* text) const {
  const std::lock_guard lock(mutex_);
  const auto found = added_.find(code);
  if (found != added_.end()) {
    *text = found->second.text;
    return {};
  }
  const ErrorClass* const row = find_class(code);
  if (row == nullptr) return unknown_error(code);
  *text = row->meaning.empty() ? row->name : base::format("{}: {}", row->name, row->meaning);
  return {};
}

}  // namespace weft::mpi
