// NumPy is imported when the first array or element type is met, not with the extension: a PE starts faster without
// it.
#pragma once

namespace weft::python {

namespace numpy_detail {
inline bool loaded = false;
}

// Whether NumPy's C API (numpy_api.h) can be used.
inline bool numpy_is_loaded() { return numpy_detail::loaded; }
// Imports NumPy, once. Throws PythonError if that fails.
void load_numpy();
// False if the program has not imported NumPy, so that no array exists. Else loads it and returns true.
bool has_numpy();

// `then` runs once, when NumPy is loaded.
void when_numpy_is_loaded(void (*then)());

}  // namespace weft::python
