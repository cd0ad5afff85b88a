// weft.Chare: the one C++ chare type behind every Python class, and how its entry methods run.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/chare/chare.h"

#include "chare/classes.h"
#include "job/engine.h"
#include "support/support.h"

namespace weft::python {

// The first bytes of an entry method's packed arguments.
struct CallHeader {
  enum class Form : std::uint8_t {
    kArguments,  // counts of positional and keyword arguments (a byte each), the values, the keywords' names
    kResult,     // one argument: a reduction's result, in the form that `result_form` says
  };
  std::uint16_t method = 0;
  Form form = Form::kArguments;
  std::uint8_t result_form = 0;
};

class PyChare final : public chare::ChareBase {
 public:
  explicit PyChare(const ClassInfo& info) : info_(info) {}
  ~PyChare() override;

  // Calls the class. Throws PythonError.
  void construct(PyObject* arguments);
  const ClassInfo& info() const { return info_; }
  PyObject* object() const { return object_.get(); }
  // "Ring[3].work on PE 1".
  std::string where_in(std::size_t method) const;
  // The Python object, as soon as there is one: what its constructor leaves behind outlives this chare.
  void set_object(Ref object) { object_ = std::move(object); }

 private:
  const ClassInfo& info_;
  Ref object_;
};

void init_chare(PyObject* module);

PyTypeObject* chare_type();
// The C++ chare of a weft.Chare; throws base::Error once the job has ended.
PyChare& chare_of(PyObject* object);

const chare::ConstructorInfo& python_constructor();
const chare::EntryInfo& python_entry();
// What python_constructor() takes.
std::vector<std::byte> pack_constructor(const ClassInfo& info, PyObject* arguments);

// Handles SystemExit and KeyboardInterrupt that left user code: ends the job accordingly. Returns false, with
// the error indicator untouched, for any other exception.
bool ended_by_exception(Engine& engine);

}  // namespace weft::python
