// The chare classes of a program: which entry methods each has and how PEs name them to one another.
//
// A class travels as "module:qualname" and its methods as their positions in sorted order, which is the same
// on every PE since all run the same script; a fingerprint of the names, checked when a collection is made,
// finds those that do not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/chare/chares.h"

#include "chare/classes/condition.h"
#include "chare/classes/signature.h"
#include "support/support.h"

namespace weft::python {

// Whether a function of Python cannot be called with one argument, the chare or the class.
bool needs_arguments(PyObject* function);

class ClassInfo {
 public:
  // The information on a subclass of weft.Chare. Throws base::Error with advice if other PEs cannot import the class.
  static const ClassInfo& of(PyObject* type);
  // By its key, importing its module if need be; throws base::Error when it is not there.
  static const ClassInfo& find(std::string_view key);

  PyObject* type() const { return type_.get(); }
  // "module:qualname".
  const std::string& key() const { return key_; }
  const std::string& name() const { return name_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  // How its chares take part in load balancing.
  chare::Balancing balancing() const { return balancing_; }
  // Whether its `__init__` is a coroutine function.
  bool has_coroutine_constructor() const { return has_coroutine_constructor_; }
  // Whether its chares are not ready when they are made: the class overrides created(), or its constructor is a coroutine.
  bool has_created() const { return has_created_; }
  // As the program sees it: an int, a tuple, or what the class's `index_type` makes of them.
  Ref index_object(const chare::Index& index) const;
  std::size_t num_methods() const { return methods_.size(); }
  // REQUIRES: method < num_methods(). An interned str.
  PyObject* method_name(std::size_t method) const { return methods_[method].get(); }
  // "Ring.token".
  const std::string& full_method_name(std::size_t method) const { return full_names_[method]; }
  // The name of the post entry method, an interned str; null for none.
  PyObject* post_entry(std::size_t method) const { return post_entries_[method].get(); }
  // How the program may call it.
  const Signature& signature(std::size_t method) const { return signatures_[method]; }
  const Signature& constructor() const { return constructor_; }
  // Null for none.
  const Condition* condition(std::size_t method) const { return conditions_[method].get(); }
  // -1 for none.
  int method(PyObject* name) const;
  // "token, work"
  std::string method_list() const;

 private:
  explicit ClassInfo(PyObject* type);
  void find_post_entries();
  void find_conditions();

  Ref type_;
  std::string key_;
  std::string name_;
  std::vector<Ref> methods_;
  std::vector<std::string> full_names_;                 // by method
  std::vector<Signature> signatures_;                   // by method
  std::vector<Ref> post_entries_;                       // by method
  std::vector<std::unique_ptr<Condition>> conditions_;  // by method
  Ref numbers_;                                         // dict from name to position
  std::uint64_t fingerprint_;
  chare::Balancing balancing_;
  Signature constructor_;
  bool has_coroutine_constructor_;
  bool has_created_;
  Ref index_type_;  // null for none
};

// weft.Chare, once, when the extension is initialised: the base of all chare classes.
void set_chare_type(PyTypeObject* type);
PyTypeObject* chare_type();
// The public names of a type of proxies, once: no class may use them for entry methods, which `proxy.name` would hide.
void reserve_names_of(PyTypeObject* proxy_type);
// Throws base::Error if a class derived from weft.Chare uses a name of the runtime's for something of its own.
void expect_free_names(PyObject* type);

}  // namespace weft::python
