/* The usual changes of tracked containers, as their methods in `capture/lists` and `dicts` do them.
 *
 * Each looks first whether it is a usual one; what is not is left to the method, untouched. */
#include "native.h"

enum { GROUP = 32, UNSAVED = -1, FAR = 8 };

/* A tracked dict with the content of a flat one; NULL with an exception. */
static PyObject *new_dict(PyObject *plain, PyObject *tracker, PyObject *source, PyObject *up)
{
    static PyObject *nothing = NULL;
    if (nothing == NULL && (nothing = PyTuple_New(0)) == NULL)
        return NULL;
    PyObject *made = PyDict_Type.tp_new(tracked_dict.type, nothing, NULL);
    if (made == NULL)
        return NULL;
    SLOT(made, tracked_dict.tracker) = Py_NewRef(tracker);
    SLOT(made, tracked_dict.mark) = Py_NewRef(Py_None);
    SLOT(made, tracked_dict.hash) = Py_NewRef(Py_None);
    SLOT(made, tracked_dict.source) = Py_NewRef(source);
    SLOT(made, tracked_dict.up) = Py_NewRef(up);
    SLOT(made, tracked_dict.watch) = Py_NewRef(Py_None);
    if (!slot_set_number(made, tracked_dict.node, UNSAVED) || PyDict_Update(made, plain) < 0)
        Py_CLEAR(made);
    return made;
}

/* track(plain, source): a loose tracked copy of a flat dict that stands at a source. */
PyObject *native_track(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || tracked_dict.type == NULL) {
        PyErr_SetString(PyExc_TypeError, "track(plain, source)");
        return NULL;
    }
    if (!PyDict_CheckExact(args[0]) || !is_flat(args[0]))
        return Py_NewRef(Py_None);
    PyObject *source = args[1] == Py_None ? Py_NewRef(Py_None) : PyTuple_Pack(2, Py_None, args[1]);
    PyObject *made = source == NULL ? NULL : new_dict(args[0], bound.loose, source, Py_None);
    Py_XDECREF(source);
    return made;
}

static bool take(PyObject *lock)
{
    PyObject *done = PyObject_CallMethodNoArgs(lock, bound.acquire);
    Py_XDECREF(done);
    return done != NULL;
}

/* Let a lock go, also where an exception is on its way; false where there is one then. */
static bool let_go(PyObject *lock)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *done = PyObject_CallMethodNoArgs(lock, bound.release);
    Py_XDECREF(done);
    if (type != NULL)
        PyErr_Restore(type, value, trace);
    return done != NULL && type == NULL;
}

static bool end(PyObject *tracker)
{
    bool is_released = let_go(slot(tracker, tracker_slots.lock));
    Py_DECREF(tracker);
    return is_released;
}

/* Take the lock under which a container may change. 1: taken, and `tracker` is held; 0: this is
 * for its method to refuse, or to wait for; -1: exception. */
static int begin(PyObject *self, const Node *node, PyObject **tracker)
{
    PyObject *inside = NULL;
    if (PyContextVar_Get(bound.inside, NULL, &inside) < 0)
        return -1;
    bool is_inside = inside != Py_None;
    Py_XDECREF(inside);
    *tracker = slot(self, node->tracker);
    if (is_inside || !Py_IS_TYPE(*tracker, tracker_slots.type))
        return 0;
    Py_INCREF(*tracker);
    if (!take(slot(*tracker, tracker_slots.lock))) {
        Py_DECREF(*tracker);
        return -1; /* The run has ended. */
    }
    if (slot(self, node->tracker) == *tracker)
        return 1;
    return end(*tracker) ? 0 : -1; /* It became part of a state while we waited. */
}

static bool tell(PyObject *function, PyObject *self)
{
    PyObject *done = PyObject_CallOneArg(function, self);
    Py_XDECREF(done);
    return done != NULL;
}

/* Whether a parent of a container may have hashed it: nearly always there is one, which has not. */
static bool may_be_hashed(PyObject *self, const Node *node)
{
    PyObject *up = slot(self, node->up);
    if (up == NULL || up == Py_None)
        return false;
    if (!PyWeakref_CheckRef(up))
        return true;
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *parent;
    if (PyWeakref_GetRef(up, &parent) <= 0)
        return false;
#else
    PyObject *parent = Py_NewRef(PyWeakref_GET_OBJECT(up));
#endif
    const Node *of_parent = node_of(parent);
    bool may_be = of_parent != NULL && slot(parent, of_parent->hash) != Py_None;
    Py_DECREF(parent);
    return may_be;
}

/* The marks of containers that are as they were saved, as `capture/marks` makes them. */
static PyObject *new_window(Py_ssize_t length)
{
    const Window *window = &window_slots;
    PyObject *made = window->type->tp_alloc(window->type, 0);
    if (made != NULL)
        SLOT(made, window->edits) = Py_NewRef(Py_None);
    if (made != NULL && !(slot_set_number(made, window->length, length) &&
                          slot_set_number(made, window->length_saved, length) &&
                          slot_set_number(made, window->lo, length) &&
                          slot_set_number(made, window->hi, length) &&
                          slot_set_number(made, window->trim, 0)))
        Py_CLEAR(made);
    return made;
}

static PyObject *new_changes(Py_ssize_t length)
{
    const Changes *changes = &changes_slots;
    PyObject *made = changes->type->tp_alloc(changes->type, 0);
    if (made == NULL)
        return NULL;
    SLOT(made, changes->gone) = PyDict_New();
    SLOT(made, changes->put) = PyDict_New();
    if (SLOT(made, changes->gone) == NULL || SLOT(made, changes->put) == NULL ||
        !slot_set_number(made, changes->length, length))
        Py_CLEAR(made);
    return made;
}

/* The mark of a container that changes: a new one if it had none. Borrowed; NULL: exception. */
static PyObject *marked(PyObject *self, const Node *node, PyObject *tracker, Py_ssize_t length)
{
    PyObject *mark = slot(self, node->mark);
    if (mark != Py_None)
        return mark;
    PyObject *dirty = slot(tracker, tracker_slots.dirty);
    PyObject *made = node == &tracked_list ? new_window(length) : new_changes(length);
    if (made == NULL || PyList_Append(dirty, self) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    slot_set(self, node->mark, made);
    Py_DECREF(made);
    return made;
}

/* Nothing above knows a digest of this container any more, nor that it is as it was stored. */
static bool forget(PyObject *self, const Node *node, bool was_hashed)
{
    if (was_hashed && may_be_hashed(self, node) && !tell(bound.stale, self))
        return false;
    return slot(self, node->source) == Py_None || tell(bound.forget_source, self);
}

/* Whether a container was saved, so that a change of it is to be noted. */
static int is_saved(PyObject *self, const Node *node, PyObject *tracker)
{
    Py_ssize_t number, floor;
    if (!slot_number(self, node->node, &number) ||
        !slot_number(tracker, tracker_slots.floor, &floor)) {
        PyErr_SetString(PyExc_RuntimeError, "a tracked container has no number");
        return -1;
    }
    return number >= floor;
}

/* Whether a list with one more item at its end still has one window, as `Window.splice` has it. */
static bool is_one_window(PyObject *self)
{
    Py_ssize_t length = PyList_GET_SIZE(self), saved, lo, hi, trim;
    PyObject *mark = slot(self, tracked_list.mark);
    if (mark == Py_None)
        return true;
    if (slot(mark, window_slots.edits) != Py_None ||
        !slot_number(mark, window_slots.length_saved, &saved) ||
        !slot_number(mark, window_slots.lo, &lo) || !slot_number(mark, window_slots.hi, &hi) ||
        !slot_number(mark, window_slots.trim, &trim))
        return false;
    if (hi > length - lo)
        hi = length - lo;
    if (hi > saved - trim - lo)
        hi = saved - trim - lo;
    bool is_empty = lo == length - hi && lo == saved - trim;
    return is_empty || hi <= FAR;
}

static bool note_append(PyObject *self, PyObject *tracker)
{
    Py_ssize_t length = PyList_GET_SIZE(self), lo, hi, noted;
    int saved = is_saved(self, &tracked_list, tracker);
    if (saved < 0)
        return false;
    if (saved) {
        PyObject *mark = marked(self, &tracked_list, tracker, length);
        if (mark == NULL)
            return false;
        if (!slot_number(mark, window_slots.lo, &lo) || !slot_number(mark, window_slots.hi, &hi) ||
            !slot_number(mark, window_slots.length, &noted)) {
            PyErr_SetString(PyExc_RuntimeError, "a window has no bounds");
            return false;
        }
        if ((length < lo && !slot_set_number(mark, window_slots.lo, length)) ||
            (noted - length < hi && !slot_set_number(mark, window_slots.hi, noted - length)) ||
            !slot_set_number(mark, window_slots.length, noted + 1))
            return false;
    }
    PyObject *known = slot(self, tracked_list.hash);
    bool was_hashed = PyBytes_Check(known);
    if (was_hashed) {
        slot_set(self, tracked_list.hash, Py_None);
    } else if (known != Py_None) { /* As `ListCache.splice`. */
        PyObject *groups = slot(known, list_cache.groups);
        Py_ssize_t whole = length / GROUP * SHA256_BYTES;
        was_hashed = slot(known, list_cache.root) != Py_None;
        slot_set(known, list_cache.root, Py_None);
        if (PyByteArray_GET_SIZE(groups) > whole && PyByteArray_Resize(groups, whole) < 0)
            return false;
    }
    return forget(self, &tracked_list, was_hashed);
}

/* Make a loose container part of a state, if it is flat and stands nowhere yet. 1: it is. */
static int settle(PyObject *item, const Node *node, PyObject *tracker, PyObject *parent)
{
    if (slot(item, node->tracker) != bound.loose || slot(item, node->watch) != Py_None ||
        slot(item, node->up) != Py_None || !is_flat(item))
        return 0;
    PyObject *lock = slot(bound.loose, tracker_slots.lock);
    if (!take(lock))
        return -1;
    int done = -1;
    if (take(bound.links)) {
        done = slot(item, node->tracker) == bound.loose && slot(item, node->up) == Py_None;
        if (done) { /* Else another thread was quicker. */
            slot_set(item, node->tracker, tracker);
            slot_set(item, node->up, parent);
        }
        if (!let_go(bound.links))
            done = -1;
    }
    return let_go(lock) ? done : -1;
}

/* What is to stand in a list for an item. 1: `ready` is held; 0: not ours; -1: exception. */
static int make_ready(PyObject *self, PyObject *item, PyObject *tracker, Py_ssize_t alone,
                      PyObject **ready)
{
    const Node *node = node_of(item);
    if (is_basic(item)) {
        *ready = Py_NewRef(item);
        return 1;
    }
    bool is_own = PyDict_CheckExact(item) && Py_REFCNT(item) <= alone && is_flat(item);
    if (!is_own && node == NULL)
        return 0;
    PyObject *parent = PyWeakref_NewRef(self, NULL);
    if (parent == NULL)
        return -1;
    int done = 1;
    if (is_own) {
        *ready = new_dict(item, tracker, Py_None, parent);
        done = *ready == NULL ? -1 : 1;
    } else {
        done = settle(item, node, tracker, parent);
        *ready = done > 0 ? Py_NewRef(item) : NULL;
    }
    Py_DECREF(parent);
    return done;
}

/* append(self, item, alone): True if it was done. `alone` is the count of references to an item
 * that nobody else holds. */
PyObject *native_append(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !Py_IS_TYPE(args[0], tracked_list.type) || !PyLong_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "append(self: TrackedList, item, alone: int)");
        return NULL;
    }
    PyObject *self = args[0], *tracker, *ready = NULL;
    PyObject *known = slot(self, tracked_list.hash);
    if (known != Py_None && !PyBytes_Check(known) && !Py_IS_TYPE(known, list_cache.type))
        Py_RETURN_FALSE;
    int done = begin(self, &tracked_list, &tracker);
    if (done <= 0)
        return done < 0 ? NULL : Py_NewRef(Py_False);
    done = is_one_window(self)
               ? make_ready(self, args[1], tracker, PyLong_AsSsize_t(args[2]), &ready)
               : 0;
    if (done > 0 && (!note_append(self, tracker) || PyList_Append(self, ready) < 0))
        done = -1;
    Py_XDECREF(ready);
    if (!end(tracker) || done < 0)
        return NULL;
    return PyBool_FromLong(done);
}

static bool note_set(PyObject *self, PyObject *tracker, PyObject *key)
{
    int saved = is_saved(self, &tracked_dict, tracker);
    if (saved < 0)
        return false;
    if (saved) {
        Py_ssize_t noted, length = PyDict_GET_SIZE(self);
        PyObject *mark = marked(self, &tracked_dict, tracker, length);
        PyObject *put = mark == NULL ? NULL : slot(mark, changes_slots.put);
        int is_there = put == NULL ? -1 : PyDict_Contains(self, key);
        if (is_there < 0)
            return false;
        if (is_there) {
            if (PyDict_SetDefault(put, key, Py_False) == NULL)
                return false;
        } else if (PyDict_SetItem(put, key, Py_True) < 0 ||
                   !slot_number(mark, changes_slots.length, &noted) ||
                   !slot_set_number(mark, changes_slots.length, noted + 1)) {
            return false;
        }
    }
    PyObject *known = slot(self, tracked_dict.hash);
    bool was_hashed = PyBytes_Check(known);
    if (was_hashed) {
        slot_set(self, tracked_dict.hash, Py_None);
    } else if (known != Py_None) { /* As `DictCache.touch`. */
        was_hashed = slot(known, dict_cache.root) != Py_None;
        slot_set(known, dict_cache.root, Py_None);
        if (PyDict_SetItem(slot(known, dict_cache.touched), key, Py_None) < 0)
            return false;
    }
    return forget(self, &tracked_dict, was_hashed);
}

/* set_items(self, items): True if all of a dict was put into a tracked one. */
PyObject *native_set_items(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !Py_IS_TYPE(args[0], tracked_dict.type) || !PyDict_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "set_items(self: TrackedDict, items: dict)");
        return NULL;
    }
    PyObject *self = args[0], *tracker, *key, *value;
    PyObject *known = slot(self, tracked_dict.hash);
    if (known != Py_None && !PyBytes_Check(known) && !Py_IS_TYPE(known, dict_cache.type))
        Py_RETURN_FALSE;
    int done = begin(self, &tracked_dict, &tracker);
    if (done <= 0)
        return done < 0 ? NULL : Py_NewRef(Py_False);
    PyObject *items = PyDict_Copy(args[1]); /* Another thread may change what was given. */
    done = items == NULL ? -1 : 1;
    for (Py_ssize_t at = 0; done > 0 && PyDict_Next(items, &at, &key, &value);)
        done = PyUnicode_CheckExact(key) && is_basic(value);
    for (Py_ssize_t at = 0; done > 0 && PyDict_Next(items, &at, &key, &value);)
        if (!note_set(self, tracker, key) || PyDict_SetItem(self, key, value) < 0)
            done = -1;
    Py_XDECREF(items);
    if (!end(tracker) || done < 0)
        return NULL;
    return PyBool_FromLong(done);
}
