// weft.Future.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/runtime/future.h"
#include "weft/runtime/wait_list.h"

#include "await/setter.h"
#include "codec/result.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

class Encoder;

class PyFutureState final : public runtime::FutureState {
 public:
  explicit PyFutureState(Engine& engine) : runtime::FutureState(engine.runtime()), engine_(engine) {}
  ~PyFutureState() override;

  Engine& engine() const { return *engine_; }
  // REQUIRES: is_ready(). A new reference, or null with Python's error set: errors are read without a throw.
  PyObject* result();
  // Takes the object itself. REQUIRES: the future belongs to this PE.
  void set(Ref value);
  // Future.set() of the program: the future gets a copy of the value, on whichever PE it is. Throws base::Error if the value cannot
  // travel, or if a future of this PE has all its values.
  void set_to_copy(PyObject* value);
  // Future.set_error(): the same for an error.
  void set_to_error(PyObject* exception);
  // Throws base::Error, which names what has set it, if it belongs to this PE and has all its values.
  void expect_room() const;
  // The copy that set_to_copy() makes. Throws base::Error if the value cannot travel.
  static Ref copy_for_set(PyObject* value);
  void set_packed(Pup& p) override;
  void send_outcome(std::uint32_t to_pe, runtime::FutureAddress future) override;
  // Makes it a future of `count` values, whose result is their list in the order of arrival. REQUIRES: nothing was set.
  void collect(std::uint64_t count);
  // For an operation that will set it, once. Returns false if it would get more values than it takes.
  bool promise();
  // The result of an allreduce comes without the byte that says its form.
  void expect_bare(ResultForm form) { bare_form_ = static_cast<int>(form); }
  // From now on an error ends the job if the future is dropped without being observed.
  void end_job_if_unobserved(std::string where) {
    where_text_ = std::move(where);
    where_ = where_text_;
  }
  // `where` is a literal: calls do not copy it.
  void end_job_if_unobserved(const char* where) { where_ = where; }
  void observe() {
    observed_ = true;
    look();
  }
  // What it is of, for its text: an entry method of a proxy, or a name.
  void set_subject(Ref subject) { subject_ = std::move(subject); }
  PyObject* subject() const { return subject_.get(); }
  // The program is to read it. If it ends unread, the PE says so at the end of the job.
  void expect_reader() { is_unread_ = true; }
  // The program has looked at it without reading its outcome: done().
  void look() {
    is_unread_ = false;
    if (is_lost_) [[unlikely]]
      find_reader();
  }
  // Its Python objects. When the last one of a call whose outcome is not there is gone, the call is lost: the job waits for the outcome
  // when main ends.
  void object_made() {
    ++num_objects_;
    if (is_lost_) [[unlikely]]
      find_reader();
  }
  void object_gone() {
    if (--num_objects_ == 0) lose_reader();
  }
  // Keeps something as long as the future exists.
  void keep(std::shared_ptr<void> kept) { kept_ = std::move(kept); }
  std::string setter() const override;

  // --- A copy in the state of an element that moves
  // The text that end_job_if_unobserved() got, for the copy; empty for none. The duty itself goes with the outcome.
  std::string duty() const { return observed_ ? std::string() : std::string(where_); }
  // REQUIRES: ready without an error. A borrowed reference.
  PyObject* value() const { return value_.get(); }
  // The value that has come with a copy. Does nothing if this future has its value.
  void arrive(Ref value);
  void arrive_error(std::exception_ptr error);

 private:
  void store(Ref value);
  std::uint32_t own_pe() const { return static_cast<std::uint32_t>(runtime().pe()); }
  // The program sets it here.
  void note_setter();
  // Unpacks: values are packed by Encoder.
  void pup_value(Pup& p) override;
  bool waits_for_copy() const { return is_mirror() && !is_ready(); }
  // Sets Python's error to the future's.
  [[gnu::cold]] void raise_error() noexcept;
  void count_unread();
  void find_reader();
  void lose_reader();

  EngineRef engine_;
  Ref value_;  // if an error has been read several times, the exception that further ones are copied from
  std::uint32_t num_objects_ = 0;
  int bare_form_ = -1;
  bool observed_ = false;
  bool is_unread_ = false;
  bool error_was_raised_ = false;
  bool is_lost_ = false;  // the engine waits for its outcome
  std::uint64_t promises_left_ = 1;
  std::string_view where_;  // empty: an error does not end the job
  std::string where_text_;  // has `where_`, unless that is a literal
  Setter setter_;           // which code of the program has set it last
  std::shared_ptr<void> kept_;
  Ref subject_;  // null for none
};

void init_future(PyObject* module);

// Sends the encoded value to the future at that address, on whichever PE it is. `setter`: a packed Setter, or empty.
void set_remote_future(runtime::Runtime& runtime, runtime::FutureAddress future, Encoder& encoder,
                       std::string_view setter = {});

// What a subject of futures stands for, as set_subject() gets it. Returns false if it is not known.
using PartyOfSubject = bool (*)(PyObject* subject, runtime::NamedParty& party);
// Once, when the extension is initialised.
void set_party_of_subject(PartyOfSubject function);

// A Python object with a share of `state`.
Ref make_future_object(PyFutureState* state);
bool is_future(PyObject* object);
// REQUIRES: is_future(object).
PyFutureState* future_state(PyObject* object);
// A future that gets `value`, or the error, when `future` is ready.
Ref wrap_future(Engine& engine, const runtime::Future<>& future, Ref value = Ref::borrow(Py_None));

}  // namespace weft::python
