#include "chare/classes/classes.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "chare/classes/indices.h"
#include "support/importable.h"

namespace weft::python {

namespace {

// "co_argcount" or "co_flags" of a Python function.
long code_number(PyObject* function, const char* name) {
  return PyLong_AsLong(attribute(attribute(function, "__code__").get(), name).get());
}

}  // namespace

bool needs_arguments(PyObject* function) {
  if (PyFunction_Check(function) == 0) return false;
  const Ref defaults = attribute(function, "__defaults__");
  const Py_ssize_t num_defaults = PyTuple_Check(defaults.get()) ? PyTuple_GET_SIZE(defaults.get()) : 0;
  return code_number(function, "co_argcount") - num_defaults > 1;
}

namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Live as long as the process: classes do.
struct Table {
  std::unordered_map<PyObject*, std::unique_ptr<ClassInfo>> by_type;
  std::unordered_map<std::string, const ClassInfo*, TextHash, std::equal_to<>> by_key;
  std::vector<std::unique_ptr<ClassInfo>> of_earlier_jobs;  // replaced in by_type; proxies refer to them
};
Table& table() {
  static auto* classes = new Table;
  return *classes;
}

[[noreturn]] void invalid(std::string message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

PyTypeObject* base_type = nullptr;
struct ProxyName {
  PyObject* name;  // a str, kept for ever
  PyTypeObject* type;
};
std::vector<ProxyName> proxy_names;

constexpr const char* kPostMark = "__weft_post_entry__";  // set by weft.post_entry

Ref interned(PyObject* name) {
  PyObject* made = Py_NewRef(name);
  PyUnicode_InternInPlace(&made);
  return Ref::steal(made);
}

bool is_callable_by_proxies(PyObject* attribute) {
  return PyCallable_Check(attribute) != 0 && PyObject_HasAttrString(attribute, kPostMark) == 0;
}

std::vector<Ref> entry_method_names(PyObject* type) {
  Ref names = checked(PyObject_Dir(type));
  std::vector<Ref> found;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* name = PyList_GET_ITEM(names.get(), i);
    if (text_of(name).starts_with('_') || PyObject_HasAttr(reinterpret_cast<PyObject*>(base_type), name) != 0)
      continue;
    Ref method = checked(PyObject_GetAttr(type, name));
    if (is_callable_by_proxies(method.get())) found.push_back(interned(name));
  }
  std::sort(found.begin(), found.end(),
            [](const Ref& a, const Ref& b) { return text_of(a.get()) < text_of(b.get()); });
  return found;
}

bool overrides(PyObject* type, const char* method) {
  return attribute(type, method).get() != attribute(reinterpret_cast<PyObject*>(base_type), method).get();
}

// Whether a function cannot be called with the chare alone, or says that it takes any arguments.
bool takes_arguments(PyObject* function) {
  if (PyFunction_Check(function) == 0) return false;
  return (code_number(function, "co_flags") & CO_VARARGS) != 0 || needs_arguments(function);
}

// The class need not be an abc.ABC, whose constructor would refuse the same methods.
void expect_concrete(PyObject* type) {
  const Ref names = checked(PyObject_Dir(type));
  std::string list;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* const name = PyList_GET_ITEM(names.get(), i);
    const Ref member = Ref::steal(PyObject_GetAttr(type, name));
    const Ref mark =
        Ref::steal(member ? PyObject_GetAttrString(member.get(), "__isabstractmethod__") : nullptr);
    if (!mark) PyErr_Clear();
    if (mark.get() != Py_True) continue;
    if (!list.empty()) list += ", ";
    list += readable(name);
  }
  if (list.empty()) return;
  invalid(base::format(
      "the class {} is abstract, so it has no chares: nothing defines {}; make chares of a class that does",
      readable(attribute(type, "__qualname__").get()), list));
}

}  // namespace

void set_chare_type(PyTypeObject* type) { base_type = type; }
PyTypeObject* chare_type() { return base_type; }

void reserve_names_of(PyTypeObject* proxy_type) {
  const Ref names = checked(PyObject_Dir(reinterpret_cast<PyObject*>(proxy_type)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* const name = PyList_GET_ITEM(names.get(), i);
    if (!text_of(name).starts_with('_')) proxy_names.push_back({Py_NewRef(name), proxy_type});
  }
}

namespace {

void expect_no_names_of_proxies(PyObject* type) {
  for (const auto& [name, proxy_type] : proxy_names) {
    // expect_free_names() checks the names that weft.Chare has too.
    if (PyObject_HasAttr(reinterpret_cast<PyObject*>(base_type), name) != 0) continue;
    const Ref own = Ref::steal(PyObject_GetAttr(type, name));
    if (!own) {
      PyErr_Clear();
    } else if (is_callable_by_proxies(own.get())) {
      invalid(base::format(
          "the class {} defines a method {}, but `proxy.{}` is the proxy's own (help({}.{})); choose another "
          "name for the entry method",
          readable(attribute(type, "__qualname__").get()), text_of(name), text_of(name),
          name_of_type(reinterpret_cast<PyObject*>(proxy_type)), text_of(name)));
    }
  }
}

}  // namespace

void expect_free_names(PyObject* type) {
  expect_no_names_of_proxies(type);
  auto* const base = reinterpret_cast<PyObject*>(base_type);
  const Ref names = checked(PyObject_Dir(base));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* const name = PyList_GET_ITEM(names.get(), i);
    const std::string_view text = text_of(name);
    // Settings of the class.
    if (text.starts_with('_') || text == "balance_periodically" || text == "index_type") continue;
    const Ref own = checked(PyObject_GetAttr(type, name));
    if (own.get() == checked(PyObject_GetAttr(base, name)).get()) continue;
    const std::string class_name = readable(attribute(type, "__qualname__").get());
    if (text != "created" && text != "migrated" && text != "resume_from_sync") {
      invalid(base::format(
          "the class {} defines {}, which is the runtime's name for something that each chare has "
          "(help(weft.Chare.{})); choose another name",
          class_name, text, text));
    }
    if (takes_arguments(own.get())) {
      invalid(base::format(
          "the class {} defines {} with parameters, but this is the name of a method that the runtime calls "
          "without arguments (help(weft.Chare.{})); choose another name for an entry method",
          class_name, text, text));
    }
  }
}

// Puts each post entry method of a class beside its entry method.
void ClassInfo::find_post_entries() {
  post_entries_.resize(methods_.size());
  Ref names = checked(PyObject_Dir(type_.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* name = PyList_GET_ITEM(names.get(), i);
    if (text_of(name).starts_with("__")) continue;
    Ref function = checked(PyObject_GetAttr(type_.get(), name));
    Ref entry = Ref::steal(PyObject_GetAttrString(function.get(), kPostMark));
    if (!entry) {
      PyErr_Clear();
      continue;
    }
    int which = method(entry.get());
    if (which < 0) {
      invalid(
          base::format("{}.{} is the post entry method of {}, which {} does not have; its entry methods: {}",
                       name_, text_of(name), readable(entry.get()), name_, method_list()));
    }
    Ref& post = post_entries_[static_cast<std::size_t>(which)];
    if (post) {
      invalid(base::format("{}.{} has two post entry methods, {} and {}", name_, readable(entry.get()),
                           readable(post.get()), text_of(name)));
    }
    post = interned(name);
  }
}

// Puts the condition of each entry method beside it.
void ClassInfo::find_conditions() {
  conditions_.resize(methods_.size());
  Ref names = checked(PyObject_Dir(type_.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    PyObject* name = PyList_GET_ITEM(names.get(), i);
    const Ref function = Ref::steal(PyObject_GetAttr(type_.get(), name));
    if (!function) PyErr_Clear();  // an attribute of type itself
    std::unique_ptr<Condition> condition = function ? Condition::of(function.get()) : nullptr;
    if (condition == nullptr) continue;
    const int which = method(name);
    if (which < 0) {
      invalid(base::format("{}.{} has a condition (weft.when) and is no entry method; its entry methods: {}",
                           name_, text_of(name), method_list()));
    }
    if (PyObject* const post = post_entry(static_cast<std::size_t>(which))) {
      invalid(base::format(
          "{}.{} has a condition (weft.when) and a post entry method, {}: a call that waits would "
          "keep the memory that was chosen for it; take the arrays without a post entry method",
          name_, text_of(name), text_of(post)));
    }
    conditions_[static_cast<std::size_t>(which)] = std::move(condition);
  }
}

namespace {

chare::Balancing balancing_of(PyObject* type, const std::string& name) {
  const bool reaches_sync_points = overrides(type, "resume_from_sync");
  const int is_periodic = PyObject_IsTrue(attribute(type, "balance_periodically").get());
  if (is_periodic < 0) throw PythonError();
  if (is_periodic == 0) return reaches_sync_points ? chare::Balancing::kAtSync : chare::Balancing::kNone;
  if (reaches_sync_points) {
    invalid(base::format(
        "{} sets balance_periodically and overrides resume_from_sync: a class takes part in load "
        "balancing periodically or at sync points; remove one of them",
        name));
  }
  return chare::Balancing::kPeriodic;
}

bool is_coroutine_function(PyObject* object) {
  if (PyFunction_Check(object) == 0) return false;
  return (code_number(object, "co_flags") & CO_COROUTINE) != 0;
}

Ref index_type_of(PyObject* type, const std::string& name) {
  Ref index_type = attribute(type, "index_type");
  if (index_type.get() == Py_None) return {};
  const bool is_tuple =
      PyType_Check(index_type.get()) != 0 &&
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(index_type.get()), &PyTuple_Type) != 0;
  if (!is_tuple && PyObject_HasAttrString(index_type.get(), "__index__") == 0) {
    invalid(base::format(
        "{}.index_type is {}: it must be a tuple class such as a typing.NamedTuple of whole numbers, "
        "or, for one dimension, a class with __index__",
        name, readable(index_type.get())));
  }
  return index_type;
}

}  // namespace

ClassInfo::ClassInfo(PyObject* type)
    : type_(Ref::borrow(type)),
      key_(importable_key(type, "the chare class")),
      name_(readable(attribute(type, "__qualname__").get())),
      methods_(entry_method_names(type)),
      numbers_(checked(PyDict_New())),
      fingerprint_(runtime::fingerprint(key_)),
      balancing_(balancing_of(type, name_)),
      constructor_(Signature::of(type, make_text("__init__").get())),
      has_coroutine_constructor_(is_coroutine_function(attribute(type, "__init__").get())),
      has_created_(has_coroutine_constructor_ || overrides(type, "created")),
      index_type_(index_type_of(type, name_)) {
  if (methods_.size() > 0xffff) invalid(base::format("{} has more than 65535 methods", name_));
  for (std::size_t i = 0; i < methods_.size(); ++i) {
    Ref number = checked(PyLong_FromSize_t(i));
    checked(PyDict_SetItem(numbers_.get(), methods_[i].get(), number.get()));
    full_names_.push_back(base::format("{}.{}", name_, text_of(methods_[i].get())));
    signatures_.push_back(Signature::of(type, methods_[i].get()));
    fingerprint_ = runtime::fingerprint(text_of(methods_[i].get()), runtime::fingerprint(",", fingerprint_));
  }
  find_post_entries();
  find_conditions();
}

const ClassInfo& ClassInfo::of(PyObject* type) {
  auto& known = table().by_type;
  if (auto found = known.find(type); found != known.end()) {
    if (definitions_by_value() == nullptr) return *found->second;
    // The PEs of this job may not have the class that those of an earlier one had or got.
    if (importable_key(type, "the chare class") == found->second->key()) return *found->second;
    table().of_earlier_jobs.push_back(std::move(found->second));
    known.erase(found);
  }
  if (!PyType_Check(type) || PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), chare_type()) == 0) {
    invalid(
        base::format("a collection is made of a class derived from weft.Chare, not of {}",
                     PyType_Check(type) ? readable(attribute(type, "__name__").get()) : type_name_of(type)));
  }
  expect_concrete(type);
  expect_free_names(type);
  std::unique_ptr<ClassInfo> made(new ClassInfo(type));
  const ClassInfo& info = *known.emplace(type, std::move(made)).first->second;
  table().by_key[info.key()] = &info;
  return info;
}

const ClassInfo& ClassInfo::find(std::string_view key) {
  auto& known = table().by_key;
  if (auto found = known.find(key); found != known.end()) return *found->second;
  return of(import_key(key).get());
}

Ref ClassInfo::index_object(const chare::Index& index) const {
  Ref coordinates = python::index_object(index);
  if (!index_type_) return coordinates;
  if (PyTuple_Check(coordinates.get()) == 0) {
    return checked(PyObject_CallOneArg(index_type_.get(), coordinates.get()));
  }
  return checked(PyObject_CallObject(index_type_.get(), coordinates.get()));
}

int ClassInfo::method(PyObject* name) const {
  PyObject* number = PyDict_GetItemWithError(numbers_.get(), name);
  if (number == nullptr) {
    PyErr_Clear();
    return -1;
  }
  return static_cast<int>(PyLong_AsLong(number));
}

std::string ClassInfo::method_list() const {
  std::string list;
  for (const Ref& name : methods_) {
    if (!list.empty()) list += ", ";
    list += text_of(name.get());
  }
  return list.empty() ? "none" : list;
}

}  // namespace weft::python
