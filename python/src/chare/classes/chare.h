// The one C++ chare type behind every Python class, and the Python object that it owns.
#pragma once

#include <memory>
#include <string>

#include "weft/chare/chare.h"

#include "await/running_chare.h"
#include "chare/classes/classes.h"
#include "support/support.h"

namespace weft::python {

class Decoder;
class Encoder;
class PyChare;

// Encodes and decodes the waiting calls of a chare that moves, which are part of its state. In waiting_call.cpp, which is
// above this file. `encode` writes nothing if there are none; then `decode` is not called.
struct WaitingCallCodec {
  void (*encode)(Encoder& encoder, const PyChare& chare);
  void (*decode)(Decoder& decoder, PyChare& chare);
};

class PyChare final : public chare::ChareBase {
 public:
  explicit PyChare(const ClassInfo& info);
  ~PyChare() override;

  // For a chare that moves, see chare::ChareType: the object without its state; the state; the program's migrated().
  static std::unique_ptr<chare::ChareBase> make_moved(Pup& state);
  void pup(Pup& p);
  void migrated() override;
  void departed() override;
  void resume_from_sync() override;
  // Runs the rest of a constructor that is a coroutine, and then the program's created(), which may be one too, see
  // weft/chare/created.h.
  static void begin_created(chare::ChareBase& base);
  // The second half of it.
  void begin_hook();

  // Calls the class, but leaves an __init__ that is a coroutine to begin_created(). Throws PythonError.
  void construct(PyObject* arguments);
  const ClassInfo& info() const { return info_; }
  PyObject* object() const { return object_.get(); }
  // "Ring[3].work on PE 1".
  std::string where_in(std::size_t method) const;
  // For WhileRunning.
  RunningChare as_running() const { return {collection().id(), linear_index()}; }

  // tp_new of weft.Chare: the object of the chare that is being constructed. Throws base::Error if none is.
  static PyObject* make_object(PyTypeObject* type);
  static std::size_t object_size_bytes();
  // Once, when the extension is loaded.
  static bool set_waiting_call_codec(const WaitingCallCodec& codec) {
    waiting_call_codec_ = codec;
    return true;
  }

 private:
  // The Python object, made by `make`, which must return the one that make_object() has made.
  template <class Make>
  void take_object(Make make);
  void begin_constructor();
  void pack_state();
  // Calls a method of the program's that the runtime runs and that cannot wait. `when` says when it runs.
  void call_hook(const char* name, const char* when);

  static inline WaitingCallCodec waiting_call_codec_;

  const ClassInfo& info_;
  Ref object_;
  Ref constructor_arguments_;        // of an __init__ that is a coroutine and has not begun
  std::unique_ptr<Encoder> packed_;  // the state, from its sizing to its packing
};

// The C++ chare of a weft.Chare. Throws base::Error after the job has ended, or its collection, and on another thread than the PE's.
PyChare& chare_of(PyObject* object);
// The C++ chare of a weft.Chare for any thread, which may read the index only: it does not change.
PyChare& chare_for_reading(PyObject* object);

}  // namespace weft::python
