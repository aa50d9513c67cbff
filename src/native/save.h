/* What one save of a state is made of, while it is written. */
#ifndef HOLDFAST_SAVE_H
#define HOLDFAST_SAVE_H

#include "native.h"

enum { OPEN = -2, DEPTH_MAX = 100 }; /* deeper ones are left to Python */

/* A container that has been given a number, and the one it had before. */
typedef struct {
    PyObject *node, *before;
    Py_ssize_t number;
    bool is_whole; /* it was written, not named */
} Given;

typedef struct {
    Buffer buffer;
    Py_ssize_t floor, next;
    Given *given;
    Py_ssize_t count, room;
    PyObject *open;
} Save;

/* Everything about a save gives 1: done, 0: not ours, -1: exception. */
int done_if(bool is_done);
int save_give(Save *save, PyObject *value, const Node *node, bool is_whole);
bool save_is_new(Save *save, PyObject *value, const Node *node);
int save_named(Save *save, PyObject *items, Py_ssize_t start, Py_ssize_t stop);

#endif
