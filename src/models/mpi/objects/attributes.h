// Attributes: values that a program keeps on communicators, datatypes and windows, under keys that it makes.
//
// A key has two functions of the program: one is called when the object is duplicated, one when the value goes. An attribute
// holds its key. A key that the program has freed stays a key for every call until its last attribute is gone, as the standard says
// (MPI 5.0, MPI_COMM_FREE_KEYVAL).
// Threads: the PE's; the functions may use attributes themselves.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/counted.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/virtual_ranks/object_kind.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

class AttributeKey final : public Counted {
 public:
  using Function = void (*)();
  // The predefined functions of mpi.h: no function, and MPI_COMM_DUP_FN with its kin.
  enum Predefined : std::uintptr_t { kNone = 0, kDuplicate = 1 };

  // `copy` and `remove` take handles of objects of that kind.
  AttributeKey(ObjectKind kind, Function copy, Function remove, void* extra_state)
      : kind_(kind), copy_(copy), remove_(remove), extra_state_(extra_state) {}

  ObjectKind kind() const { return kind_; }
  Function copy_function() const { return copy_; }
  Function remove_function() const { return remove_; }
  void* extra_state() const { return extra_state_; }

  // Whether a duplicate of `object` gets the attribute, and with which value.
  template <class Handle>
  int call_copy(Handle object, int number, void* value, void** copied, bool* wanted) const {
    const auto predefined = reinterpret_cast<std::uintptr_t>(copy_);
    *copied = value;
    *wanted = predefined == kDuplicate;
    if (predefined == kNone || predefined == kDuplicate) return MPI_SUCCESS;
    int flag = 0;
    const ProgramRuns program;
    const int code = reinterpret_cast<int (*)(Handle, int, void*, void*, void*, int*)>(copy_)(
        object, number, extra_state_, value, static_cast<void*>(copied), &flag);
    *wanted = flag != 0;
    return code;
  }
  template <class Handle>
  int call_remove(Handle object, int number, void* value) const {
    if (remove_ == nullptr) return MPI_SUCCESS;
    const ProgramRuns program;
    return reinterpret_cast<int (*)(Handle, int, void*, void*)>(remove_)(object, number, value, extra_state_);
  }

 private:
  ObjectKind kind_;
  Function copy_;
  Function remove_;
  void* extra_state_;
};

// The keys of one rank that the program has made, and has not freed or still uses. Their numbers are not given again.
class AttributeKeys {
 public:
  struct KeyEntry {
    Ref<AttributeKey> key;
    bool is_freed = false;

    // The program has freed the key, and nothing but this entry holds it.
    bool is_over() const { return is_freed && key->num_references() == 1; }
  };

  int add(Ref<AttributeKey> key);
  // MPI_ERR_KEYVAL: there is no such key for objects of that kind.
  Error find(int number, ObjectKind kind, Ref<AttributeKey>* key) const;
  // The program frees the key. For one that it has freed before, and that is in use, this has no effect.
  Error free(int number, ObjectKind kind);

  // --- Of a rank that moves
  const std::map<int, KeyEntry>& all() const { return keys_; }
  int next_number() const { return next_; }
  void replace(std::map<int, KeyEntry> keys, int next) {
    keys_ = std::move(keys);
    next_ = next;
  }

 private:
  static constexpr int kFirst = 1024;  // above the predefined keys of mpi.h

  std::map<int, KeyEntry> keys_;
  int next_ = kFirst;
};

// The attributes of one object. `Handle` is the handle of that object.
class Attributes {
 public:
  // Whether there is one; `value` is its value then.
  bool find(int number, void** value) const;

  // --- Of a rank that moves. No function of a key is called.
  // Calls visit(AttributeKey&, int number, void* value) for each, in the order of setting.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const AttributeEntry& entry : entries_) visit(*entry.key, entry.number, entry.value);
  }
  void add(Ref<AttributeKey> key, int number, void* value) {
    entries_.push_back({std::move(key), number, value});
  }

  // Replaces the value, after the function of the key for the old one.
  template <class Handle>
  Error set(Handle object, int number, Ref<AttributeKey> key, void* value) {
    while (entry_to_remove(number) != nullptr) {  // another thread may set one while the function runs
      if (Error error = remove(object, number); !error.ok()) return error;
    }
    entries_.push_back({std::move(key), number, value});
    return {};
  }
  // Calls the function of the key; if that fails, the attribute stays. No attribute with that number is no error. While the function runs,
  // it and other threads may change the attributes: it is called once for each value, and find() finds the value meanwhile.
  template <class Handle>
  Error remove(Handle object, int number) {
    AttributeEntry* const entry = entry_to_remove(number);
    if (entry == nullptr) return {};
    entry->is_going = true;
    const AttributeEntry going = *entry;
    const int code = going.key->call_remove(object, number, going.value);
    end_removal(going, code == MPI_SUCCESS);
    return code == MPI_SUCCESS ? Error() : function_error("delete", number, code);
  }
  // The last one that was set goes first. Stops at the first function that fails.
  template <class Handle>
  Error remove_all(Handle object) {
    while (const AttributeEntry* const entry = last_to_remove()) {
      if (Error error = remove(object, entry->number); !error.ok()) return error;
    }
    return {};
  }
  // Gives `to`, the attributes of a duplicate of `object`, what the functions of the keys say.
  template <class Handle>
  Error copy_to(Attributes& to, Handle object) const {
    const std::vector<AttributeEntry> entries = entries_;
    for (const AttributeEntry& entry : entries) {
      if (entry.is_going) continue;
      void* copied = nullptr;
      bool wanted = false;
      const int code = entry.key->call_copy(object, entry.number, entry.value, &copied, &wanted);
      if (code != MPI_SUCCESS) return function_error("copy", entry.number, code);
      if (wanted) to.entries_.push_back({entry.key, entry.number, copied});
    }
    return {};
  }

 private:
  struct AttributeEntry {
    Ref<AttributeKey> key;
    int number = 0;
    void* value = nullptr;
    bool is_going = false;  // its function for the end of the value runs

    bool operator==(const AttributeEntry& other) const {
      return number == other.number && value == other.value && is_going == other.is_going;
    }
  };

  // Null if there is none that is not going.
  AttributeEntry* entry_to_remove(int number);
  const AttributeEntry* last_to_remove() const;
  void end_removal(const AttributeEntry& going, bool has_gone);
  static Error function_error(const char* which, int number, int code);

  std::vector<AttributeEntry> entries_;  // in the order of setting
};

}  // namespace weft::mpi
