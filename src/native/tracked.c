/* Which classes of Python the containers and their marks are of, and where their slots lie. */
#include "native.h"

#include <structmember.h>

Node tracked_dict, tracked_list;
Tracker tracker_slots;
Window window_slots;
Changes changes_slots;
Cache list_cache, dict_cache;
Place place_slots;
Bound bound;

/* How far into an object of a class with `__slots__` a slot lies; -1 with an exception. */
static Py_ssize_t offset_of(PyTypeObject *type, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = -1;
    if (found == NULL)
        return -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        if (member->type == T_OBJECT_EX)
            offset = member->offset;
    }
    Py_DECREF(found);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, name);
    return offset;
}

typedef struct {
    const char *name;
    Py_ssize_t *offset;
} Wanted;

static bool read_class(PyObject *type, PyTypeObject **kept, const Wanted *wanted)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "bind takes classes");
        return false;
    }
    for (; wanted->name != NULL; wanted++) {
        *wanted->offset = offset_of((PyTypeObject *)type, wanted->name);
        if (*wanted->offset < 0)
            return false;
    }
    *kept = (PyTypeObject *)Py_NewRef(type); /* For good: a module's own. */
    return true;
}

static bool read_node(PyObject *type, Node *node)
{
    const Wanted wanted[] = {
        {"hf_tracker", &node->tracker}, {"hf_node", &node->node},
        {"hf_mark", &node->mark},       {"hf_hash", &node->hash},
        {"hf_source", &node->source},   {"hf_up", &node->up},
        {"hf_watch", &node->watch},     {NULL, NULL},
    };
    return read_class(type, &node->type, wanted);
}

static bool read_classes(PyObject *const *types)
{
    Window *window = &window_slots;
    const Wanted of_tracker[] = {{"lock", &tracker_slots.lock},
                                 {"floor", &tracker_slots.floor},
                                 {"dirty", &tracker_slots.dirty},
                                 {NULL, NULL}};
    const Wanted of_window[] = {
        {"length", &window->length}, {"length_saved", &window->length_saved},
        {"lo", &window->lo},         {"hi", &window->hi},
        {"trim", &window->trim},     {"edits", &window->edits},
        {NULL, NULL}};
    const Wanted of_changes[] = {{"gone", &changes_slots.gone},
                                 {"put", &changes_slots.put},
                                 {"length", &changes_slots.length},
                                 {NULL, NULL}};
    const Wanted of_list_cache[] = {
        {"root", &list_cache.root},         {"_groups", &list_cache.groups},
        {"_unknown", &list_cache.unknown},  {"children_stale", &list_cache.stale},
        {"_prefix", &list_cache.prefix},    {"_prefixed", &list_cache.prefixed},
        {NULL, NULL}};
    const Wanted of_dict_cache[] = {
        {"root", &dict_cache.root}, {"touched", &dict_cache.touched}, {NULL, NULL}};
    const Wanted of_place[] = {{"at", &place_slots.at}, {NULL, NULL}};
    return read_node(types[0], &tracked_dict) && read_node(types[1], &tracked_list) &&
           read_class(types[2], &tracker_slots.type, of_tracker) &&
           read_class(types[3], &window->type, of_window) &&
           read_class(types[4], &changes_slots.type, of_changes) &&
           read_class(types[5], &list_cache.type, of_list_cache) &&
           read_class(types[6], &dict_cache.type, of_dict_cache) &&
           read_class(types[7], &place_slots.type, of_place);
}

/* bind(...): say once which classes and objects of Python the functions here work with. */
PyObject *native_bind(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 13 || tracked_dict.type != NULL) {
        PyErr_SetString(PyExc_TypeError, "bind takes eight classes and five objects, once");
        return NULL;
    }
    bound.acquire = PyUnicode_InternFromString("acquire");
    bound.release = PyUnicode_InternFromString("release");
    if (bound.acquire == NULL || bound.release == NULL || !read_classes(args))
        return NULL;
    bound.inside = Py_NewRef(args[8]);
    bound.loose = Py_NewRef(args[9]);
    bound.links = Py_NewRef(args[10]);
    bound.stale = Py_NewRef(args[11]);
    bound.forget_source = Py_NewRef(args[12]);
    Py_RETURN_NONE;
}

bool slot_set_number(PyObject *object, Py_ssize_t offset, Py_ssize_t number)
{
    PyObject *made = PyLong_FromSsize_t(number);
    if (made == NULL)
        return false;
    slot_set(object, offset, made);
    Py_DECREF(made);
    return true;
}

bool is_flat(PyObject *container)
{
    if (PyDict_Check(container)) {
        PyObject *value;
        for (Py_ssize_t at = 0; PyDict_Next(container, &at, NULL, &value);)
            if (!is_basic(value))
                return false;
        return true;
    }
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(container); n++)
        if (!is_basic(PyList_GET_ITEM(container, n)))
            return false;
    return true;
}

/* is_same(now, then): whether two dicts or two lists hold the very same objects in one order. */
PyObject *native_is_same(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *key, *value, *other_key, *other;
    Py_ssize_t at = 0, place = 0;
    bool are_dicts = count == 2 && PyDict_CheckExact(args[0]) && PyDict_CheckExact(args[1]);
    if (!are_dicts && !(count == 2 && PyList_CheckExact(args[0]) && PyList_CheckExact(args[1]))) {
        PyErr_SetString(PyExc_TypeError, "is_same takes two dicts or two lists");
        return NULL;
    }
    if (PyObject_Size(args[0]) != PyObject_Size(args[1]))
        Py_RETURN_FALSE;
    if (are_dicts)
        while (PyDict_Next(args[0], &at, &key, &value))
            if (!PyDict_Next(args[1], &place, &other_key, &other) || key != other_key ||
                value != other)
                Py_RETURN_FALSE;
    for (; !are_dicts && at < PyList_GET_SIZE(args[0]); at++)
        if (PyList_GET_ITEM(args[0], at) != PyList_GET_ITEM(args[1], at))
            Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}
